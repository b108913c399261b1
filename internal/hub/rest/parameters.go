package rest

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// listPattern is the one call that both sides know; see listMemories.
const listPattern = http.MethodGet + " /v1/{parent=teams/*/projects/*}/memories"

// Parameters of the resources that the front answers itself.
var (
	readParameters  = []string{"revision"}
	writeParameters = []string{"message", "requestId"}
	watchParameters = []string{"afterRevision", "epoch", "metadataOnly"}
)

// takes reports whether every query parameter of r is one of names. If not it has
// answered: a misspelt parameter must not pass for one that was obeyed.
func (f *Front) takes(w http.ResponseWriter, r *http.Request, names []string) bool {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		f.fail(w, r, http.StatusBadRequest, codes.InvalidArgument, "the query is not well-formed; percent-encode the values of its parameters")
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if slices.Contains(names, name) {
			continue
		}
		hint := "this resource takes none"
		if spelled := slices.DeleteFunc(slices.Clone(names), func(s string) bool { return strings.Contains(s, "_") }); len(spelled) > 0 {
			hint = "this resource takes " + strings.Join(spelled, ", ")
		}
		f.fail(w, r, http.StatusBadRequest, codes.InvalidArgument, fmt.Sprintf("%s: unknown; %s", parameterCalled(name), hint))
		return false
	}
	return true
}

// checkParameters is takes for the resources that the gateway answers; the gateway
// itself passes over what it does not know.
func (f *Front) checkParameters(next runtime.HandlerFunc) runtime.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request, path map[string]string) {
		pattern, ok := runtime.HTTPPattern(r.Context())
		if names, known := f.parameters[r.Method+" "+pattern.String()]; ok && known && !f.takes(w, r, names) {
			return
		}
		next(w, r, path)
	}
}

// routeParameters returns the query parameters of every annotated call, by HTTP method
// and pattern: the fields of its request that stand neither in the path nor in the body.
func routeParameters(files ...protoreflect.FileDescriptor) map[string][]string {
	routes := map[string][]string{}
	for _, file := range files {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				m := methods.Get(j)
				rule, ok := proto.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule)
				if !ok || rule == nil {
					continue
				}
				method, pattern := verbOf(rule)
				var names []string
				if rule.GetBody() != "*" {
					names = queryFields(m.Input(), append(pathFields(pattern), rule.GetBody()))
				}
				routes[method+" "+normalPattern(pattern)] = names
			}
		}
	}
	return routes
}

func verbOf(rule *annotations.HttpRule) (method, pattern string) {
	switch p := rule.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		return http.MethodGet, p.Get
	case *annotations.HttpRule_Post:
		return http.MethodPost, p.Post
	case *annotations.HttpRule_Put:
		return http.MethodPut, p.Put
	case *annotations.HttpRule_Patch:
		return http.MethodPatch, p.Patch
	case *annotations.HttpRule_Delete:
		return http.MethodDelete, p.Delete
	}
	return "", ""
}

// pathField matches a variable of a pattern: {name} or {name=teams/*}.
var pathField = regexp.MustCompile(`\{([a-z_.]+)(=[^}]*)?\}`)

func pathFields(pattern string) (names []string) {
	for _, m := range pathField.FindAllStringSubmatch(pattern, -1) {
		names = append(names, m[1])
	}
	return names
}

// normalPattern writes a pattern as the gateway does: {name} is {name=*}.
func normalPattern(pattern string) string {
	return pathField.ReplaceAllStringFunc(pattern, func(v string) string {
		if strings.Contains(v, "=") {
			return v
		}
		return strings.TrimSuffix(v, "}") + "=*}"
	})
}

// maxFieldDepth bounds how deep a parameter like cursor.epoch may reach.
const maxFieldDepth = 3

// queryFields returns the fields of a request as parameters name them, in both
// spellings that the gateway reads, without those that stand elsewhere. A field of a
// field is named with a dot.
func queryFields(m protoreflect.MessageDescriptor, elsewhere []string) []string {
	var names []string
	var add func(m protoreflect.MessageDescriptor, prefixes []string, depth int)
	add = func(m protoreflect.MessageDescriptor, prefixes []string, depth int) {
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			if depth == 1 && slices.Contains(elsewhere, string(f.Name())) {
				continue
			}
			var here []string
			for _, prefix := range prefixes {
				here = append(here, prefix+f.JSONName())
				if f.JSONName() != string(f.Name()) {
					here = append(here, prefix+string(f.Name()))
				}
			}
			switch {
			case f.Message() == nil, strings.HasPrefix(string(f.Message().FullName()), "google.protobuf."):
				names = append(names, here...)
			case depth < maxFieldDepth && !f.IsList() && !f.IsMap():
				for i := range here {
					here[i] += "."
				}
				add(f.Message(), here, depth+1)
			}
		}
	}
	add(m, []string{""}, 1)
	return names
}

// parameterCalled is how an unknown parameter is told: by its name, if that is one
// that somebody could have meant. Anything else is a value gone astray, and perhaps
// a secret.
func parameterCalled(name string) string {
	if len(name) > 30 || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz_.") != "" {
		return "a parameter"
	}
	return fmt.Sprintf("parameter %q", name)
}
