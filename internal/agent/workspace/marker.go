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
)

// MarkerName is the hidden file in the root that names the link, so that an emptied,
// unmounted or replaced root is told from one whose files were deleted.
const MarkerName = ".memsync-link"

const (
	maxMarkerBytes = 4 << 10
	maxLinkID      = 512
	markerNote     = "# This file tells memsync-agent that this is the directory it keeps in step. Leave it here.\n"
)

// readMarker returns the link id in the marker of root; "" when there is no marker
// or none that can be one.
func readMarker(root *os.Root) (string, error) {
	fi, err := root.Lstat(MarkerName)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read marker: %w", err)
	}
	if !fi.Mode().IsRegular() {
		return "", nil
	}
	f, _, err := openRegular(root, MarkerName, fi)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read marker: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxMarkerBytes))
	if err != nil {
		return "", fmt.Errorf("read marker: %w", err)
	}
	id, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(id), nil
}

// PutMarker writes the marker with the link's id into the root, making the root if
// it is missing. From then on the directory that is there counts as the right one.
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
	if old != linkID {
		tmp, err := writeTemp(root, []byte(linkID+"\n"+markerNote), time.Time{}, 0o644)
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
