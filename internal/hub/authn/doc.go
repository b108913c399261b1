// Package authn turns a credential into an identity: bearer tokens of the hub today.
// Another kind of credential (the JWT of an OIDC issuer) is another Method in the
// Authenticator's list.
package authn
