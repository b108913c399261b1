package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/memsvc/memsvc/internal/filelock"
	"github.com/memsvc/memsvc/internal/hub/store"
)

// lockName is the file in the data directory that its one hub holds locked. The
// lock ends with the process, however that ends.
const lockName = "hub.lock"

// lockDir takes the data directory for this process. Where files cannot be locked it
// refuses: two hubs could write one database.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := filelock.TryLock(f); err != nil {
		_ = f.Close()
		if errors.Is(err, filelock.ErrHeld) {
			return nil, store.Invalid("data directory %s: another memsvc uses it; stop it or name another directory", dir)
		}
		return nil, fmt.Errorf("lock the data directory %s: %w", dir, err)
	}
	return f, nil
}
