package inject

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/memsvc/memsvc/internal/wholefile"
)

// Heard is what a session has heard of what goes on beside it. A compaction takes nothing
// of it back: what is news is news once.
type Heard struct {
	// Until is up to when it knows what the team changed.
	Until time.Time `json:"until"`
	// Waiting names what waited for a person when it heard last, by marks of the caller's.
	Waiting []string `json:"waiting,omitempty"`
}

// heardSuffix is the end of the name of a file with a Heard.
const heardSuffix = ".heard"

// maxHeardBytes bounds such a file, which has some hundred bytes.
const maxHeardBytes = 64 << 10

// Hear notes what a session has heard, in the place of what was noted before. A kill in the
// middle leaves nothing, and what is no news may come once more.
func (r Record) Hear(session string, h Heard) error {
	if r.Dir == "" || session == "" {
		return nil
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if len(text) > maxHeardBytes {
		return errors.New("note what a session heard: it is too long")
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return fmt.Errorf("note what a session heard: %w", err)
	}
	name := r.file(session, heardSuffix)
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		wholefile.MakeRoom(r.Dir, heardSuffix, maxSessions)
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		return fmt.Errorf("note what a session heard: %w", err)
	}
	return nil
}

// Heard returns what was noted last; the zero Heard of a session that is not known.
func (r Record) Heard(session string) (h Heard, err error) {
	if r.Dir == "" || session == "" {
		return Heard{}, nil
	}
	name := r.file(session, heardSuffix)
	fi, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Heard{}, nil
	case err == nil && (!fi.Mode().IsRegular() || fi.Size() > maxHeardBytes):
		err = errors.New("it is none of ours")
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return Heard{}, fmt.Errorf("read what a session heard: %w", err)
	}
	if json.Unmarshal(text, &h) != nil {
		return Heard{}, nil // a write that a kill cut
	}
	return h, nil
}
