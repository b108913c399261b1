// Package rest is the REST face of the hub. It translates HTTP to the contract and
// calls the real gRPC server through a connection inside the process, so that
// credentials, rates, bounds and metrics hold as they do there.
//
// Bodies are bare resources in proto JSON: 64-bit numbers are strings, bytes are
// base64, zero fields are left out. Errors are google.rpc.Status as JSON.
package rest
