package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/memsvc/memsvc/internal/lifecycle/memories"
)

// The bounds of a search.
const (
	maxVisited = 20_000  // files and directories of the project
	maxFile    = 1 << 20 // bytes of a file of the project that is searched
	maxMatches = 100
	maxShown   = 300 // bytes of a matching line
	maxPattern = 500 // bytes of a pattern
	maxStars   = 4   // of ** and of {} in a glob, whose cost multiplies
)

var errPattern = said("the pattern cannot be used; give a simpler one")

// files visits the regular files of the project below rel, hidden ones left out, and
// reports whether it saw them all. Links are not followed.
func (r *run) files(ctx context.Context, rel string, visit func(rel string, size int64) (more bool)) (all bool, err error) {
	n := 0
	all = true
	err = fs.WalkDir(r.project.FS(), rel, func(name string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if n++; n > maxVisited {
			all = false
			return fs.SkipAll
		}
		switch {
		case err != nil && name == rel:
			return errNone
		case err != nil:
			return nil // gone meanwhile, or not for us
		case name != rel && hidden(e.Name()) && e.IsDir():
			return fs.SkipDir
		case hidden(e.Name()) || !e.Type().IsRegular():
			return nil
		}
		fi, err := e.Info()
		if err == nil && !visit(name, fi.Size()) {
			all = false
			return fs.SkipAll
		}
		return nil
	})
	return all, err
}

func (r *run) glob(ctx context.Context, input []byte) (string, string, error) {
	var in struct{ Pattern string }
	if err := decode(input, &in); err != nil {
		return "", "", err
	}
	if r.project == nil {
		return "", "", said("there is no project to read")
	}
	pattern := strings.TrimPrefix(in.Pattern, inProject+"/")
	if len(pattern) > maxPattern || strings.Count(pattern, "**") > maxStars || strings.Count(pattern, "{") > maxStars || !doublestar.ValidatePattern(pattern) {
		return "", "", errPattern
	}
	var found []string
	all, err := r.files(ctx, ".", func(rel string, _ int64) bool {
		if doublestar.MatchUnvalidated(pattern, rel) {
			found = append(found, inProject+"/"+rel)
		}
		return len(found) < maxEntries
	})
	if err != nil {
		return "", "", err
	}
	return matches(found, all), inProject, nil
}

func (r *run) grep(ctx context.Context, input []byte) (string, string, error) {
	var in struct{ Pattern, Path string }
	if err := decode(input, &in); err != nil {
		return "", "", err
	}
	if len(in.Pattern) > maxPattern || in.Pattern == "" {
		return "", "", errPattern
	}
	re, err := regexp.Compile(in.Pattern)
	if err != nil {
		return "", "", errPattern // the reason would repeat it
	}
	p, err := r.placeOf(in.Path)
	if err != nil {
		return "", "", err
	}
	s := &search{re: re, budget: maxScanned}
	all, err := r.grepPlace(ctx, p, s)
	if err != nil {
		return "", "", err
	}
	return matches(s.found, all && s.budget >= 0), p.String(), nil
}

func (r *run) grepPlace(ctx context.Context, p place, s *search) (all bool, err error) {
	switch p.in {
	case transcript:
		f, err := r.openTranscript()
		if err != nil {
			return false, err
		}
		defer func() { _ = f.Close() }() // only read
		return s.in(ctx, transcript, f)
	case inMemory:
		return r.grepMemories(ctx, p.rel, s)
	}
	var failed error
	all, err = r.files(ctx, p.rel, func(rel string, size int64) bool {
		if size > maxFile {
			return true
		}
		f, err := r.openProject(rel)
		if err != nil {
			return true // gone meanwhile
		}
		more, err := s.in(ctx, inProject+"/"+rel, f)
		_ = f.Close() // only read
		if err != nil && !errors.Is(err, errBinary) {
			failed = err
			return false
		}
		return more
	})
	return all, errors.Join(err, failed)
}

func (r *run) grepMemories(ctx context.Context, rel string, s *search) (all bool, err error) {
	list, _, err := r.Store.List(ctx)
	if err != nil {
		return false, err
	}
	for _, m := range list {
		if !below(m.Ref, rel) {
			continue
		}
		more, err := s.in(ctx, inMemory+"/"+m.String(), strings.NewReader(string(m.Content)))
		if err != nil && !errors.Is(err, errBinary) {
			return false, err
		}
		if !more {
			return false, nil
		}
	}
	return true, nil
}

// below reports whether a memory is rel, or lies in it; "." holds all.
func below(m memories.Ref, rel string) bool {
	return rel == "." || m.String() == rel || strings.HasPrefix(m.String(), rel+"/")
}

// search collects matching lines.
type search struct {
	re     *regexp.Regexp
	budget int // bytes that may still be read
	found  []string
}

// in searches one text; more is false when there is enough.
func (s *search) in(ctx context.Context, name string, from io.Reader) (more bool, err error) {
	for l, err := range lines(ctx, from, &s.budget) {
		if err != nil {
			return true, err
		}
		if !s.re.MatchString(l.text) {
			continue
		}
		s.found = append(s.found, fmt.Sprintf("%s:%d: %s", name, l.n, bounded(l.text, maxShown)))
		if len(s.found) >= maxMatches {
			return false, nil
		}
	}
	return s.budget >= 0, nil
}

// matches prints what was found, and whether that is all.
func matches(found []string, all bool) string {
	text := strings.Join(found, "\n") + "\n"
	if len(found) == 0 {
		text = "none\n"
	}
	if !all {
		text += "[not everything was looked at; ask for less]\n"
	}
	return text
}
