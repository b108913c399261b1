package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// writeSecretFile writes text to a new file that only its owner can read. It is
// whole or not there, and an existing file is never overwritten. Its directory must exist:
// one that a slip of the keyboard names is not made.
func writeSecretFile(name, text string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".secret-") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if rerr := os.Remove(f.Name()); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}()
	_, werr := f.WriteString(text)
	if err := errors.Join(werr, f.Sync(), f.Close()); err != nil {
		return err
	}
	// A link fails where a rename would replace.
	if err := os.Link(f.Name(), name); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s exists and is not overwritten; move it away", name)
		}
		return err
	}
	return syncDir(filepath.Dir(name))
}

// readSecretFile returns the text of a file without the space around it, or "" when
// there is no such file.
func readSecretFile(name string) (string, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// openToOthers says so, in one line, if others than its owner can read a file, or ""
// when none can or nobody knows.
func openToOthers(name string) string {
	if name == "" || runtime.GOOS == "windows" { // no such modes there
		return ""
	}
	info, err := os.Stat(name)
	if err != nil || !exposed(info.Mode(), isOwn(info)) {
		return ""
	}
	return fmt.Sprintf("%s has mode %04o: others on this machine can read the secret; chmod 600 it", name, info.Mode().Perm())
}

// exposed reports whether a file's mode lets others read a secret. A file that is not
// this process's own and is readable through its group alone is how Kubernetes hands a
// Secret to a user who is not root: there is no tighter way.
func exposed(mode fs.FileMode, own bool) bool {
	if !own && mode.Perm()&0o037 == 0 {
		return false
	}
	return mode.Perm()&0o077 != 0
}

// syncDir makes the names in a directory durable.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
