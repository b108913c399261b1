// Package openapi holds the OpenAPI document of the REST interface: what `make generate`
// makes of the proto contract, and the resources that REST alone has.
package openapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

//go:embed memsvc.swagger.json
var generated []byte

// restOnly are the paths that no call of the contract is annotated with.
//
//go:embed rest.json
var restOnly []byte

// joined is the whole document, made when somebody asks.
var joined = sync.OnceValue(func() []byte {
	document, err := join(generated, restOnly)
	if err != nil {
		panic("openapi: " + err.Error())
	}
	return document
})

// Document returns a copy of the document: OpenAPI 2.0 as JSON.
func Document() []byte { return append([]byte(nil), joined()...) }

// join adds paths to a document. The generator writes a path that may hold slashes as **.
func join(document, more []byte) ([]byte, error) {
	var doc map[string]json.RawMessage
	var paths, added map[string]map[string]json.RawMessage
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(doc["paths"], &paths); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(more, &added); err != nil {
		return nil, err
	}
	all := map[string]map[string]json.RawMessage{}
	for path, methods := range paths {
		all[strings.Replace(path, "**", "{path}", 1)] = methods
	}
	for path, methods := range added {
		if all[path] == nil {
			all[path] = map[string]json.RawMessage{}
		}
		for method, operation := range methods {
			if all[path][method] != nil {
				return nil, fmt.Errorf("%s %s is there twice", method, path)
			}
			all[path][method] = operation
		}
	}
	var err error
	for path, methods := range all {
		for method, operation := range methods {
			if methods[method], err = withPath(path, operation); err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
		}
	}
	if doc["paths"], err = json.Marshal(all); err != nil {
		return nil, err
	}
	return json.MarshalIndent(doc, "", "  ")
}

// withPath gives an operation the variables of its path that it does not describe.
func withPath(path string, operation json.RawMessage) (json.RawMessage, error) {
	var op map[string]json.RawMessage
	var params []map[string]any
	if err := json.Unmarshal(operation, &op); err != nil {
		return nil, err
	}
	if op["parameters"] != nil {
		if err := json.Unmarshal(op["parameters"], &params); err != nil {
			return nil, err
		}
	}
	known := map[string]bool{}
	for _, p := range params {
		if p["in"] == "path" {
			known[fmt.Sprint(p["name"])] = true
		}
	}
	for _, part := range strings.Split(path, "{")[1:] {
		name, _, _ := strings.Cut(part, "}")
		if known[name] {
			continue
		}
		p := map[string]any{"name": name, "in": "path", "required": true, "type": "string"}
		if name == "path" {
			p["description"] = "Below team/; each segment percent-encoded, the slashes between them as they are."
		}
		params = append(params, p)
	}
	var err error
	if op["parameters"], err = json.Marshal(params); err != nil {
		return nil, err
	}
	return json.Marshal(op)
}
