// Package authn turns a credential into an identity: the hub's own tokens, JWTs of OIDC
// issuers, and client certificates.
package authn
