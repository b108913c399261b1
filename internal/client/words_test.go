package client

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// TestPlainWords meets the usual mistakes with a hub's address and files, and expects
// what to do about them instead of what gRPC says.
func TestPlainWords(t *testing.T) {
	rest := httptest.NewServer(http.NotFoundHandler())
	defer rest.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := free.Addr().String()
	free.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(ca, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, addr, ca, want string
	}{
		{"REST port", rest.Listener.Addr().String(), "", "speaks HTTP"},
		{"TLS hub without --ca-file", secure.Listener.Addr().String(), "", "--ca-file"},
		{"plain hub with --ca-file", rest.Listener.Addr().String(), ca, "without TLS"},
		{"nobody", nobody, "", "nothing listens there"},
	} {
		c, err := New(Options{Addr: tc.addr, CAFile: tc.ca, Token: "msv_x", Attempts: 1, CallTimeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Project(t.Context(), memory.ProjectKey{Team: "acme", Project: "pay"}, memory.Cursor{})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "desc =") {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
		c.Close()
	}
}

func TestTokenFileDirectory(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadTokenFile(dir); err == nil || !strings.Contains(err.Error(), dir+": it is a directory") {
		t.Errorf("%v", err)
	}
}
