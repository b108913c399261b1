package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/inject"
	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

// write is what a tool is about to write, whatever the client calls the tool and its
// fields.
type write struct {
	FilePath  string  `json:"file_path"`
	Path      string  `json:"path"`
	Camel     string  `json:"filePath"`
	Content   *string `json:"content"`
	Contents  *string `json:"contents"`
	OldString *string `json:"old_string"`
	NewString string  `json:"new_string"`
	All       bool    `json:"replace_all"`
	OldCamel  *string `json:"oldString"`
	NewCamel  string  `json:"newString"`
	AllCamel  bool    `json:"replaceAll"`
	Edits     []edit  `json:"edits"`
	Command   string  `json:"command"` // a patch, or a shell's command, which is none
	Patch     string  `json:"patchText"`
	Input     string  `json:"input"`
}

type edit struct {
	OldString string `json:"old_string"`
	NewString string `json:"new_string"`
	All       bool   `json:"replace_all"`
}

// writing is a file that a tool changes.
type writing struct {
	file string // absolute
	// after returns what the file will hold. ok is false where that cannot be told: then
	// the client will fail too, or the tool is another one.
	after func() (text []byte, ok bool)
}

// writings returns the files that a tool changes; none for a tool that only reads, or
// that nothing is known of.
func writings(input json.RawMessage, cwd string) (out []writing) {
	var w write
	if json.Unmarshal(input, &w) != nil {
		// Some clients hand a patch over as a bare text.
		if json.Unmarshal(input, &w.Input) != nil {
			return nil
		}
	}
	for _, text := range []string{w.Command, w.Patch, w.Input} {
		for _, p := range parsePatch(text) {
			from := absolute(cwd, p.from)
			out = append(out, writing{absolute(cwd, p.to), func() ([]byte, bool) {
				old, err := readFile(from)
				if err != nil && !p.fresh {
					return nil, false
				}
				return []byte(p.apply(string(old))), true
			}})
		}
	}
	file := cmp.Or(w.FilePath, w.Path, w.Camel)
	if file == "" || w.Content == nil && w.Contents == nil && w.OldString == nil && w.OldCamel == nil && len(w.Edits) == 0 {
		return out
	}
	file = absolute(cwd, file)
	return append(out, writing{file, func() ([]byte, bool) { return w.after(file) }})
}

func absolute(cwd, file string) string {
	if !filepath.IsAbs(file) {
		file = filepath.Join(cwd, file)
	}
	return filepath.Clean(file)
}

// readFile reads what a tool is about to change. What is no regular file, or larger than
// any memory, is not for us to judge: a pipe would hold the session, a device never ends.
func readFile(name string) ([]byte, error) {
	fi, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular() || fi.Size() > memory.MaxMemoryBytes:
		return nil, errors.New("no file that could be a memory")
	}
	return os.ReadFile(name)
}

