package agent

import (
	"path/filepath"
	"testing"

	"github.com/memsvc/memsvc/internal/config"
	"github.com/memsvc/memsvc/internal/config/configtest"
)

// TestReference holds docs/cli.md against the grammar: every command, every flag, with its
// variable and its default.
func TestReference(t *testing.T) {
	model, err := config.Model(&grammar{}, options(nil, nil, "~/.local/state/memsync"))
	if err != nil {
		t.Fatal(err)
	}
	configtest.Reference{
		File: filepath.Join("..", "..", "docs", "cli.md"), Model: model,
		Sets: map[string][]string{
			"a link":          {"hub", "token-file", "team", "project", "dir", "plaintext", "ca-file", "cert-file", "key-file"},
			"one link of all": {"link"},
		},
	}.Check(t, *update)
}
