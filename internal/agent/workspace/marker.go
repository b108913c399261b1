package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// MarkerName is the hidden file in the root that names the link, so that an emptied,
// unmounted or replaced root is told from one whose files were deleted.
const MarkerName = ".memsync-link"

const (
	maxMarkerBytes = 4 << 10
	maxLinkID      = 512
	markerNote     = "# This file tells memsync-agent that this is the directory it keeps in step. Leave it here.\n"
	markerProject  = "project: "
)

// marker is what the marker of a root says. Its first line is the link's id, which is all
// that agents before it named its project read of it.
type marker struct {
	id      string            // "" = there is no marker, or none that can be one
	project memory.ProjectKey // zero where it names none
}

// text is what the file holds.
func (m marker) text() []byte {
	s := m.id + "\n" + markerNote
	if m.project != (memory.ProjectKey{}) {
		s += markerProject + string(m.project.Team) + "/" + string(m.project.Project) + "\n"
	}
	return []byte(s)
}

// foreign reports whether it names another project than key; one that names none, and
// the zero key, are nobody's in particular.
func (m marker) foreign(key memory.ProjectKey) bool {
	none := memory.ProjectKey{}
	return key != none && m.project != none && m.project != key
}

func parseMarker(text string) marker {
	id, rest, _ := strings.Cut(text, "\n")
	m := marker{id: strings.TrimSpace(id)}
	for line := range strings.Lines(rest) {
		name, named := strings.CutPrefix(strings.TrimSpace(line), markerProject)
		if !named {
			continue
		}
		team, project, _ := strings.Cut(name, "/")
		key := memory.ProjectKey{Team: memory.Team(team), Project: memory.Project(project)}
		_, terr := memory.ParseTeam(team)
		_, perr := memory.ParseProject(project)
		if terr == nil && perr == nil {
			m.project = key
		}
	}
	return m
}

// readMarker returns what the marker of root says.
func readMarker(root *os.Root) (marker, error) {
	fi, err := root.Lstat(MarkerName)
	if errors.Is(err, fs.ErrNotExist) {
		return marker{}, nil
	}
	if err != nil {
		return marker{}, fmt.Errorf("read marker: %w", err)
	}
	if !fi.Mode().IsRegular() {
		return marker{}, nil
	}
	f, _, err := openRegular(root, MarkerName, fi)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
		return marker{}, nil
	}
	if err != nil {
		return marker{}, fmt.Errorf("read marker: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxMarkerBytes))
	if err != nil {
		return marker{}, fmt.Errorf("read marker: %w", err)
	}
	return parseMarker(string(b)), nil
}

// CheckOwner refuses a directory whose marker names another project than key, whoever
// linked it and from whatever state directory: a directory has one project, else the
// memories of one go into the other. A directory without a marker, or one that cannot be
// looked at, is not refused; what is wrong with it is others' to say. The error matches
// ErrUnsuitableRoot.
func CheckOwner(dir string, key memory.ProjectKey) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	defer root.Close()
	if m, err := readMarker(root); err == nil && m.foreign(key) {
		return fmt.Errorf("%w: %s", ErrUnsuitableRoot, ofAnother(dir, m.project))
	}
	return nil
}

func ofAnother(dir string, owner memory.ProjectKey) string {
	return fmt.Sprintf("%s is linked to %s/%s, as %s in it says, and a directory has one project; end that link first with 'memsync-agent unlink --forget' and its --state-dir, or remove that file if nobody has that link any more",
		dir, owner.Team, owner.Project, MarkerName)
}

// PutMarker writes the marker with the link's id, and the project's where it is known,
// into the root, making the root if it is missing. From then on the directory that is
// there counts as the right one. A marker of another project is left, and is an error.
func (w *Workspace) PutMarker(_ context.Context, linkID string) error {
	if linkID == "" || len(linkID) > maxLinkID || strings.TrimSpace(linkID) != linkID || strings.ContainsAny(linkID, "\r\n\x00") {
		return fmt.Errorf("put marker: %q is no link id", linkID)
	}
	if err := os.MkdirAll(w.dir, 0o777); err != nil {
		return fmt.Errorf("put marker: %w", err)
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return fmt.Errorf("put marker: %w", err)
	}
	defer root.Close()
	fi, err := root.Stat(".")
	if err != nil {
		return fmt.Errorf("put marker: %w", err)
	}
	old, err := readMarker(root)
	if err != nil {
		return err
	}
	if old.foreign(w.opts.Project) {
		return fmt.Errorf("put marker: %w: %s", ErrUnsuitableRoot, ofAnother(w.dir, old.project))
	}
	if now := (marker{id: linkID, project: w.opts.Project}); old != now && (old.id != linkID || w.opts.Project != memory.ProjectKey{}) {
		tmp, err := writeTemp(root, now.text(), time.Time{}, 0o644)
		if err != nil {
			return fmt.Errorf("put marker: %w", err)
		}
		if err := root.Rename(tmp, MarkerName); err != nil {
			_ = root.Remove(tmp)
			return fmt.Errorf("put marker: %w", err)
		}
		if err := syncDir(root); err != nil {
			return fmt.Errorf("put marker: %w", err)
		}
	}
	if w.rootInfo == nil || !os.SameFile(fi, w.rootInfo) {
		w.forget()
	}
	w.rootInfo, w.marker = fi, linkID
	return nil
}
