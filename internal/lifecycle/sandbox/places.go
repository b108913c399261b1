package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

// The names under which a model sees what it may read.
const (
	inMemory   = "memory"
	inProject  = "project"
	transcript = "transcript"
)

// place is what a name means: a part of the project, a memory, or the transcript.
type place struct {
	in  string
	rel string // below it, "." for all of it
}

func (p place) String() string { return path.Join(p.in, p.rel) }

var (
	errPlace  = said("the name begins with none of memory/, project/ and transcript")
	errHidden = said("files with a hidden part in their name are not shown")
	errName   = said("no memory can have this name")
	errNone   = said("there is no such file here")
	errKind   = said("it is not a regular file")
	errBinary = said("it is not a text")
	errLarge  = said(fmt.Sprintf("it has more than %d bytes; files of that size are not read", maxFile))
)

// placeOf reads a name. Absolute ones, as transcripts have them, are understood where
// they lie in what may be read; a bare one is a memory's.
func (r *run) placeOf(name string) (place, error) {
	if strings.ContainsRune(name, 0) || len(name) > 4096 {
		return place{}, errPlace
	}
	if filepath.IsAbs(name) {
		return r.absolute(filepath.Clean(name))
	}
	name = path.Clean(filepath.ToSlash(name))
	first, rest, _ := strings.Cut(name, "/")
	if rest == "" {
		rest = "."
	}
	switch {
	case first == inProject:
		return r.inProject(rest)
	case first == inMemory:
		return place{inMemory, rest}, nil
	case name == transcript:
		return place{transcript, "."}, nil
	case first == ".." || first == ".":
		return place{}, errPlace
	}
	return place{inMemory, name}, nil
}

func (r *run) absolute(name string) (place, error) {
	if r.Transcript != "" && name == filepath.Clean(r.Transcript) {
		return place{transcript, "."}, nil
	}
	below := func(dir string) (string, bool) {
		rel, err := filepath.Rel(dir, name)
		return filepath.ToSlash(rel), dir != "" && err == nil && filepath.IsLocal(rel)
	}
	if rel, ok := below(r.Store.Dir(memory.ScopeTeam)); ok {
		return place{inMemory, path.Join("team", rel)}, nil
	}
	if rel, ok := below(r.Store.Dir(memory.ScopePrivate)); ok {
		return place{inMemory, rel}, nil
	}
	if rel, ok := below(r.Project); ok {
		return r.inProject(rel)
	}
	return place{}, errPlace
}

// inProject refuses hidden names: that is where keys and other tools' files are.
func (r *run) inProject(rel string) (place, error) {
	if r.project == nil {
		return place{}, said("there is no project to read")
	}
	if !fs.ValidPath(rel) {
		return place{}, errPlace
	}
	if rel != "." {
		for seg := range strings.SplitSeq(rel, "/") {
			if strings.HasPrefix(seg, ".") {
				return place{}, errHidden
			}
		}
	}
	return place{inProject, rel}, nil
}

// openProject opens a file of the project for reading. Links that leave the project lead
// nowhere, and nothing that is no regular file is waited for.
func (r *run) openProject(rel string) (*os.File, error) {
	f, err := r.project.OpenFile(filepath.FromSlash(rel), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, errNone // whatever it was, it is nothing that may be read
	}
	return regular(f)
}

func (r *run) openTranscript() (*os.File, error) {
	if r.Transcript == "" {
		return nil, said("there is no transcript to read")
	}
	f, err := os.OpenFile(r.Transcript, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, errNone
	}
	return regular(f)
}

func regular(f *os.File) (*os.File, error) {
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		_ = f.Close() // only read
		return nil, errKind
	}
	return f, nil
}

// memoryAt reads a memory and notes that the model has seen it as it is. An index is
// read as it stands.
func (r *run) memoryAt(ctx context.Context, rel string) (memories.Memory, error) {
	ref, err := memories.ParseRef(rel)
	if err != nil {
		return memories.Memory{}, fmt.Errorf("%w: %w", errName, err)
	}
	m, err := r.Store.Get(ctx, ref)
	if errors.Is(err, fs.ErrNotExist) {
		return memories.Memory{}, errNone
	}
	if err == nil {
		r.saw(ref, m.Content)
	}
	return m, err
}

// saw notes that the model knows a memory as it is.
func (r *run) saw(ref memories.Ref, content []byte) {
	r.seen[ref] = memory.ETagOf(content)
	r.partly[ref] = viewOf(content, r.Secrets).hidden
}

// content opens what may be read line by line, as it may be shown but for the lines of a
// transcript, of which each is masked by itself.
func (r *run) content(ctx context.Context, p place) (io.ReadCloser, error) {
	text := ""
	switch p.in {
	case inProject:
		raw, err := r.projectText(p.rel)
		if err != nil {
			return nil, err
		}
		text = r.Secrets.Masked(raw)
	case transcript:
		return r.openTranscript()
	default:
		m, err := r.memoryAt(ctx, p.rel)
		if err != nil {
			return nil, err
		}
		text = viewOf(m.Content, r.Secrets).text
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

// projectText reads a file of the project whole: what a line of it is, the others tell.
func (r *run) projectText(rel string) (string, error) {
	f, err := r.openProject(rel)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", said("it cannot be read")
	case len(b) > maxFile:
		return "", errLarge
	case isBinary(b):
		return "", errBinary
	}
	return string(b), nil
}
