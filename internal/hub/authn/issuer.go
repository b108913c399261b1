package authn

import (
	"bytes"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/memsvc/memsvc/internal/memory"
)

// maxJWTBytes bounds a JWT: with room for the other headers of a call in the 16 KiB
// that the hub takes.
const maxJWTBytes = 8 << 10

// maxSubject bounds who a JWT is about, so that the principal's name stays within the
// 256 characters of an author.
const maxSubject = 200

// algorithms are the only ones taken: with a symmetric one, whoever can check could
// also sign.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
		jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	}
}

// issuer is an Issuer with its rules and keys.
type issuer struct {
	Issuer
	rules  []*rule
	source *keySource
}

// jwtBearer returns who a JWT stands for.
func (b *rulebook) jwtBearer(ctx context.Context, text string, now time.Time) (Identity, error) {
	if len(text) > maxJWTBytes {
		return Identity{}, refuse(whyTooLarge)
	}
	parsed, err := jose.ParseSignedCompact(text, algorithms())
	if err != nil || len(parsed.Signatures) != 1 {
		return Identity{}, refuse(whyNotJWT)
	}
	var said struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(parsed.UnsafePayloadWithoutVerification(), &said) != nil {
		return Identity{}, refuse(whyClaims)
	}
	i := b.issuers[said.Issuer]
	if i == nil {
		return Identity{}, refuse(whyUnknownIssuer)
	}
	head := parsed.Signatures[0].Protected
	keys, err := i.source.find(ctx, head.KeyID, head.Algorithm)
	if err != nil {
		return Identity{}, err
	}
	set := &oidc.StaticKeySet{}
	for _, k := range keys {
		set.PublicKeys = append(set.PublicKeys, crypto.PublicKey(k))
	}
	config := &oidc.Config{SkipClientIDCheck: true, SkipExpiryCheck: true} // checked below, with the clocks' skew
	for _, a := range algorithms() {
		config.SupportedSigningAlgs = append(config.SupportedSigningAlgs, string(a))
	}
	verified, err := oidc.NewVerifier(i.URL, set, config).Verify(ctx, text)
	if err != nil {
		return Identity{}, refuse(whySignature)
	}
	var payload json.RawMessage
	if err := verified.Claims(&payload); err != nil {
		return Identity{}, refuse(whyClaims)
	}
	return i.judge(payload, now)
}

// judge looks at the claims of a JWT whose signature holds.
func (i *issuer) judge(payload []byte, now time.Time) (Identity, error) {
	var std struct {
		jwt.Claims
		Party string `json:"azp"`
	}
	if err := json.Unmarshal(payload, &std); err != nil {
		return Identity{}, refuse(whyClaims)
	}
	if std.Expiry == nil {
		return Identity{}, refuse(whyNoExpiry)
	}
	err := std.ValidateWithLeeway(jwt.Expected{Issuer: i.URL, AnyAudience: jwt.Audience(i.Audience), Time: now}, i.ClockSkew)
	switch {
	case errors.Is(err, jwt.ErrInvalidAudience):
		return Identity{}, refuse(whyAudience)
	case errors.Is(err, jwt.ErrExpired):
		return Identity{}, refuse(whyExpired)
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return Identity{}, refuse(whyNotYet)
	case err != nil:
		return Identity{}, refuse(whyClaims)
	}
	begin := now
	if std.IssuedAt != nil {
		begin = std.IssuedAt.Time()
	}
	expire := std.Expiry.Time()
	if expire.Sub(begin) > i.MaxLifetime+i.ClockSkew {
		return Identity{}, refuse(whyLifetime)
	}
	if !i.partyHolds(std.Party) {
		return Identity{}, refuse(whyParty)
	}
	if !fitSubject(std.Subject) {
		return Identity{}, refuse(whySubject)
	}
	said := claims{}
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.UseNumber()
	if err := dec.Decode(&said); err != nil {
		return Identity{}, refuse(whyClaims)
	}
	id := Identity{
		Kind: OIDC, ID: "oidc:" + i.Name + ":" + std.Subject, Name: i.Name + ":" + std.Subject,
		Expire: expire.Add(i.ClockSkew), said: said, issuer: i.URL,
	}
	return granted(id, i.rules)
}

// partyHolds judges azp, the party that the token was issued to. Without a list, a
// token that names one must name an audience of ours.
func (i *issuer) partyHolds(party string) bool {
	if len(i.AuthorizedParties) > 0 {
		return slices.Contains(i.AuthorizedParties, party)
	}
	return party == "" || slices.Contains(i.Audience, party)
}

func fitSubject(s string) bool {
	return s != "" && len(s) <= maxSubject && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// granted gives the identity what the rules say. One that no rule meets is known and
// may do nothing, and hears so: its holder can do nothing about it with another token.
func granted(id Identity, rules []*rule) (Identity, error) {
	g, ok := decide(rules, id.said)
	if !ok {
		return id, &memory.Error{
			Reason:  memory.ReasonPermissionDenied,
			Message: fmt.Sprintf("%s is known, but no rule of the hub gives it a role; ask an admin of the hub", id.Principal()),
		}
	}
	id.Team, id.Project, id.Role = g.team, g.project, g.role
	return id, nil
}
