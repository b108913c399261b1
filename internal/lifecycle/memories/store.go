package memories

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/memory"
)

// Guard judges what is about to be shared.
type Guard interface {
	// Check returns the reasons to refuse content at path below team/, and warnings.
	// An error is that there is no verdict, which is a refusal too.
	Check(ctx context.Context, path memory.Path, content []byte) (violations, warnings []memory.Violation, err error)
}

// RefusedError says why the guard lets a text not into the team's directory. It holds
// no part of the text.
type RefusedError struct {
	Ref        Ref
	Violations []memory.Violation
}

// Error names each place and rule.
func (e *RefusedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is refused", e.Ref)
	for i, v := range e.Violations {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		where := ""
		if v.Line > 0 {
			where = fmt.Sprintf("line %d: ", v.Line)
		}
		fmt.Fprintf(&b, "%s%s%s (%s)", sep, where, v.Message, v.Rule)
	}
	return b.String()
}

// Ref names a memory: "x.md" is personal, "team/x.md" the team's.
type Ref struct {
	Scope memory.Scope
	Path  memory.Path // below the directory of its scope
}

// String is the form that ParseRef reads.
func (r Ref) String() string {
	if r.Scope == memory.ScopeTeam {
		return memdir.TeamDir + "/" + string(r.Path)
	}
	return string(r.Path)
}

// ParseRef reads a Ref, or says which path rule it breaks.
func ParseRef(s string) (Ref, error) {
	scope := memory.ScopePrivate
	if rest, ok := strings.CutPrefix(s, memdir.TeamDir+"/"); ok {
		scope, s = memory.ScopeTeam, rest
	}
	p, err := memory.ParsePath(memory.NormalizePath(s))
	return Ref{Scope: scope, Path: p}, err
}

// Store is the memories of one project. It holds no file open and no state: every call
// looks at the disk.
type Store struct {
	personal, team string
	guard          Guard
	// NoTeam is why there is no team directory, for whoever asks for one; nil = nobody
	// linked one.
	NoTeam error
	// Now is the clock by which a changed memory says when it was changed; nil = the
	// system's.
	Now func() time.Time
	// Authors returns who shared these very texts of the team's, by path, where that is
	// known; nil = nobody knows. A name is a stranger's text.
	Authors func(texts map[memory.Path]memory.ETag) (map[memory.Path]string, error)
}

func (s *Store) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// New returns the store of a personal directory and a team's, absolute; neither need
// exist. team may be "" for a project without a shared part.
func New(personal, team string, guard Guard) *Store {
	return &Store{personal: personal, team: team, guard: guard}
}

