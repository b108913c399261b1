package recall

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/memory"
)

// The bounds of a scan (SPEC 6.1).
const (
	MaxMemories  = 200 // the newest ones
	MaxHeadLines = 30  // of each
)

// maxHeadBytes bounds what is read of a file whose lines are long.
const maxHeadBytes = 16 << 10

// Memory is what a scan knows of a memory: its head, not its whole text.
type Memory struct {
	Ref         string // "x.md" is personal, "team/x.md" the team's
	File        string // absolute
	Scope       memory.Scope
	Type        memory.Type // "" where it is none of the four
	Name        string
	Description string
	Head        string    // of the body: what of the first MaxHeadLines lines is below the frontmatter
	Time        time.Time // the memory's own: modified, else the file's
	Pinned      bool
	Size        int64 // bytes of the file

	mtime time.Time
	// body is a hash of the words below the frontmatter, where the whole file was read; 0 =
	// not known, or none.
	body uint64
}

// Scan reads the heads of the newest memories below the two directories; team may be
// "". Directories that are not there have none. Files that cannot be read are left out,
// a lookup is worth more than a complaint, and lint complains; so are the markers of
// redactions.
func Scan(ctx context.Context, personal, team string) ([]Memory, error) {
	var all []Memory
	for _, d := range []struct {
		dir   string
		scope memory.Scope
	}{{personal, memory.ScopePrivate}, {team, memory.ScopeTeam}} {
		if d.dir == "" {
			continue
		}
		if err := list(ctx, d.dir, d.scope, &all); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b Memory) int {
		return cmp.Or(b.mtime.Compare(a.mtime), strings.Compare(a.Ref, b.Ref))
	})
	out := make([]Memory, 0, min(len(all), MaxMemories))
	buf := make([]byte, maxHeadBytes) // of every head in its turn
	for i := range all {
		if len(out) == MaxMemories {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if all[i].read(buf) == nil {
			out = append(out, all[i])
		}
	}
	return out, nil
}

// list adds the memories below dir with what the directory says of them.
func list(ctx context.Context, dir string, scope memory.Scope, all *[]Memory) error {
	// The directory itself may be a link; below it none is followed.
	dir, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	err = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil && e != nil && e.IsDir():
			return fs.SkipDir
		case err != nil:
			return nil // unreadable; lint says so
		case ctx.Err() != nil:
			return ctx.Err()
		case name == dir:
			return nil
		case strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir() && scope == memory.ScopePrivate && name == filepath.Join(dir, memdir.TeamDir):
			return fs.SkipDir
		case !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), memory.Extension) || e.Name() == memory.IndexName:
			return nil
		}
		fi, err := e.Info()
		if err != nil {
			return nil // gone meanwhile
		}
		rel := filepath.ToSlash(name[len(dir)+1:])
		ref := rel
		if scope == memory.ScopeTeam {
			ref = memdir.TeamDir + "/" + rel
		}
		*all = append(*all, Memory{Ref: ref, File: name, Scope: scope, Size: fi.Size(), mtime: fi.ModTime(), Time: fi.ModTime()})
		return nil
	})
	if err != nil {
		return fmt.Errorf("scan %s: %w", dir, err)
	}
	return nil
}

// errRedacted: what lies there is a redaction's marker, which says nothing to anybody.
var errRedacted = errors.New("redacted")

// read fills in what the head of the file says. buf is overwritten.
func (m *Memory) read(buf []byte) error {
	f, err := os.Open(m.File)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	n, err := io.ReadFull(f, buf[:min(int64(len(buf)), m.Size)])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	}
	if memory.IsRedactionMarker(buf[:n]) {
		return errRedacted
	}
	m.parse(cutLines(buf[:n], MaxHeadLines))
	if int64(n) == m.Size {
		m.body = bodyHash(buf[:n])
	}
	return nil
}

func (m *Memory) parse(head []byte) {
	fm, body, err := memory.ParseFrontmatter(head)
	if err != nil {
		body = head // what cannot be parsed is still text to be found by
	}
	rel := strings.TrimPrefix(m.Ref, memdir.TeamDir+"/")
	if t, ok := memory.TypeOf(memory.Path(rel), fm); ok {
		m.Type = t
	}
	m.Name, m.Description, m.Pinned = fm.Name, fm.Description, fm.Pinned
	m.Head = string(bytes.ToValidUTF8(body, []byte(string(utf8.RuneError))))
	if !fm.Modified.IsZero() {
		m.Time = fm.Modified
	}
}

// bodyHash is a hash of the words of a memory below its frontmatter; 0 = there are none.
func bodyHash(text []byte) uint64 {
	fm, _, err := memory.ParseFrontmatter(text)
	if err == nil && fm.Present {
		text = text[fm.BodyStart:]
	}
	h := fnv.New64a()
	some := false
	for word := range bytes.FieldsSeq(text) {
		some = true
		_, _ = h.Write(word)
		_, _ = h.Write([]byte{' '})
	}
	if !some {
		return 0
	}
	return h.Sum64()
}

// twins returns, for each personal memory whose text the team has too, the team's.
func twins(all []Memory) map[string]string {
	teams := map[uint64]string{}
	for _, m := range all {
		if m.Scope == memory.ScopeTeam && m.body != 0 {
			teams[m.body] = m.Ref
		}
	}
	out := map[string]string{}
	for _, m := range all {
		if ref := teams[m.body]; m.Scope == memory.ScopePrivate && ref != "" {
			out[m.Ref] = ref
		}
	}
	return out
}

// cutLines returns the first n lines.
func cutLines(b []byte, n int) []byte {
	at := 0
	for range n {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return b
		}
		at += i + 1
	}
	return b[:at]
}

// Manifest is a line a memory: type, path, age, description.
func Manifest(memories []Memory, now time.Time) string {
	var b strings.Builder
	for _, m := range memories {
		typ := string(m.Type)
		if typ == "" {
			typ = "untyped"
		}
		description := m.Description
		if description == "" {
			description = m.Name
		}
		fmt.Fprintf(&b, "- [%s] %s (%s): %s\n", typ, oneLine(m.Ref), Age(m.Time, now), oneLine(description))
	}
	return b.String()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
