package client

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// maxTokenBytes bounds a token file; a larger one is some other file.
const maxTokenBytes = 16 << 10

// tokenSource sends the token of a file with every call. The file is looked at on
// every call, which costs one stat, and read when it is another one than before.
type tokenSource struct {
	file   string
	static string
	secure bool
	// optional says that a file which is not there means no token; see Options.
	optional bool
	cert     string // file of the client certificate; "" = none

	mu    sync.Mutex // guards what follows
	seen  fileState
	token string
}

// fileState tells one writing of a file from the next.
type fileState struct {
	mtime time.Time
	size  int64
	ok    bool
}

func stateOf(file string) fileState {
	fi, err := os.Stat(file)
	if err != nil {
		return fileState{}
	}
	return fileState{mtime: fi.ModTime(), size: fi.Size(), ok: true}
}

// GetRequestMetadata returns the authorization header, as gRPC asks for it.
func (t *tokenSource) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := t.current()
	if err != nil || token == "" {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity makes gRPC refuse to send a token in the clear, unless
// Options say so.
func (t *tokenSource) RequireTransportSecurity() bool { return t.secure }

func (t *tokenSource) current() (string, error) {
	if t.file == "" {
		return t.static, nil
	}
	state := stateOf(t.file)
	t.mu.Lock()
	defer t.mu.Unlock()
	if state.ok && state == t.seen {
		return t.token, nil
	}
	token, err := t.read()
	if err != nil {
		return "", err
	}
	t.seen, t.token = state, token
	return token, nil
}

func (t *tokenSource) read() (string, error) {
	if t.optional {
		if _, err := os.Lstat(t.file); errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
	}
	return ReadTokenFile(t.file)
}

// replaced reports whether the token is another one than was used.
func (t *tokenSource) replaced(used string) bool {
	now, err := t.current()
	return err == nil && now != used
}

// doubt makes the next call read the file, whatever its size and time say: the hub did
// not take what was read last, and a rotated token is often as long and, where a tool
// keeps the times or the disk counts seconds, as old as the one before.
func (t *tokenSource) doubt() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = fileState{}
}

// fingerprint changes when the credential changes, token or client certificate, or the
// reason why there is none. What it finds in the token's file is what the next call sends.
func (t *tokenSource) fingerprint() [sha256.Size]byte {
	h := sha256.New()
	if t.file != "" {
		t.doubt()
		if token, err := t.current(); err != nil {
			fmt.Fprintf(h, "no token: %v\n", err)
		} else {
			fmt.Fprintf(h, "token: %s\n", token)
		}
	}
	if t.cert != "" {
		pem, err := os.ReadFile(t.cert)
		fmt.Fprintf(h, "certificate: %s %v\n", pem, err)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// ReadTokenFile returns the token in a file, without surrounding blanks. A file that
// cannot be read, is empty, or holds more than one word is an ErrUnauthenticated
// that names the file and never its text.
func ReadTokenFile(file string) (string, error) {
	refuse := func(why string) error {
		return &memory.Error{Reason: memory.ReasonUnauthenticated, Message: fmt.Sprintf("token file %s: %s", file, why)}
	}
	f, err := os.Open(file)
	if err != nil {
		if os.IsNotExist(err) {
			return "", refuse("no such file; write the token there, or log in")
		}
		return "", refuse("cannot be read; check its owner and mode")
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil && fi.IsDir() {
		return "", refuse("it is a directory; name the file in it that holds the token")
	}
	buf := make([]byte, maxTokenBytes+1)
	n := 0
	for n < len(buf) {
		m, err := f.Read(buf[n:])
		n += m
		if err != nil {
			break
		}
	}
	token := strings.TrimSpace(string(buf[:n]))
	switch {
	case n > maxTokenBytes:
		return "", refuse("too large to be a token")
	case token == "":
		return "", refuse("it is empty; write the token there, or log in")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", refuse("it holds more than one word or characters no token has; want the token alone")
	}
	return token, nil
}