// AuthorsOf returns who shared those of these memories that are the team's, as far as it is
// known of the texts as they are: one that was changed here since has no author yet.
func (s *Store) AuthorsOf(list ...Memory) map[Ref]string {
	if s.Authors == nil {
		return nil
	}
	texts := map[memory.Path]memory.ETag{}
	for _, m := range list {
		if m.Scope == memory.ScopeTeam {
			texts[m.Path] = memory.ETagOf(m.Content)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	known, err := s.Authors(texts)
	if err != nil {
		return nil // a memory is worth more than its author's name
	}
	authors := make(map[Ref]string, len(known))
	for p, name := range known {
		authors[Ref{memory.ScopeTeam, p}] = name
	}
	return authors
}

// Dir returns the directory of a scope, "" if there is none.
func (s *Store) Dir(scope memory.Scope) string {
	if scope == memory.ScopeTeam {
		return s.team
	}
	return s.personal
}

// File returns where the memory lies.
func (s *Store) File(r Ref) string {
	return filepath.Join(s.Dir(r.Scope), filepath.FromSlash(string(r.Path)))
}

func (s *Store) open(scope memory.Scope) (*memdir.Dir, error) {
	if s.Dir(scope) == "" {
		if s.NoTeam != nil {
			return nil, s.NoTeam
		}
		return nil, errors.New("this project has no team directory; link one first: memsync-agent link")
	}
	return memdir.Open(s.Dir(scope))
}

func (s *Store) create(scope memory.Scope) (*memdir.Dir, error) {
	if s.Dir(scope) == "" {
		return s.open(scope)
	}
	return memdir.Create(s.Dir(scope))
}

// Memory is a memory with its text.
type Memory struct {
	Ref
	Content []byte
	Front   memory.Frontmatter
	// Unreadable is why the frontmatter could not be read; Front is empty then.
	Unreadable error
	ModTime    time.Time // of the file
}

// maxMarkerBytes is far more than any redaction's marker has.
const maxMarkerBytes = 1 << 10

// IsRedacted reports whether a redaction's marker lies there. It reads no long file.
func (s *Store) IsRedacted(ctx context.Context, r Ref) bool {
	if fi, err := os.Lstat(s.File(r)); err != nil || fi.Size() > maxMarkerBytes {
		return false
	}
	m, err := s.Get(ctx, r)
	return err == nil && m.Redacted()
}

// Type returns the type and whether it is one of the four.
func (m *Memory) Type() (memory.Type, bool) { return memory.TypeOf(m.Path, m.Front) }

// Redacted reports whether an admin removed the text: what is here is the marker alone.
func (m *Memory) Redacted() bool { return memory.IsRedactionMarker(m.Content) }

// Name returns the name, or the file's without one.
func (m *Memory) Name() string {
	if m.Front.Name != "" {
		return m.Front.Name
	}
	return m.Path.Base()
}

// Age returns the memory's own time: when it was modified, as it says itself, else the
// file's time (SPEC 6.6).
func (m *Memory) Age() time.Time {
	if !m.Front.Modified.IsZero() {
		return m.Front.Modified
	}
	return m.ModTime
}

// Body returns the text below the frontmatter.
func (m *Memory) Body() []byte {
	if m.Front.Present {
		return m.Content[m.Front.BodyStart:]
	}
	return m.Content
}

// Get reads one memory; a missing one is fs.ErrNotExist.
func (s *Store) Get(_ context.Context, r Ref) (Memory, error) {
	d, err := s.open(r.Scope)
	if err != nil {
		return Memory{}, err
	}
	defer func() { _ = d.Close() }() // nothing was written
	return read(d, r)
}

func read(d *memdir.Dir, r Ref) (Memory, error) {
	content, mod, err := d.Read(r.Path)
	if err != nil {
		return Memory{}, err
	}
	m := Memory{Ref: r, Content: content, ModTime: mod}
	m.Front, _, m.Unreadable = memory.ParseFrontmatter(content)
	return m, nil
}

// List reads all memories, indexes left out: the personal ones, then the team's, each in
// path order. What cannot be read, or has a name that cannot be a memory's, is told in
// skipped. A redaction's marker is no memory.
func (s *Store) List(ctx context.Context) (list []Memory, skipped []error, err error) {
	list, skipped, err = s.ListAll(ctx)
	return slices.DeleteFunc(list, func(m Memory) bool { return m.Redacted() }), skipped, err
}

// ListAll is List with the markers of redactions, for whoever shows or counts files.
func (s *Store) ListAll(ctx context.Context) (list []Memory, skipped []error, err error) {
	for _, scope := range s.scopes() {
		err := s.each(ctx, scope, func(d *memdir.Dir, f memdir.File) {
			m, err := read(d, Ref{scope, f.Path})
			switch {
			case errors.Is(err, fs.ErrNotExist): // gone meanwhile
			case err != nil:
				skipped = append(skipped, err)
			default:
				list = append(list, m)
			}
		}, &skipped)
		if err != nil {
			return nil, nil, err
		}
	}
	return list, skipped, nil
}

func (s *Store) scopes() []memory.Scope {
	if s.team == "" {
		return []memory.Scope{memory.ScopePrivate}
	}
	return []memory.Scope{memory.ScopePrivate, memory.ScopeTeam}
}

// each visits the memories of a scope; a directory that is not there has none.
func (s *Store) each(ctx context.Context, scope memory.Scope, visit func(*memdir.Dir, memdir.File), skipped *[]error) error {
	d, err := s.open(scope)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // nothing was written
	files, bad, err := d.Files(ctx)
	if err != nil {
		return err
	}
	*skipped = append(*skipped, bad...)
	for _, f := range files {
		if !memory.IsIndex(f.Path) {
			visit(d, f)
		}
	}
	return nil
}

// Find returns the one memory that text means: its ref, its file, or its name. One that
// nobody has is fs.ErrNotExist; one that several have is an error that lists them.
func (s *Store) Find(ctx context.Context, text string) (Memory, error) {
	if r, err := ParseRef(s.below(text)); err == nil {
		m, err := s.Get(ctx, r)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return m, err
		}
	}
	list, _, err := s.ListAll(ctx)
	if err != nil {
		return Memory{}, err
	}
	for _, same := range []func(m *Memory) bool{
		func(m *Memory) bool { return m.Front.Name == text },
		func(m *Memory) bool { return m.Path.Base() == text || m.Path.Base() == text+memory.Extension },
		func(m *Memory) bool { return strings.EqualFold(m.Front.Name, text) },
	} {
		var found []Memory
		for _, m := range list {
			if same(&m) {
				found = append(found, m)
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			var refs []string
			for _, m := range found {
				refs = append(refs, m.String())
			}
			slices.Sort(refs)
			return Memory{}, fmt.Errorf("several memories are called %q: %s; name the file", text, strings.Join(refs, ", "))
		}
	}
	return Memory{}, fmt.Errorf("no memory is called %q: %w", text, fs.ErrNotExist)
}

// below turns the absolute name of a file in one of the directories into a ref's form.
func (s *Store) below(text string) string {
	if !filepath.IsAbs(text) {
		return text
	}
	for _, scope := range []memory.Scope{memory.ScopeTeam, memory.ScopePrivate} {
		dir := s.Dir(scope)
		if rel, err := filepath.Rel(dir, text); dir != "" && err == nil && filepath.IsLocal(rel) {
			r := Ref{Scope: scope, Path: memory.Path(filepath.ToSlash(rel))}
			return r.String()
		}
	}
	return text
}
