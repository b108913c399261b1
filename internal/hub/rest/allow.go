package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// resource is a path of the OpenAPI document and the methods it knows.
type resource struct {
	path  *regexp.Regexp
	exact int    // characters that are no variable's
	allow string // as the Allow header lists them
}

// variable matches a variable of a published path.
var variable = regexp.MustCompile(`\{[A-Za-z]+\}`)

// published reads the resources of an OpenAPI document, the most exact first.
func published(document []byte) ([]resource, error) {
	var doc struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	var all []resource
	for path, methods := range doc.Paths {
		var pattern strings.Builder
		exact, end := 0, 0
		for _, at := range variable.FindAllStringIndex(path, -1) {
			pattern.WriteString(regexp.QuoteMeta(path[end:at[0]]))
			if path[at[0]:at[1]] == "{path}" {
				pattern.WriteString(".+")
			} else {
				pattern.WriteString("[^/]+")
			}
			exact, end = exact+at[0]-end, at[1]
		}
		pattern.WriteString(regexp.QuoteMeta(path[end:]))
		re, err := regexp.Compile("^" + pattern.String() + "$")
		if err != nil {
			return nil, fmt.Errorf("OpenAPI document: %s: %w", path, err)
		}
		var names []string
		for method := range methods {
			if names = append(names, strings.ToUpper(method)); method == "get" && !strings.HasSuffix(path, ":watch") { // a stream has no end to measure
				names = append(names, http.MethodHead)
			}
		}
		slices.Sort(names)
		all = append(all, resource{path: re, exact: exact + len(path) - end, allow: strings.Join(names, ", ")})
	}
	slices.SortFunc(all, func(a, b resource) int { return cmp.Compare(b.exact, a.exact) })
	return all, nil
}

// allowed returns the methods that a path knows; "" where there is none.
func (f *Front) allowed(path string) string {
	for _, r := range f.resources {
		if r.path.MatchString(path) {
			return r.allow
		}
	}
	return ""
}
