package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// write is what a tool is about to write, whatever the client calls the tool.
type write struct {
	FilePath  string  `json:"file_path"`
	Path      string  `json:"path"`     // as other clients call it
	Absolute  string  `json:"filePath"` // and others
	Content   *string `json:"content"`
	OldString *string `json:"old_string"`
	NewString string  `json:"new_string"`
	All       bool    `json:"replace_all"`
	Edits     []struct {
		OldString string `json:"old_string"`
		NewString string `json:"new_string"`
		All       bool   `json:"replace_all"`
	} `json:"edits"`
}

// file returns the file that the tool writes, absolute; "" if it writes none.
func (w *write) file(cwd string) string {
	for _, f := range []string{w.FilePath, w.Path, w.Absolute} {
		if f == "" {
			continue
		}
		if !filepath.IsAbs(f) {
			f = filepath.Join(cwd, f)
		}
		return filepath.Clean(f)
	}
	return ""
}

// writes reports whether the tool changes a file at all.
func (w *write) writes() bool { return w.Content != nil || w.OldString != nil || len(w.Edits) > 0 }

// after returns what the file will hold. ok is false where that cannot be told: then
// the client will fail too, or the tool is another one.
func (w *write) after(file string) (text []byte, ok bool) {
	if w.Content != nil {
		return []byte(*w.Content), true
	}
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	edits := w.Edits
	if w.OldString != nil {
		edits = append(edits[:0:0], struct {
			OldString string `json:"old_string"`
			NewString string `json:"new_string"`
			All       bool   `json:"replace_all"`
		}{*w.OldString, w.NewString, w.All})
	}
	s := string(old)
	for _, e := range edits {
		n := 1
		if e.All {
			n = -1
		}
		if e.OldString == "" && s != "" || e.OldString != "" && !strings.Contains(s, e.OldString) {
			return nil, false
		}
		s = strings.Replace(s, e.OldString, e.NewString, n)
	}
	return []byte(s), true
}

// beforeTool keeps a secret, a bad name or a memory about a person out of what is
// shared, before it is written.
func (h *handler) beforeTool(ctx context.Context) (Answer, error) {
	w, file, p, err := h.writing(ctx)
	if err != nil || file == "" {
		return Answer{}, err
	}
	rel, inside := within(p.Team, file)
	if !inside || !strings.EqualFold(filepath.Ext(file), memory.Extension) || strings.HasPrefix(filepath.Base(file), ".") {
		return Answer{}, nil
	}
	path, err := memory.ParsePath(memory.NormalizePath(filepath.ToSlash(rel)))
	var bad *memory.Error
	if errors.As(err, &bad) && len(bad.Violations) > 0 {
		v := bad.Violations[0]
		return deny(file, []memory.Violation{v}), nil
	}
	if err != nil {
		return Answer{}, err
	}
	text, ok := w.after(file)
	if !ok {
		return Answer{}, nil
	}
	violations, _, err := p.Guard.Check(ctx, path, text)
	if err != nil {
		return Answer{}, err // the sync agent's guard stands behind this one, and fails closed
	}
	if len(violations) == 0 {
		return Answer{}, nil
	}
	return deny(file, violations), nil
}

// maxReasons bounds how many places a refusal names.
const maxReasons = 10

func deny(file string, violations []memory.Violation) Answer {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is shared with the team, and this may not be:", file)
	for i, v := range violations {
		if i == maxReasons {
			fmt.Fprintf(&b, "\n- and %d more places", len(violations)-i)
			break
		}
		b.WriteString("\n- ")
		if v.Line > 0 {
			fmt.Fprintf(&b, "line %d: ", v.Line)
		}
		fmt.Fprintf(&b, "%s (%s)", v.Message, v.Rule)
	}
	return Answer{Deny: b.String()}
}

// nudgeWait bounds how long a tool waits for the daemon to be told.
const nudgeWait = 100 * time.Millisecond

// afterTool has the daemon look at once at what was written into the shared directory.
func (h *handler) afterTool(ctx context.Context) (Answer, error) {
	_, file, p, err := h.writing(ctx)
	if err != nil || file == "" || p.SyncNow == nil {
		return Answer{}, err
	}
	if _, inside := within(p.Team, file); inside {
		limited, cancel := context.WithTimeout(ctx, nudgeWait)
		defer cancel()
		p.SyncNow(limited)
	}
	return Answer{}, nil
}

// writing reads the tool's input. file is "" when it writes no file, or clearly none of
// a project's memories; the project is not even looked for then.
func (h *handler) writing(ctx context.Context) (w write, file string, p Project, err error) {
	if json.Unmarshal(h.in.ToolInput, &w) != nil || !w.writes() {
		return w, "", Project{}, nil
	}
	if file = w.file(h.in.CWD); file == "" {
		return w, "", Project{}, nil
	}
	p, err = h.engine.Project(ctx, h.in.CWD, file)
	if err != nil || p.Team == "" {
		return w, "", Project{}, err
	}
	return w, file, p, nil
}

// within returns the path of file below dir, by names and by where links lead.
func within(dir, file string) (rel string, ok bool) {
	for _, d := range []string{dir, real(dir)} {
		for _, f := range []string{file, filepath.Join(real(filepath.Dir(file)), filepath.Base(file))} {
			if r, err := filepath.Rel(d, f); err == nil && filepath.IsLocal(r) && r != "." {
				return r, true
			}
		}
	}
	return "", false
}

// real resolves links as far as the path exists.
func real(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(real(parent), filepath.Base(path))
	}
	return path
}
