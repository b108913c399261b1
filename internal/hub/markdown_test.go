package hub_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/secretscan"
)

// memsvc runs a command against h with a token.
func memsvc(t *testing.T, h *hubtest.Hub, tokenFile string, args ...string) (out string, code int) {
	t.Helper()
	var b bytes.Buffer
	code = hub.Main(t.Context(), append(args, "--hub", h.GRPCAddr, "--token-file", tokenFile, "--team", "acme", "--project", "app"), &b, &b)
	return b.String(), code
}

// markdownOf returns the files below a directory.
func markdownOf(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		out[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestMarkdownRoundTrip imports more than one commit holds, by number and by size, and
// exports the same again: with odd names, empty and large files.
func TestMarkdownRoundTrip(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	token := h.TokenFile("acme", "app", "writer")
	from := t.TempDir()
	want := map[string]string{}
	put := func(name, text string) {
		file := filepath.Join(from, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		want[memory.NormalizePath(name)] = text
	}
	for i := range memory.MaxCommitChanges + 3 {
		put(fmt.Sprintf("many/%d/n%d.md", i%7, i), fmt.Sprintf("note %d\n", i))
	}
	line := strings.Repeat("all work and no play makes a dull note ", 3) + "\n"
	large := strings.Repeat(line, memory.MaxMemoryBytes/len(line))
	for i := range memory.MaxCommitBytes/len(large) + 2 {
		put(fmt.Sprintf("large/l%d.md", i), large+fmt.Sprint(i))
	}
	put("empty.md", "")
	put("no-newline.md", "x")
	put("cafe\u0301.md", "in normal form D on disk\n")
	put("with space & (marks).md", "\r\nx\r\n")
	put("日本.md", "x\n")

	out, code := memsvc(t, h, token, "import", "--markdown", from)
	if code != 0 || !strings.Contains(out, fmt.Sprintf("import: %d memories committed to teams/acme/projects/app as revisions 1 to ", len(want))) {
		t.Fatalf("import: exit %d, %s", code, out)
	}
	to := filepath.Join(t.TempDir(), "out")
	if out, code := memsvc(t, h, h.TokenFile("acme", "app", "reader"), "export", "--markdown", to); code != 0 {
		t.Fatalf("export: exit %d, %s", code, out)
	}
	if d := cmp.Diff(want, markdownOf(t, to)); d != "" {
		t.Errorf("-imported +exported:\n%.2000s", d)
	}
	// What was exported is there already.
	out, code = memsvc(t, h, token, "import", "--markdown", to)
	if code != 0 || !strings.Contains(out, fmt.Sprintf("import: 0 memories committed to teams/acme/projects/app; %d there already", len(want))) {
		t.Errorf("again: exit %d, %s", code, out)
	}
}

// TestImportRefusals names each file that is refused, shows nothing that a terminal
// would act on, and exits with 3.
func TestImportRefusals(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good.md":          "good\n",
		"bell\a\x1b[2J.md": "x\n",
		"latin\xe9.md":     "x\n",
		"binary.md":        "x\x00",
		"notext.md":        "x\xff",
		"huge.md":          strings.Repeat("x", 300000),
		"marker.md":        "a\n<<<<<<< mine\nb\n=======\nc\n>>>>>>> yours\n",
		"caf\u00e9.md":     "one\n",
		"cafe\u0301.md":    "two\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, code := memsvc(t, h, h.TokenFile("acme", "app", "writer"), "import", "--markdown", dir)
	if code != 3 {
		t.Errorf("exit %d, want 3", code)
	}
	for _, want := range []string{
		": path-control: ", ": path-utf8: ", "binary.md:1: content-nul: ", "notext.md:1: content-utf8: ", "huge.md: content-size: the memory has 300000 bytes, the limit is 262144",
		"marker.md:2: merge-marker: ", ".md: path-collision: ", "good.md: warning: type-missing: ", "import: 2 memories committed", "7 files refused",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing says %q", want)
		}
	}
	if strings.ContainsAny(out, "\a\x1b\x00") || !utf8.ValidString(out) {
		t.Errorf("control characters reach the terminal: %q", out)
	}
	if t.Failed() {
		t.Log(out)
	}
}

// TestReaderImportsNothing has the hub's refusal end the import.
func TestReaderImportsNothing(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.md"), []byte("x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.TokenFile("acme", "app", "writer")
	out, code := memsvc(t, h, h.TokenFile("acme", "app", "reader"), "import", "--markdown", dir)
	if code != 1 || !strings.Contains(out, "needs the role writer") || !strings.Contains(out, "import: 0 memories committed") {
		t.Errorf("exit %d, %s", code, out)
	}
}

// TestGuardKnowsCodes has the guard find real codes of every shape, however a text
// quotes them.
func TestGuardKnowsCodes(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	ca := newAuthority(t)
	guard := secretscan.New(secretscan.Options{})
	for _, addr := range []string{"a:1", "127.0.0.1:7420", "memories.internal.example.com:7420", strings.Repeat("a", 200) + ".example:1"} {
		for _, pem := range []string{"", string(ca.pem)} {
			v := client.Invite{Hub: addr, Project: memory.ProjectKey{Team: "acme", Project: "app"}, Token: h.Token("acme", "app", "writer"), CA: pem}
			code, err := v.Encode()
			if err != nil {
				t.Fatal(err)
			}
			for _, form := range []string{"%s", "- `memsync-agent join %s --dir team`", "Use **%s** today.", "| code | %s |", "(%s).", "\"%s\",", "x\n\n    %s\n"} {
				found, err := guard.Scan("reference_x.md", fmt.Appendf(nil, form, code))
				if err != nil {
					t.Fatal(err)
				}
				rules := map[string]bool{}
				for _, f := range found {
					rules[f.Rule] = true
				}
				if !rules["memsvc-invitation"] {
					t.Errorf("%q with a code for %.20s, %d characters: found %v", form, addr, len(code), found)
				}
			}
		}
	}
}
