package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/memsvc/memsvc/internal/config"
	"github.com/memsvc/memsvc/internal/hub/authn"
)

// identityCheckEvery is how often the identity file is looked at again.
const identityCheckEvery = 5 * time.Second

// maxIdentityBytes bounds the identity file.
const maxIdentityBytes = 1 << 20

// identityFile says whose JWTs and client certificates count. A changed file is taken
// in without a restart; one that cannot be used is told in the log, and what held holds
// on.
type identityFile struct {
	name     string
	clientCA bool // client certificates are verified
	auth     *authn.Authenticator
	log      *slog.Logger
	stamp    string // of the file as last looked at
}

// load takes the file in. The error names every mistake in it.
func (f *identityFile) load() error {
	f.stamp = f.stat()
	t, err := readTrust(f.name, f.clientCA)
	if err != nil {
		return err
	}
	return f.auth.Trusted(t)
}

// follow takes in changes until ctx ends.
func (f *identityFile) follow(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if f.stat() == f.stamp {
			continue
		}
		if err := f.load(); err != nil {
			f.log.Error("identity file changed and cannot be used; what held holds on", "error", err.Error())
			continue
		}
		f.log.Info("identity file changed and was taken in", "file", f.name)
	}
}

func (f *identityFile) stat() string {
	info, err := os.Stat(f.name)
	if err != nil {
		return "?"
	}
	return fmt.Sprintf("%d/%d", info.Size(), info.ModTime().UnixNano())
}

// readTrust reads and checks an identity file. clientCA says that client certificates
// are verified.
func readTrust(name string, clientCA bool) (*authn.Trust, error) {
	t, err := decodeTrust(name)
	if err == nil {
		err = t.Check()
		if t.ClientCertificates != nil && !clientCA {
			err = errors.Join(err, errors.New("client-certificates: needs --tls-client-ca, whose authorities vouch for them"))
		}
	}
	if err != nil {
		return nil, authn.Within("--identity-file "+name, err)
	}
	return t, nil
}

// decodeTrust reads one YAML document without unknown or doubled keys.
func decodeTrust(name string) (*authn.Trust, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxIdentityBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxIdentityBytes {
		return nil, fmt.Errorf("over %d bytes", maxIdentityBytes)
	}
	t := &authn.Trust{}
	if err := config.UnmarshalStrict(text, t); err != nil {
		return nil, err
	}
	return t, nil
}
