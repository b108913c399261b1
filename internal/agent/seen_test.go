package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
)

// seenWorld is a home with a client's directory, and a project.
type seenWorld struct {
	t                   *testing.T
	home, work, project string
}

func newSeenWorld(t *testing.T) seenWorld {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := seenWorld{t: t, home: home, work: filepath.Join(home, "work"), project: filepath.Join(home, ".claude", "projects")}
	for _, dir := range []string{filepath.Join(w.work, ".git"), filepath.Join(home, "other", ".git"), w.project} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"HOME": home, "MEMSYNC_STATE_DIR": filepath.Join(home, "state"), "MEMSYNC_CONFIG": "", "CLAUDE_CONFIG_DIR": "",
		"CLAUDE_COWORK_MEMORY_PATH_OVERRIDE": "", "CLAUDE_CODE_REMOTE_MEMORY_DIR": "", "CLAUDE_CODE_PROJECT_DIR_NAME": "",
	} {
		t.Setenv(name, value)
	}
	if err := os.Unsetenv("MEMSYNC_CONFIG"); err != nil {
		t.Fatal(err)
	}
	return w
}

// write makes a file with a memory, and returns its name.
func (w seenWorld) write(name string) string {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("---\nname: Rollback\ndescription: how to go back to the previous version\ntype: reference\n---\n\nargocd app rollback\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return name
}

// talk puts a conversation of a project beside a memory directory of a key.
func (w seenWorld) talk(key, cwd string) {
	w.t.Helper()
	file := filepath.Join(w.project, key, "s.jsonl")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(fmt.Sprintf(`{"type":"summary"}`+"\n"+`{"type":"user","cwd":%q,"message":{"content":"hi"}}`+"\n", cwd)), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// hook fires an event of a client that works in the project.
func (w seenWorld) hook(event string, fields map[string]any) string {
	w.t.Helper()
	fields["hook_event_name"], fields["cwd"], fields["session_id"] = event, w.work, "s"
	in, err := json.Marshal(fields)
	if err != nil {
		w.t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := Main(w.t.Context(), App{Args: []string{"hook", event}, Stdin: bytes.NewReader(in), Stdout: &out, Stderr: &errs, HookTime: patience}); code != ExitOK {
		w.t.Errorf("%s: exit %d, %s", event, code, errs.String())
	}
	return out.String()
}

func (w seenWorld) wrote(file string) {
	w.hook("PostToolUse", map[string]any{"tool_name": "Write", "tool_input": map[string]any{"file_path": file, "content": "x"}})
}

// place returns where the project's memories are now.
func (w seenWorld) place() place {
	w.t.Helper()
	c := &command{App: App{Now: time.Now}, ctx: w.t.Context(), state: stateDir(filepath.Join(w.home, "state")), g: &grammar{}}
	p, err := c.placeOf(placeFlags{}, w.work, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// TestEvidenceLasts: a directory in which the client was seen writing holds the project's
// memories for what comes after, until the client writes where they are computed to be.
func TestEvidenceLasts(t *testing.T) {
	w := newSeenWorld(t)
	file := w.write(filepath.Join(w.project, "-weird-key", "memory", "reference_rollback.md"))
	ask := func() string {
		return w.hook("UserPromptSubmit", map[string]any{"prompt": "roll back to the previous version"})
	}
	if got := ask(); got != "" {
		t.Fatalf("found before anything was seen: %s", got)
	}
	w.wrote(file)
	if got := ask(); !strings.Contains(got, "argocd app rollback") {
		t.Errorf("the prompt after it finds %q", got)
	}
	if p := w.place(); p.Dir != filepath.Dir(file) || p.Source != memdir.SourceEvidence || p.team != filepath.Join(filepath.Dir(file), "team") {
		t.Errorf("the place is %+v", p)
	}
	// The latest evidence counts.
	own := w.write(filepath.Join(w.project, memdir.Key(w.work), "memory", "a.md"))
	if p := w.place(); p.Dir != filepath.Dir(file) {
		t.Errorf("a directory that appeared: %+v", p)
	}
	w.wrote(own)
	if p := w.place(); p.Dir != filepath.Dir(own) || p.Source != memdir.SourceExisting {
		t.Errorf("after a write into the project's own: %+v", p)
	}
	w.talk("-weird-key", filepath.Join(w.work))
	w.wrote(file)
	if p := w.place(); p.Dir != filepath.Dir(file) {
		t.Errorf("the project's conversations lie beside it: %+v", p)
	}
	if err := os.RemoveAll(filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	if p := w.place(); p.Dir != filepath.Dir(own) {
		t.Errorf("a directory that is gone: %+v", p)
	}
}

// TestEvidenceOfAnotherProjectIsNone: a client that writes another project's memories, or what
// only looks like some, moves nothing.
func TestEvidenceOfAnotherProjectIsNone(t *testing.T) {
	for name, test := range map[string]func(w seenWorld) string{
		"conversations of another project": func(w seenWorld) string {
			w.talk("-other", filepath.Join(w.home, "other"))
			return w.write(filepath.Join(w.project, "-other", "memory", "x.md"))
		},
		"the project has its own": func(w seenWorld) string {
			w.write(filepath.Join(w.project, memdir.Key(w.work), "memory", "a.md"))
			return w.write(filepath.Join(w.project, "-other", "memory", "x.md"))
		},
		"not the client's": func(w seenWorld) string {
			return w.write(filepath.Join(w.work, "testdata", "projects", "k", "memory", "x.md"))
		},
		"no such directory": func(w seenWorld) string { return filepath.Join(w.project, "-none", "memory", "x.md") },
		"seen for another": func(w seenWorld) string {
			file := w.write(filepath.Join(w.project, "-other", "memory", "x.md"))
			other := w
			other.work = filepath.Join(w.home, "other")
			other.wrote(file)
			if p := other.place(); p.Dir != filepath.Dir(file) {
				w.t.Errorf("the other project: %+v", p)
			}
			return file
		},
		"linked for another": func(w seenWorld) string {
			file := w.write(filepath.Join(w.project, "-other", "memory", "x.md"))
			l := Link{Hub: "127.0.0.1:1", Team: "acme", Project: "git.example~other", Dir: filepath.Join(filepath.Dir(file), "team")}
			state := stateDir(filepath.Join(w.home, "state"))
			if err := state.storeLinks([]Link{l}); err != nil {
				w.t.Fatal(err)
			}
			if err := writeJSON(state.path(originsFile), map[string][]origin{l.ID(): {{Root: filepath.Join(w.home, "other")}}}); err != nil {
				w.t.Fatal(err)
			}
			return file
		},
		"a person chose": func(w seenWorld) string {
			w.t.Setenv("CLAUDE_COWORK_MEMORY_PATH_OVERRIDE", filepath.Join(w.home, "chosen"))
			return w.write(filepath.Join(w.project, "-weird-key", "memory", "x.md"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSeenWorld(t)
			file := test(w)
			before := w.place()
			w.wrote(file)
			if p := w.place(); p.Dir != before.Dir {
				t.Errorf("moved from %s to %s", before.Dir, p.Dir)
			}
		})
	}
}

// What is remembered is bounded, and the project seen last stays.
func TestEvidenceIsBounded(t *testing.T) {
	state := stateDir(t.TempDir())
	for i := range maxSeen + 3 {
		root := fmt.Sprintf("/src/%d", i)
		state.pruneSeen()
		if err := writeJSON(state.seenFile(root), seenPlace{Root: root, Dir: string(state), Time: time.Unix(int64(i), 0)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(state.allSeen()); n != maxSeen {
		t.Errorf("%d are kept, want %d", n, maxSeen)
	}
	if state.seenDir("/src/0") != "" || state.seenDir(fmt.Sprintf("/src/%d", maxSeen+2)) == "" {
		t.Error("the oldest gives way, not the newest")
	}
}
