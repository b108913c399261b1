package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	pathpkg "path"
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// RemainingText is a stored text that a redaction left, and why somebody should look.
type RemainingText struct {
	Path     memory.Path
	Revision memory.Revision // 0: the text of an open conflict
	Why      string
}

// Why a text that remains should be looked at.
const (
	WhyRenamed    = "the memory goes on under this name"
	WhySameSecret = "a secret that stood in a redacted text stands here too"
	WhySameText   = "a text that was redacted stands here too"
	// WhyNotKnown is not of a text: the search for what remains did not come to its end.
	WhyNotKnown = "not everything that is stored was looked through; ask again to hear the rest"
	// whyIndexLine takes the number of the line, from 1, and the path that it links to.
	whyIndexLine = "line %d links to %s: look whether it repeats what was redacted"
)

// maxRemaining bounds Redacted.Remaining: past it, a person looks in another way.
const maxRemaining = 100

// remainsAfter tells what a redaction left, whose texts are gone. The answer has to reach
// the caller all the same, so it does with what is known when most of his time is over.
func (s *Service) remainsAfter(ctx context.Context, policy Policy, key memory.ProjectKey, t *redactTargets, done Redacted) []RemainingText {
	paths := make([]memory.Path, 0, len(done.Rewritten))
	for _, r := range done.Rewritten {
		paths = append(paths, r.Path)
	}
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-time.Until(end)/10))
		defer cancel()
	}
	out, err := s.remaining(ctx, policy, key, t, paths, t.texts, t.secrets)
	if err != nil {
		s.Logger.Warn("redact: not everything that is stored was looked through", "project", key.String(), "error", err.Error())
		out = append(out, RemainingText{Path: t.path, Revision: done.Commit.Revision, Why: WhyNotKnown})
	}
	return out
}

// remainsOfBefore tells what is still served where nothing is left to redact at the path,
// as after a redaction whose answer was lost. Its texts are gone, so it goes by what is
// known of all texts that were redacted in the team. Nothing where none was at this path.
func (s *Service) remainsOfBefore(ctx context.Context, policy Policy, key memory.ProjectKey, t *redactTargets) ([]RemainingText, error) {
	before := false
	err := s.eachVersion(ctx, key, func(_ memory.Revision, ch *memory.AppliedChange) error {
		before = before || ch.Path == t.path && memory.IsRedactionMarker(ch.Content)
		return nil
	})
	if err != nil || !before {
		return nil, err
	}
	all, err := s.Backend.Redactions(ctx, key.Team)
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool, len(all))
	for _, f := range all {
		known[f] = true
	}
	return s.remaining(ctx, policy, key, t, []memory.Path{t.path}, known, known)
}

// indexLines finds the lines of indexes that link to these paths: such a line most often
// repeats the memory's description. None of its text is told.
func (s *Service) indexLines(ctx context.Context, policy Policy, key memory.ProjectKey, paths []memory.Path) (out []RemainingText, err error) {
	all, err := s.Backend.List(ctx, key, store.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if !memory.IsIndex(m.Path) {
			continue
		}
		x, err := s.Backend.Get(ctx, key, m.Path, 0)
		if errors.Is(err, memory.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for i, l := range memory.ParseIndex(x.Content).Lines {
			if l.Entry == nil {
				continue
			}
			to := memory.Path(pathpkg.Join(pathpkg.Dir(string(m.Path)), l.Entry.Key()))
			if slices.Contains(paths, to) {
				out = append(out, RemainingText{Path: m.Path, Revision: x.Revision, Why: fmt.Sprintf(whyIndexLine, i+1, s.tellable(policy, string(to)))})
			}
		}
	}
	return out, nil
}

// remaining finds the stored texts that a redaction left and that may be meant as well:
// paths are those that lost texts; texts and secrets hold the fingerprints of what went.
// What was found before an error is returned with it.
func (s *Service) remaining(ctx context.Context, policy Policy, key memory.ProjectKey, t *redactTargets, paths []memory.Path, texts, secrets map[string]bool) (out []RemainingText, err error) {
	add := func(r RemainingText) {
		if len(out) < maxRemaining {
			out = append(out, r)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(t.onward)) {
		switch m, err := s.Backend.Get(ctx, key, p, 0); {
		case err == nil && t.whole && !memory.IsRedactionMarker(m.Content):
			add(RemainingText{Path: p, Revision: m.Revision, Why: WhyRenamed})
		case err != nil && !errors.Is(err, memory.ErrNotFound):
			return out, err
		}
	}
	lines, err := s.indexLines(ctx, policy, key, paths)
	if err != nil {
		return out, err
	}
	for _, r := range lines {
		add(r)
	}
	why := func(p memory.Path, content []byte) string {
		if memory.IsRedactionMarker(content) || isBlank(content) {
			return ""
		}
		if texts[memory.RedactionFingerprint(policy.FingerprintKey, content)] {
			return WhySameText
		}
		if len(secrets) == 0 {
			return ""
		}
		found, err := s.Guard.Scan(policy, string(p), content)
		if err == nil && slices.ContainsFunc(found, func(f Finding) bool { return secrets[f.Fingerprint] }) {
			return WhySameSecret
		}
		return ""
	}
	seen := map[textAt]bool{}
	err = s.eachVersion(ctx, key, func(rev memory.Revision, ch *memory.AppliedChange) error {
		at := textAt{path: ch.Path, etag: ch.ETag}
		if ch.ETag == "" || seen[at] || len(out) == maxRemaining {
			return nil
		}
		seen[at] = true
		if why := why(ch.Path, ch.Content); why != "" {
			add(RemainingText{Path: ch.Path, Revision: rev, Why: why})
		}
		return ctx.Err()
	})
	if err != nil {
		return out, err
	}
	err = s.eachConflict(ctx, key, func(x listedConflict, content []byte) error {
		if why := why(x.Path, content); why != "" {
			add(RemainingText{Path: x.Path, Why: why})
		}
		return ctx.Err()
	})
	return out, err
}
