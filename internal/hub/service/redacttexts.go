package service

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/memsvc/memsvc/internal/memory"
)

// redactTargets are the texts that a redaction takes away, by where they are.
type redactTargets struct {
	path  memory.Path
	whole bool // every version of path, not named ones
	key   []byte
	at    map[memory.Path]*redactPlace
	// taken are the etags of the texts, and prints the fingerprints of those that are
	// still readable, also by asText, and of the secrets in them.
	taken   map[memory.ETag]bool
	prints  []string
	texts   map[string]bool // the fingerprints of whole texts among prints
	secrets map[string]bool // those of secrets
	// blank are the etags of texts with nothing in them; see isBlank.
	blank map[memory.ETag]bool
	// onward are the names under which the memory, renamed, went on.
	onward map[memory.Path]bool
}

// redactPlace is what is to go at one path.
type redactPlace struct {
	etags     []memory.ETag
	versions  int
	conflicts int
}

func (t *redactTargets) place(p memory.Path) *redactPlace {
	if t.at[p] == nil {
		t.at[p] = &redactPlace{}
	}
	return t.at[p]
}

// order returns the paths, the one asked for last: as long as its texts are there, a
// redaction that ended half way knows what it was about.
func (t *redactTargets) order() []memory.Path {
	paths := slices.DeleteFunc(slices.Sorted(maps.Keys(t.at)), func(p memory.Path) bool { return p == t.path })
	if t.at[t.path] != nil {
		paths = append(paths, t.path)
	}
	return paths
}

// all returns the etags of the texts, for a path where none of them is stored but a
// conflict about one is: there are always some.
func (t *redactTargets) all(p memory.Path) []memory.ETag {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(t.taken)), func(e memory.ETag) bool { return p != t.path && t.blank[e] })
}

// takesConflict reports whether the text of a kept conflict is to go.
func (t *redactTargets) takesConflict(x listedConflict, text []byte) bool {
	if x.Path == t.path && (t.whole || t.taken[x.ETag]) {
		return true
	}
	return !isBlank(text) && (t.taken[x.ETag] || t.texts[memory.RedactionFingerprint(t.key, text)])
}

// isBlank reports whether there is nothing in a text that could leak. Such texts are all
// alike; to take them for copies of each other would hit memories that are not meant.
func isBlank(content []byte) bool { return len(bytes.TrimSpace(content)) == 0 }

// blankTexts are those that editors and programs leave. Their etags are known though no
// version holds the text any more.
var blankTexts = []string{"", "\n", "\r\n", "\n\n", " ", " \n"}

// eachVersion calls look for every stored version of the project, oldest first, those
// included that outlived the retention of their commit.
func (s *Service) eachVersion(ctx context.Context, key memory.ProjectKey, look func(rev memory.Revision, ch *memory.AppliedChange) error) error {
	for after := memory.Revision(0); ; {
		commits, err := s.Backend.History(ctx, key, after, 100, maxAnswerBytes)
		if err != nil || len(commits) == 0 {
			return err
		}
		for i := range commits {
			for j := range commits[i].Changes {
				if err := look(commits[i].Revision, &commits[i].Changes[j]); err != nil {
					return err
				}
			}
		}
		after = commits[len(commits)-1].Revision
	}
}

