// Package rpc serves the contract over gRPC: handlers that translate and delegate,
// and the interceptors of the edge: request ids, panics, errors, metrics, logs,
// credentials, rates and the bounds of messages. It decides nothing itself.
package rpc
