// Package openapi holds the OpenAPI document of the REST interface, generated
// from the proto contract by `make generate`.
package openapi

import _ "embed"

//go:embed memsvc.swagger.json
var document []byte

// Document returns a copy of the document: OpenAPI 2.0 as JSON.
func Document() []byte { return append([]byte(nil), document...) }
