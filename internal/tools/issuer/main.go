// Program issuer is an OpenID provider on loopback for tests: an implementation that is
// not ours, in a module of its own so that the product does not carry it. It prints its
// address and ends with its standard input.
//
//	POST /oauth/token   grant_type=client_credentials; scopes aud:A, life:D, repository:R
//	POST /rotate        makes a new signing key and forgets the old one
package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	url := "http://" + ln.Addr().String()
	s := &store{Storage: storage.NewStorage(storage.NewUserStore(url))}
	if err := s.rotate(); err != nil {
		return err
	}
	config := &op.Config{AuthMethodPost: true}
	if _, err := rand.Read(config.CryptoKey[:]); err != nil {
		return err
	}
	provider, err := op.NewProvider(config, s, op.StaticIssuer(url), op.WithAllowInsecure())
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", provider)
	mux.HandleFunc("POST /rotate", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.rotate(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	fmt.Println(url)
	if err := server.Serve(ln); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// store adds to the provider's own sample storage: keys that rotate, service clients of
// any name with JWTs, and what a request's scopes ask for.
type store struct {
	*storage.Storage

	mu  sync.Mutex // guards what follows
	n   int
	key *rsa.PrivateKey
}

func (s *store) rotate() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.key = key
	return nil
}

func (s *store) present() signingKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return signingKey{id: fmt.Sprintf("rotation-%d", s.n), private: s.key}
}

func (s *store) SigningKey(context.Context) (op.SigningKey, error) { return s.present(), nil }

func (s *store) KeySet(context.Context) ([]op.Key, error) {
	return []op.Key{publicKey{s.present()}}, nil
}

type signingKey struct {
	id      string
	private *rsa.PrivateKey
}

func (k signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k signingKey) Key() any                                    { return k.private }
func (k signingKey) ID() string                                  { return k.id }

type publicKey struct{ signingKey }

func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                           { return &k.private.PublicKey }

// service is a client of any name.
type service struct {
	op.Client
	id string
}

func (c service) GetID() string                       { return c.id }
func (c service) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }

func (s *store) ClientCredentials(ctx context.Context, id, _ string) (op.Client, error) {
	base, err := s.Storage.ClientCredentials(ctx, "sid1", "verysecret") // of the sample
	return service{base, id}, err
}

func (s *store) ClientCredentialsTokenRequest(_ context.Context, id string, scopes []string) (op.TokenRequest, error) {
	return &oidc.JWTTokenRequest{Subject: id, Audience: asked(scopes, "aud:"), Scopes: scopes}, nil
}

func (s *store) CreateAccessToken(_ context.Context, r op.TokenRequest) (string, time.Time, error) {
	life := time.Minute
	for _, text := range asked(r.GetScopes(), "life:") {
		var err error
		if life, err = time.ParseDuration(text); err != nil {
			return "", time.Time{}, err
		}
	}
	return rand.Text(), time.Now().Add(life), nil
}

func (s *store) GetPrivateClaimsFromScopes(_ context.Context, _, _ string, scopes []string) (map[string]any, error) {
	claims := map[string]any{}
	for _, text := range asked(scopes, "repository:") {
		claims["repository"] = text
	}
	return claims, nil
}

func asked(scopes []string, prefix string) []string {
	var out []string
	for _, s := range scopes {
		if text, ok := strings.CutPrefix(s, prefix); ok {
			out = append(out, text)
		}
	}
	return out
}
