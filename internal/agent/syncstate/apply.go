package syncstate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// Apply makes one update, atomically and durably; see syncer.State. After an error
// nothing of it is in effect for this process, though a crash right then may bring it
// to light whole.
func (s *State) Apply(_ context.Context, u syncer.Update) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.apply(u); err != nil {
		return fmt.Errorf("save state in %s: %w", s.dir, err)
	}
	return nil
}

func (s *State) apply(u syncer.Update) error {
	switch {
	case s.closed:
		return ErrClosed
	case s.readOnly:
		return ErrReadOnly
	}
	if s.file == nil || s.distrust {
		if err := s.rewrite(); err != nil {
			return err
		}
	}
	if s.dirUnsure {
		if err := s.disk.SyncDir(s.dir); err != nil {
			return err
		}
		s.dirUnsure = false
	}
	if err := s.append(u); err != nil {
		return err
	}
	s.state.Apply(u)
	if s.size > rewriteFrom && s.size > 2*s.base {
		// The update is safe; if this fails, the file is only longer than it needs
		// to be. The next attempt comes when it has grown as much again.
		if err := s.rewrite(); err != nil {
			s.base = s.size
		}
	}
	return nil
}

// append writes u as one record behind the others.
func (s *State) append(u syncer.Update) error {
	var refs []textRef
	var texts [][]byte
	textLen := 0
	fresh := map[memory.ETag]bool{}
	for _, t := range u.Texts {
		etag := memory.ETagOf(t)
		if _, kept := s.texts[etag]; kept || fresh[etag] {
			continue
		}
		fresh[etag] = true
		refs, texts = append(refs, textRef{etag, int64(len(t))}), append(texts, t)
		textLen += len(t)
	}
	meta, err := encode(u, false, refs)
	if err != nil {
		return err
	}
	h := header{kind: kindUpdate, metaLen: int64(len(meta)), textLen: int64(textLen), metaCRC: checksum(meta), durable: s.durable}
	rec := make([]byte, headerBytes, headerBytes+len(meta)+textLen)
	rec = append(rec, meta...)
	body := len(rec)
	for _, t := range texts {
		rec = append(rec, t...)
	}
	h.textCRC = checksum(rec[body:])
	h.append(rec[:0])

	if _, err := s.file.WriteAt(rec, s.size); err != nil {
		// Half a record behind the last whole one is cut, or written over, or cut when
		// the file is opened the next time.
		_ = s.file.Truncate(s.size)
		return err
	}
	if !u.Relaxed {
		if err := s.file.Sync(); err != nil {
			// The system may have dropped the pages and call the next fsync a
			// success. Only a new file is sure.
			s.distrust = true
			_ = s.file.Truncate(s.size)
			return err
		}
	}
	at := s.size + headerBytes + h.metaLen
	for _, r := range refs {
		s.texts[r.etag] = span{at, r.size}
		at += r.size
	}
	s.size += h.size()
	if !u.Relaxed {
		s.durable = s.size
	}
	return nil
}

// rewrite puts the present state, with the texts that it refers to, into a new file
// and that in the place of the old. What lies at wipe in the old one is overwritten
// before it is given up.
func (s *State) rewrite(wipe ...span) error {
	path, final := filepath.Join(s.dir, newName), filepath.Join(s.dir, journalName)
	if err := s.disk.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := s.disk.Create(path)
	if err != nil {
		return err
	}
	texts, size, err := s.writeSnapshot(f)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		f, err = s.replace(f, path, final)
	}
	if err != nil {
		_ = f.Close()
		_ = s.disk.Remove(path)
		return err
	}
	old := s.file
	s.file, s.texts, s.size, s.base, s.durable = f, texts, size, size, size
	s.distrust, s.dirUnsure = false, true
	if err = s.disk.SyncDir(s.dir); err == nil {
		s.dirUnsure = false
	}
	if old == nil {
		return nil
	}
	if len(wipe) > 0 && err == nil {
		// Only now: a loss of power could still have brought the old file back.
		for _, at := range wipe {
			_, wipeErr := old.WriteAt(make([]byte, at.size), at.at)
			err = errors.Join(err, wipeErr)
		}
		err = errors.Join(err, old.Sync())
	}
	_ = old.Close() // nothing in it counts any more
	if len(wipe) == 0 {
		return nil // the next update syncs the directory before it promises anything
	}
	return err
}

// replace gives f, which is at path, the name final.
func (s *State) replace(f diskFile, path, final string) (diskFile, error) {
	if !renameNeedsClosed {
		return f, s.disk.Rename(path, final)
	}
	if s.file != nil {
		_ = s.file.Close()
	}
	_ = f.Close()
	renameErr := s.disk.Rename(path, final)
	g, err := s.disk.Open(final, true)
	if err != nil {
		s.closed = true // neither file is in reach; the next Open sorts it out
		return f, errors.Join(renameErr, err)
	}
	if renameErr != nil {
		s.file = g
		return f, renameErr
	}
	s.file = nil
	return g, nil
}

// renameNeedsClosed: Windows renames no file that is open, nor onto one.
const renameNeedsClosed = runtime.GOOS == "windows"

// writeSnapshot writes the state and its texts to f. Texts that are damaged are left
// out; whoever asks for them gets syncer.ErrNoText.
func (s *State) writeSnapshot(f diskFile) (map[memory.ETag]span, int64, error) {
	var refs []textRef
	for etag := range s.state.Texts() {
		if at, ok := s.texts[etag]; ok {
			refs = append(refs, textRef{etag, at.size})
		}
	}
	for {
		texts, size, bad, err := s.trySnapshot(f, refs)
		if err != nil || bad < 0 {
			return texts, size, err
		}
		refs = append(refs[:bad], refs[bad+1:]...)
	}
}

// trySnapshot writes the snapshot with the given texts; bad is the first that is
// damaged, or -1.
func (s *State) trySnapshot(f diskFile, refs []textRef) (texts map[memory.ETag]span, size int64, bad int, err error) {
	meta, err := encode(snapshotOf(&s.state), s.state.Fresh, refs)
	if err != nil {
		return nil, 0, -1, err
	}
	h := header{kind: kindSnapshot, metaLen: int64(len(meta)), metaCRC: checksum(meta)}
	for _, r := range refs {
		h.textLen += r.size
	}
	if _, err := f.WriteAt(append(h.append(nil), meta...), 0); err != nil {
		return nil, 0, -1, err
	}
	texts = make(map[memory.ETag]span, len(refs))
	at := headerBytes + h.metaLen
	// Texts are small; gathering them spares a write each.
	buf := make([]byte, 0, 64<<10)
	flushed := at
	flush := func() error {
		if len(buf) == 0 {
			return nil
		}
		_, err := f.WriteAt(buf, flushed)
		flushed += int64(len(buf))
		buf = buf[:0]
		return err
	}
	for i, r := range refs {
		b, err := readText(s.file, r.etag, s.texts[r.etag])
		if errors.Is(err, errBroken) {
			return nil, 0, i, nil
		}
		if err != nil {
			return nil, 0, -1, err
		}
		texts[r.etag] = span{at, r.size}
		at += r.size
		if buf = append(buf, b...); len(buf) >= 32<<10 {
			if err := flush(); err != nil {
				return nil, 0, -1, err
			}
		}
	}
	if err := flush(); err != nil {
		return nil, 0, -1, err
	}
	return texts, at, -1, f.Truncate(at)
}