// after is what a file holds once the tool has written it.
func (w *write) after(file string) (text []byte, ok bool) {
	for _, whole := range []*string{w.Content, w.Contents} {
		if whole != nil {
			return []byte(*whole), true
		}
	}
	old, err := readFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	edits := w.Edits
	switch {
	case w.OldString != nil:
		edits = []edit{{*w.OldString, w.NewString, w.All}}
	case w.OldCamel != nil:
		edits = []edit{{*w.OldCamel, w.NewCamel, w.AllCamel}}
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
	for _, w := range writings(h.in.ToolInput, h.in.CWD) {
		if a, err := h.judge(ctx, w); err != nil || a != (Answer{}) {
			return a, err
		}
	}
	return Answer{}, nil
}

// ignoreFile lies in the shared directory and is this machine's own.
const ignoreFile = ".memsyncignore"

// judge says whether a file may become what a tool makes of it. A link is judged for where
// it is and for where it leads.
func (h *handler) judge(ctx context.Context, w writing) (Answer, error) {
	shared, closed, err := h.shared(ctx, w.file)
	if closed != nil {
		return *closed, nil
	}
	for _, s := range shared {
		a, checkErr := s.check(ctx, w)
		if a != (Answer{}) {
			return a, nil
		}
		err = errors.Join(err, checkErr)
	}
	return Answer{}, err // the sync agent's guard stands behind this one, and fails closed
}

// sharedFile is a file below a directory that is shared.
type sharedFile struct {
	Shared
	rel string // below Dir
}

// shared returns as what a file is shared: by the project at hand, or by any link of this
// machine. closed denies a file of a team that is closed to the project. With an error it
// returns what could be found.
func (h *handler) shared(ctx context.Context, file string) (as []sharedFile, closed *Answer, err error) {
	p, err := h.engine.Project(ctx, h.in.CWD, file)
	ways := waysTo(file)
	if p.ClosedTeam != "" && len(below(p.ClosedTeam, ways)) > 0 {
		return nil, &Answer{Deny: inject.CutChars(p.Closed, maxClosed)}, nil
	}
	var dirs []Shared
	if err == nil && p.Team != "" {
		dirs = append(dirs, Shared{p.Team, func() memories.Guard { return p.Guard }, p.SyncNow})
	}
	links, linksErr := h.engine.Shared(ctx)
	seen := map[string]bool{}
	for _, d := range append(dirs, links...) {
		real := memdir.RealPath(d.Dir)
		if seen[real] {
			continue // the project's own link
		}
		seen[real] = true
		for _, rel := range append(below(d.Dir, ways), below(real, ways)...) {
			if s := (sharedFile{d, rel}); !slices.ContainsFunc(as, func(o sharedFile) bool { return o.Dir == s.Dir && o.rel == rel }) {
				as = append(as, s)
			}
		}
	}
	return as, nil, errors.Join(err, linksErr)
}

// check says whether the file may become what a tool makes of it.
func (s sharedFile) check(ctx context.Context, w writing) (Answer, error) {
	if s.rel == ignoreFile {
		return Answer{}, nil
	}
	path, err := memory.ParsePath(memory.NormalizePath(filepath.ToSlash(s.rel)))
	var bad *memory.Error
	if errors.As(err, &bad) && len(bad.Violations) > 0 {
		v := bad.Violations[0]
		return deny(w.file, []memory.Violation{v}), nil
	}
	if err != nil {
		return Answer{}, err
	}
	text, ok := w.after()
	if !ok {
		return Answer{}, nil
	}
	violations, _, err := s.Guard().Check(ctx, path, text)
	if err != nil || len(violations) == 0 {
		return Answer{}, err
	}
	return deny(w.file, violations), nil
}

// maxReasons bounds how many places a refusal names.
const maxReasons = 10

// maxFileChars bounds how long a file's name is told; a model may have made it up.
const maxFileChars = 300

func deny(file string, violations []memory.Violation) Answer {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is shared with the team, and this may not be:", middle(file, maxFileChars))
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
	return Answer{Deny: inject.CutChars(inject.Neutral(b.String()), inject.MaxContextChars)}
}

// maxToldIndexes bounds what is said of indexes past their caps, in inject.Chars: a patch may
// hold many.
const maxToldIndexes = 2000

// nudgeWait bounds how long a tool waits for the daemon to be told.
const nudgeWait = 100 * time.Millisecond

// afterTool has the daemon look at once at what was written into the shared directory, and
// tells of an index that is past its caps now, and brings what was chosen for the prompt
// after its hook had answered.
func (h *handler) afterTool(ctx context.Context) (Answer, error) {
	err := errors.Join(h.notice(ctx), h.nudge(ctx))
	told, capErr := h.overCap(ctx)
	told = inject.CutChars(inject.Neutral(told), maxToldIndexes)
	late, lateErr := h.late(ctx, inject.MaxContextChars-inject.Chars(told)-len("\n\n"))
	return Answer{Context: join(told, late)}, errors.Join(err, capErr, lateErr)
}

// notice notes where the client keeps its memories.
func (h *handler) notice(ctx context.Context) error {
	for _, w := range writings(h.in.ToolInput, h.in.CWD) {
		if _, ok := memdir.DirOf(w.file); ok {
			return h.engine.Saw(ctx, h.in.CWD, w.file)
		}
	}
	return nil
}

// nudge tells the daemon that something was written for it.
func (h *handler) nudge(ctx context.Context) error {
	for _, w := range writings(h.in.ToolInput, h.in.CWD) {
		shared, _, err := h.shared(ctx, w.file)
		for _, s := range shared {
			if s.SyncNow == nil {
				continue
			}
			limited, cancel := context.WithTimeout(ctx, nudgeWait)
			defer cancel()
			s.SyncNow(limited)
			return nil // it looks at everything
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxLinks bounds how many links a file is followed through.
const maxLinks = 16

// waysTo returns the names that a file has: the given one, the one with the links of its
// directory resolved, and, of a link, those of what it leads to, which need not be there.
func waysTo(file string) []string {
	ways := []string{file}
	for range maxLinks {
		file = filepath.Join(memdir.RealPath(filepath.Dir(file)), filepath.Base(file))
		if !slices.Contains(ways, file) {
			ways = append(ways, file)
		}
		to, err := os.Readlink(file)
		if err != nil {
			break // no link
		}
		file = absolute(filepath.Dir(file), to)
	}
	return ways
}

// below returns the paths that names have below a directory, each once.
func below(dir string, names []string) (rels []string) {
	for _, n := range names {
		if r, err := filepath.Rel(dir, n); err == nil && filepath.IsLocal(r) && r != "." && !slices.Contains(rels, r) {
			rels = append(rels, r)
		}
	}
	return rels
}
