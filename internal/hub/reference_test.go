package hub

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/memsvc/memsvc/internal/config"
	"github.com/memsvc/memsvc/internal/config/configtest"
)

// TestReference holds docs/cli.md against the grammar: every command, every flag, with its
// variable and its default.
func TestReference(t *testing.T) {
	model, err := config.Model(&grammar{}, options(nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	configtest.Reference{
		File: filepath.Join("..", "..", "docs", "cli.md"), Model: model,
		Sets: map[string][]string{"a running hub": {"hub", "token-file", "plaintext", "ca-file", "cert-file", "key-file", "timeout"}},
	}.Check(t, flag.Lookup("update").Value.String() == "true")
}