// targetsOf finds what a redaction of path is to take away. Without targets there is
// nothing to redact.
func (s *Service) targetsOf(ctx context.Context, policy Policy, key memory.ProjectKey, path memory.Path, etags []memory.ETag) (*redactTargets, error) {
	t := &redactTargets{
		path: path, whole: len(etags) == 0, key: policy.FingerprintKey, at: map[memory.Path]*redactPlace{}, taken: map[memory.ETag]bool{},
		texts: map[string]bool{}, secrets: map[string]bool{}, blank: map[memory.ETag]bool{}, onward: map[memory.Path]bool{},
	}
	for _, text := range blankTexts {
		t.blank[memory.ETagOf([]byte(text))] = true
	}
	own, err := s.ownTexts(ctx, key, t)
	if err != nil {
		return nil, err
	}
	named := func(e memory.ETag) bool { return t.whole || slices.Contains(etags, e) }
	for e := range own {
		if named(e) {
			t.taken[e] = true
		}
	}
	read := map[memory.ETag]bool{}
	take := func(p memory.Path, e memory.ETag, content []byte) {
		if read[e] || isBlank(content) {
			return
		}
		read[e] = true
		f := memory.RedactionFingerprint(t.key, content)
		t.texts[f] = true
		t.prints = append(t.prints, f, asText(f))
		// A text that the guard cannot judge is still redacted whole.
		found, err := s.Guard.Scan(policy, string(p), content)
		if err != nil {
			return
		}
		for _, f := range found {
			t.secrets[f.Fingerprint] = true
			t.prints = append(t.prints, f.Fingerprint)
		}
	}
	err = s.eachConflict(ctx, key, func(x listedConflict, text []byte) error {
		if x.Path == path && named(x.ETag) {
			t.taken[x.ETag] = true
			take(x.Path, x.ETag, text)
		}
		return nil
	})
	if err != nil || len(t.taken) == 0 {
		return t, err
	}
	err = s.eachVersion(ctx, key, func(_ memory.Revision, ch *memory.AppliedChange) error {
		if t.taken[ch.ETag] {
			take(ch.Path, ch.ETag, ch.Content)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, s.findPlaces(ctx, key, t)
}

// copiesOf finds where texts that were taken away are stored all the same.
func (s *Service) copiesOf(ctx context.Context, key memory.ProjectKey, t *redactTargets) (*redactTargets, error) {
	again := *t
	again.at, again.whole = map[memory.Path]*redactPlace{}, false
	return &again, s.findPlaces(ctx, key, &again)
}

// findPlaces notes at which paths the texts that are to go are stored.
func (s *Service) findPlaces(ctx context.Context, key memory.ProjectKey, t *redactTargets) error {
	seen := map[memory.Path]map[memory.ETag]bool{}
	note := func(p memory.Path, e memory.ETag) *redactPlace {
		at := t.place(p)
		if seen[p] == nil {
			seen[p] = map[memory.ETag]bool{}
		}
		if !seen[p][e] {
			seen[p][e] = true
			at.etags = append(at.etags, e)
		}
		return at
	}
	err := s.eachVersion(ctx, key, func(_ memory.Revision, ch *memory.AppliedChange) error {
		switch mine := ch.Path == t.path; {
		case t.taken[ch.ETag] && (mine || !isBlank(ch.Content)):
			note(ch.Path, ch.ETag).versions++
		case t.taken[ch.PreviousETag] && (mine || !t.blank[ch.PreviousETag]):
			note(ch.Path, ch.PreviousETag) // the text itself is no longer kept
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.eachConflict(ctx, key, func(x listedConflict, text []byte) error {
		if t.takesConflict(x, text) {
			t.place(x.Path).conflicts++
		}
		return nil
	})
}

// ownTexts returns the etags of the memory's texts: all of the path, and those that a
// life of it had under an earlier name. It also notes where the memory went on to, and
// which etags of the project are of blank texts.
func (s *Service) ownTexts(ctx context.Context, key memory.ProjectKey, t *redactTargets) (map[memory.ETag]bool, error) {
	type step struct {
		rev         memory.Revision
		etag, prev  memory.ETag
		renamedFrom memory.Path
	}
	steps := map[memory.Path][]step{}
	marker := memory.ETagOf([]byte(memory.RedactionMarker))
	err := s.eachVersion(ctx, key, func(rev memory.Revision, ch *memory.AppliedChange) error {
		steps[ch.Path] = append(steps[ch.Path], step{rev, ch.ETag, ch.PreviousETag, ch.RenamedFrom})
		if ch.ETag != "" && isBlank(ch.Content) {
			t.blank[ch.ETag] = true
		}
		if ch.RenamedFrom == t.path {
			t.onward[ch.Path] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	own := map[memory.ETag]bool{}
	add := func(tags ...memory.ETag) {
		for _, e := range tags {
			if e != "" && e != marker {
				own[e] = true
			}
		}
	}
	type life struct {
		path  memory.Path
		below memory.Revision // exclusive: where it got another name
	}
	todo, followed := []life{}, map[life]bool{}
	for _, st := range steps[t.path] {
		add(st.etag, st.prev)
		if st.renamedFrom != "" {
			todo = append(todo, life{st.renamedFrom, st.rev})
		}
	}
	for len(todo) > 0 {
		l := todo[0]
		if todo = todo[1:]; followed[l] {
			continue
		}
		followed[l] = true
		past := steps[l.path]
		for i := len(past) - 1; i >= 0; i-- {
			st := past[i]
			if st.rev > l.below {
				continue
			}
			if st.etag == "" && st.rev < l.below {
				break // an earlier life at this path was another memory
			}
			add(st.etag, st.prev)
			if st.renamedFrom != "" && st.rev < l.below {
				todo = append(todo, life{st.renamedFrom, st.rev})
			}
		}
	}
	return own, nil
}

// textAt is a text at the place where it is kept.
type textAt struct {
	path     memory.Path
	etag     memory.ETag
	conflict bool // kept for a conflict, not a version
}
