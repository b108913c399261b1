package sqlite

import (
	"testing"

	"github.com/memsvc/memsvc/internal/hub/store/storetest"
)

// Nothing that belongs on record is done while the audit log cannot be written.
func TestNothingOffTheRecord(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	storetest.NothingOffTheRecord(t, s, func() {
		c, err := open(dir+"/"+FileName, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = c.script(`CREATE TRIGGER broken BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'the log is full'); END;`)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.close(); err != nil {
			t.Fatal(err)
		}
	})
}
