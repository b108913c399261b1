package configtest_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/config"
	"github.com/memsvc/memsvc/internal/config/configtest"
)

type where struct {
	Hub string `help:"Address." default:"h:1"`
}

type grammar struct {
	Config config.File `help:"Settings." placeholder:"FILE"`

	Token struct {
		List struct {
			where `embed:""`
			JSON  bool `name:"json" help:"As JSON | or not."`
		} `cmd:"" help:"List them."`
		Revoke struct {
			where `embed:""`
			IDs   []string       `arg:"" name:"ids" help:"Which."`
			Yes   bool           `cmdline:"" help:"Really."`
			TTL   *time.Duration `name:"ttl" help:"Until."`
			Loud  *bool          `help:"Say it." negatable:""`
		} `cmd:"" help:"Take them back."`
	} `cmd:"" help:"Tokens."`
	Secret struct{} `cmd:"" hidden:"" help:"Not for people."`
}

const page = `# Prose stays.

<!-- prog: every command -->
old
<!-- end -->
<!-- prog: a hub -->
<!-- end -->
<!-- prog: token -->
<!-- end -->
<!-- other: token -->
not ours
<!-- end -->
`

const want = `# Prose stays.

<!-- prog: every command -->
| flag | variable | default | meaning |
|---|---|---|---|
| ` + "`--config FILE` | `PROG_CONFIG`" + ` | – | Settings. |
<!-- end -->
<!-- prog: a hub -->
| flag | variable | default | meaning |
|---|---|---|---|
| ` + "`--hub HUB` | `PROG_HUB` | `h:1`" + ` | Address. |

Taken by ` + "`token list`, `token revoke`" + `.
<!-- end -->
<!-- prog: token -->
| command | what it does |
|---|---|
| ` + "`token list`" + ` | List them. |
| ` + "`token revoke ID…`" + ` | Take them back. |

| flag | of | variable | default | meaning |
|---|---|---|---|---|
| ` + "`--json` | token list | `PROG_JSON`" + ` | – | As JSON \| or not. |
| ` + "`--yes`" + ` | token revoke | – | – | Really. |
| ` + "`--ttl DURATION` | token revoke | `PROG_TTL`" + ` | – | Until. |
| ` + "`--[no-]loud` | token revoke | `PROG_LOUD`" + ` | – | Say it. |
<!-- end -->
<!-- other: token -->
not ours
<!-- end -->
`

// TestReference writes a page's tables, leaves the rest of it alone, and is content with
// what it wrote.
func TestReference(t *testing.T) {
	model, err := config.Model(&grammar{}, config.Options{Program: "prog", EnvPrefix: "PROG"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cli.md")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	r := configtest.Reference{File: file, Model: model, Sets: map[string][]string{"a hub": {"hub"}}}
	r.Check(t, true)
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
	r.Check(t, false)
}
