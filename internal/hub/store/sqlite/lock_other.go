//go:build !unix

package sqlite

import (
	"fmt"
	"os"
	"runtime"
)

// lockDir refuses: without a lock that ends with its process, two hubs could write
// one database.
func lockDir(dir string) (*os.File, error) {
	return nil, fmt.Errorf("data directory %s: the embedded store cannot lock it on %s; run the hub on a Unix system", dir, runtime.GOOS)
}
