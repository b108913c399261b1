package openapi

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestDocument checks what a reader of the document relies on; that it is fresh is
// checked by `make generate-check`.
func TestDocument(t *testing.T) {
	var doc struct {
		Swagger string
		Info    struct{ Title, Version string }
		Paths   map[string]map[string]any

		Definitions map[string]any
	}
	if err := json.Unmarshal(Document(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Swagger != "2.0" || doc.Info.Title != "memsvc" || doc.Info.Version != "v1" {
		t.Errorf("got %s, %+v", doc.Swagger, doc.Info)
	}
	commit := false
	for path, methods := range doc.Paths {
		if !strings.HasPrefix(path, "/v1/") {
			t.Errorf("path %s is not below /v1/", path)
		}
		commit = commit || strings.HasSuffix(path, "/memories:commit") && methods["post"] != nil
	}
	if !commit {
		t.Error("the commit call is missing")
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			text, err := json.Marshal(op)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range strings.Split(path, "{")[1:] {
				name, _, _ := strings.Cut(part, "}")
				if !strings.Contains(string(text), `"name":"`+name+`"`) {
					t.Errorf("%s %s does not describe %s", method, path, name)
				}
			}
			for _, part := range strings.Split(string(text), `"#/definitions/`)[1:] {
				name, _, _ := strings.Cut(part, `"`)
				if doc.Definitions[name] == nil {
					t.Errorf("%s %s names %s, which is not defined", method, path, name)
				}
			}
		}
		if strings.Contains(path, "*") {
			t.Errorf("path %s is a pattern", path)
		}
	}
}

func TestDocumentIsACopy(t *testing.T) {
	Document()[0] = 'x'
	if Document()[0] != '{' {
		t.Error("whoever gets the document can change it for others")
	}
}
