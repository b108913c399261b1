package inject

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/memsvc/memsvc/internal/wholefile"
)

// The bounds of a Record. A session's own bound is never reached within the budget of a
// conversation: it keeps a file small that something else writes to.
const (
	maxSessions     = 200 // the ones that were given something last
	maxSessionBytes = 1 << 20
)

// Record keeps on disk, for each session, which memories it was given since its last
// compaction: names and sizes, no text. A transcript tells the same; this is for clients
// whose transcripts are not of a known form, and for what a turn has had, which a
// transcript may not hold yet.
//
// A session's file only grows, by lines that are written at once, so that hooks of one
// session may write at the same time. A line that a kill cut is passed over: at worst a
// memory is given twice.
type Record struct {
	Dir string // made at first use; "" = nothing is kept
}

// entry is a line of a session's file.
type entry struct {
	Turn string `json:"turn"`
	Given
}

// Add notes what a session was given in a turn, by the turn's own name.
func (r Record) Add(session, turn string, given []Given) error {
	if r.Dir == "" || session == "" || len(given) == 0 {
		return nil
	}
	var b bytes.Buffer
	b.WriteByte('\n') // ends a line that was cut
	enc := json.NewEncoder(&b)
	for _, g := range given {
		if err := enc.Encode(entry{turn, g}); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return fmt.Errorf("note what a session was given: %w", err)
	}
	name := r.file(session, givenSuffix)
	fi, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		wholefile.MakeRoom(r.Dir, givenSuffix, maxSessions)
	case err != nil:
		return fmt.Errorf("note what a session was given: %w", err)
	case fi.Size()+int64(b.Len()) > maxSessionBytes:
		return errors.New("note what a session was given: its file is full")
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.Write(b.Bytes())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("note what a session was given: %w", err)
	}
	return nil
}

// Read returns what a session was given since it was last forgotten, and what of it in
// one turn.
func (r Record) Read(session, turn string) (all, inTurn []Given, err error) {
	if r.Dir == "" || session == "" {
		return nil, nil, nil
	}
	f, err := os.Open(r.file(session, givenSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read what a session was given: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, maxSessionBytes))
	if err != nil {
		return nil, nil, fmt.Errorf("read what a session was given: %w", err)
	}
	for line := range bytes.Lines(text) {
		var e entry
		if json.Unmarshal(line, &e) != nil || e.Ref == "" || e.Bytes < 0 {
			continue // empty, or cut
		}
		all = append(all, e.Given)
		if e.Turn == turn {
			inTurn = append(inTurn, e.Given)
		}
	}
	return all, inTurn, nil
}

// Forget is for a compaction: what a session was given has left its context.
func (r Record) Forget(session string) error {
	if r.Dir == "" || session == "" {
		return nil
	}
	if err := os.Remove(r.file(session, givenSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget what a session was given: %w", err)
	}
	return nil
}

// givenSuffix is the end of the name of a file with what a session was given.
const givenSuffix = ".jsonl"

// file is named by a digest: what clients call a session may be anything.
func (r Record) file(session, suffix string) string {
	sum := sha256.Sum256([]byte(session))
	return filepath.Join(r.Dir, hex.EncodeToString(sum[:16])+suffix)
}
