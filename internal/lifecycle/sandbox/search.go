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
	"github.com/memsvc/memsvc/internal/lifecycle/model"
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
		return s.in(ctx, transcript, f, r.Secrets)
	case inMemory:
		return r.grepMemories(ctx, p.rel, s)
	}
	var failed error
	all, err = r.files(ctx, p.rel, func(rel string, size int64) bool {
		if size > maxFile {
			return true
		}
		text, err := r.projectText(rel)
		if err != nil {
			return true // gone meanwhile, or no text
		}
		more, err := s.text(ctx, inProject+"/"+rel, text, r.Secrets.Masked)
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
		more, err := s.text(ctx, inMemory+"/"+m.String(), string(m.Content), func(string) string { return viewOf(m.Content, r.Secrets).text })
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

// search collects matching lines, of texts as they are shown: what matches in a line that
// is left out would tell what stands there.
type search struct {
	re     *regexp.Regexp
	budget int // bytes that may still be read
	found  []string
}

// text searches a text that is shown in another form. That is made where a line matches
// only, since most texts have none.
func (s *search) text(ctx context.Context, name, text string, shown func(string) string) (more bool, err error) {
	if s.budget -= len(text); s.budget < 0 {
		return false, nil
	}
	once := search{re: s.re, budget: 2*len(text) + 1}
	if more, err := once.in(ctx, name, strings.NewReader(text), nil); err != nil || more && len(once.found) == 0 {
		return true, err
	}
	s.budget += len(text)
	return s.in(ctx, name, strings.NewReader(shown(text)), nil)
}

// in searches one text; more is false when there is enough. Matching lines are masked by
// secrets, nil = they are masked already.
func (s *search) in(ctx context.Context, name string, from io.Reader, secrets model.Secrets) (more bool, err error) {
	for l, err := range lines(ctx, from, &s.budget) {
		if err != nil {
			return true, err
		}
		if !s.re.MatchString(l.text) {
			continue
		}
		if l.text = secrets.Masked(l.text); !s.re.MatchString(l.text) {
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
