package authn

import (
	"errors"

	"github.com/memsvc/memsvc/internal/memory"
)

// why is the reason for which a credential of others was refused, as the metric's label
// and the log have it: short and bounded. docs/observability.md lists them.
type why string

// The reasons. Those from whyNoExpiry to whySubject are found behind a signature that
// holds: whoever hears them has a true token of the issuer.
const (
	whyTooLarge        why = "too_large"
	whyNotJWT          why = "not_a_jwt"
	whyUnknownIssuer   why = "unknown_issuer"
	whyNoKeys          why = "no_keys"
	whyUnknownKey      why = "unknown_key"
	whySignature       why = "signature"
	whyClaims          why = "claims"
	whyNoExpiry        why = "no_expiry"
	whyAudience        why = "audience"
	whyExpired         why = "expired"
	whyNotYet          why = "not_valid_yet"
	whyLifetime        why = "lifetime"
	whyParty           why = "authorized_party"
	whySubject         why = "subject"
	whyCertificateTime why = "certificate_time"
	whyCertificateName why = "certificate_name"
	whyNoRule          why = "no_rule"
	whyNoIssuers       why = "no_issuers"
)

// whys are all reasons that the metric counts. What is sent to a hub that believes nobody
// else is no credential of others: whyNoIssuers is for the log alone.
func whys() []why {
	return []why{
		whyTooLarge, whyNotJWT, whyUnknownIssuer, whyNoKeys, whyUnknownKey, whySignature, whyClaims, whyNoExpiry, whyAudience,
		whyExpired, whyNotYet, whyLifetime, whyParty, whySubject, whyCertificateTime, whyCertificateName, whyNoRule,
	}
}

// text says it to whoever sent the credential, without anything out of it.
func (w why) text() string {
	switch w {
	case whyTooLarge:
		return "it is longer than 8 KiB"
	case whyNotJWT:
		return "it is no JWT signed with RS, PS, ES or EdDSA"
	case whyUnknownIssuer:
		return "its issuer (iss) is none of those"
	case whyUnknownKey:
		return "its issuer does not have the key that it names"
	case whySignature:
		return "its signature or its form does not hold"
	case whyClaims:
		return "its claims cannot be read"
	case whyNoExpiry:
		return "it has no expiry (exp)"
	case whyAudience:
		return "it was made for another audience (aud)"
	case whyExpired:
		return "it has expired (exp)"
	case whyNotYet:
		return "it is not valid yet (nbf, iat); compare the clocks"
	case whyLifetime:
		return "it is valid for longer than max-lifetime allows"
	case whyParty:
		return "it was issued to another party (azp)"
	case whySubject:
		return "its subject (sub) is missing, too long or not printable"
	case whyCertificateTime:
		return "it is not valid now"
	case whyCertificateName:
		return "it has no name that can stand for its holder"
	case whyNoKeys, whyNoRule, whyNoIssuers: // they have messages of their own
	}
	return "it does not hold"
}

// refusal is the answer to a credential that does not hold, with the reason beside it.
type refusal struct {
	error
	why why
}

func (r *refusal) Unwrap() error { return r.error }

// refuse refuses a JWT, and says what would be taken.
func refuse(w why) error {
	return refusedFor(w, "the JWT is not taken: "+w.text()+"; this hub takes its own tokens (msv_…) and JWTs of the issuers in its identity file")
}

// refuseCert refuses a client certificate that came without another credential.
func refuseCert(w why) error {
	return refusedFor(w, "the client certificate is not taken: "+w.text()+`; another one, or "authorization: Bearer" with a token, is`)
}

// noIssuers refuses what is no token of the hub where nothing else is believed.
func noIssuers() error {
	return refusedFor(whyNoIssuers, "no token of this hub (msv_…), and it is set up for no JWTs; ask an admin of the hub for a token")
}

func refusedFor(w why, message string) error {
	return &refusal{&memory.Error{Reason: memory.ReasonUnauthenticated, Message: message}, w}
}

// Why returns the word for what was wrong with a credential that was refused, for the
// log, or "".
func Why(err error) string {
	var r *refusal
	if errors.As(err, &r) {
		return string(r.why)
	}
	return ""
}
