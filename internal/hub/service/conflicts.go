package service

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// Conflict is two edits that could not be merged. The hub's text stands in its
// place; Theirs is the one that lost its place.
type Conflict struct {
	ID         string        `json:"id"`
	Path       memory.Path   `json:"path"`
	Theirs     []byte        `json:"theirs,omitempty"`
	HubETag    memory.ETag   `json:"hub_etag,omitempty"`
	BaseETag   memory.ETag   `json:"base_etag,omitempty"`
	Author     memory.Author `json:"author"`
	CreateTime time.Time     `json:"create_time"`
}

// settingConflicts holds the list of a project's open conflicts, without texts;
// each text is a document of its own, so that a report rewrites a short list only.
const (
	settingConflicts      = "conflicts"
	settingConflictPrefix = "conflict/"
)

type conflictText struct {
	Theirs []byte `json:"theirs,omitempty"`
}

// ReportConflict keeps a conflict on the hub. Its text passes the same rules as a
// commit's. Over the project's bound the oldest makes room. The same text at the
// same path is one conflict, however often it is reported.
func (s *Service) ReportConflict(ctx context.Context, c Call, key memory.ProjectKey, n Conflict) (Conflict, error) {
	if err := c.Principal.mayProject(key, Writer); err != nil {
		return Conflict{}, s.refused(ctx, c, key.Team, "conflict.report", key.String(), err)
	}
	if _, err := s.Backend.Project(ctx, key); err != nil {
		return Conflict{}, hide(key, err)
	}
	team, err := s.teamSettings(ctx, key.Team)
	if err != nil {
		return Conflict{}, err
	}
	change := memory.Change{Path: n.Path, Kind: memory.Put, Content: n.Theirs}
	if err := s.judgeLabels(ctx, key.Team, authorLabels(n.Author)...); err != nil {
		return Conflict{}, s.refused(ctx, c, key.Team, "conflict.report", key.String(), err)
	}
	if err := s.judge(ctx, key, team, []memory.Change{change}); err != nil {
		// The name of the memory may be what was refused, so the record does without.
		return Conflict{}, s.refused(ctx, c, key.Team, "conflict.report", key.String(), err)
	}
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return Conflict{}, err
	}
	n.ID = hex.EncodeToString(random[:])
	n.Author.Principal, n.CreateTime = c.Principal.Name, s.Now()
	scope, etag := key.String(), memory.ETagOf(n.Theirs)
	if err := save(ctx, s.settings, scope, settingConflictPrefix+n.ID, conflictText{n.Theirs}, 0); err != nil {
		return Conflict{}, err
	}
	hollow, err := s.hollowConflicts(ctx, key, n.Path, etag)
	if err != nil {
		return Conflict{}, err
	}
	var dropped []string
	kept := n
	_, _, err = update(ctx, s.settings, scope, settingConflicts, []listedConflict(nil), func(list *[]listedConflict) error {
		dropped = nil
		next := slices.Clone(*list)
		for _, have := range *list {
			if slices.Contains(hollow, have.ID) {
				next = slices.DeleteFunc(next, func(l listedConflict) bool { return l.ID == have.ID })
				dropped = append(dropped, have.ID)
				continue
			}
			if have.Path == n.Path && have.ETag == etag {
				kept = have.Conflict
				kept.Theirs = n.Theirs
				dropped = []string{n.ID}
				return errUnchanged
			}
		}
		short := n
		short.Theirs = nil
		next = append(next, listedConflict{short, etag})
		if over := len(next) - s.Limits.Conflicts; over > 0 {
			for _, old := range next[:over] {
				dropped = append(dropped, old.ID)
			}
			next = next[over:]
		}
		*list = next
		return nil
	})
	if err != nil {
		return Conflict{}, err
	}
	return kept, s.dropConflictTexts(ctx, scope, dropped)
}

// hollowConflicts returns the ids of the open conflicts about this text whose kept text is
// another, as an import leaves them where it must not take the text over. Nobody is shown
// those, so they are no reason not to keep the text when it is reported.
func (s *Service) hollowConflicts(ctx context.Context, key memory.ProjectKey, path memory.Path, etag memory.ETag) (ids []string, err error) {
	list, err := s.listedConflicts(ctx, key)
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		if l.Path != path || l.ETag != etag {
			continue
		}
		text, err := s.conflictText(ctx, key, l.ID)
		if err != nil {
			return nil, err
		}
		if memory.ETagOf(text) != etag {
			ids = append(ids, l.ID)
		}
	}
	return ids, nil
}

type listedConflict struct {
	Conflict
	ETag memory.ETag `json:"etag"`
}

func (s *Service) dropConflictTexts(ctx context.Context, scope string, ids []string) error {
	for _, id := range ids {
		_, _, err := update(ctx, s.settings, scope, settingConflictPrefix+id, conflictText{}, func(t *conflictText) error {
			t.Theirs = nil
			return nil
		})
		s.settings.forget(scope, settingConflictPrefix+id)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) listedConflicts(ctx context.Context, key memory.ProjectKey) ([]listedConflict, error) {
	list, _, err := loadFresh(ctx, s.settings, key.String(), settingConflicts, []listedConflict(nil))
	return list, err
}

func (s *Service) conflictText(ctx context.Context, key memory.ProjectKey, id string) ([]byte, error) {
	text, _, err := loadFresh(ctx, s.settings, key.String(), settingConflictPrefix+id, conflictText{})
	s.settings.forget(key.String(), settingConflictPrefix+id) // texts are large; not worth keeping
	return text.Theirs, err
}

// eachConflict calls look for every open conflict of the project and its text, oldest first.
func (s *Service) eachConflict(ctx context.Context, key memory.ProjectKey, look func(x listedConflict, text []byte) error) error {
	list, err := s.listedConflicts(ctx, key)
	if err != nil {
		return err
	}
	for _, x := range list {
		text, err := s.conflictText(ctx, key, x.ID)
		if err != nil {
			return err
		}
		if err := look(x, text); err != nil {
			return err
		}
	}
	return nil
}

// dropConflicts takes away the conflicts whose texts are to go, and returns them. The
// texts go first: a list that names one which is no more does no harm.
func (s *Service) dropConflicts(ctx context.Context, key memory.ProjectKey, goes func(x listedConflict, text []byte) bool) ([]listedConflict, error) {
	var gone []listedConflict
	var ids []string
	err := s.eachConflict(ctx, key, func(x listedConflict, text []byte) error {
		if goes(x, text) {
			gone, ids = append(gone, x), append(ids, x.ID)
		}
		return nil
	})
	if err != nil || len(gone) == 0 {
		return nil, err
	}
	if err := s.dropConflictTexts(ctx, key.String(), ids); err != nil {
		return nil, err
	}
	_, _, err = update(ctx, s.settings, key.String(), settingConflicts, []listedConflict(nil), func(list *[]listedConflict) error {
		*list = slices.DeleteFunc(slices.Clone(*list), func(l listedConflict) bool { return slices.Contains(ids, l.ID) })
		return nil
	})
	return gone, err
}

// redactedTexts returns a function that reports whether a text was redacted in the team.
func (s *Service) redactedTexts(ctx context.Context, team memory.Team) (func(text []byte) (bool, error), error) {
	settings, err := s.teamSettings(ctx, team)
	if err != nil || !settings.Redactions {
		return func([]byte) (bool, error) { return false, nil }, err
	}
	policy, err := s.policy(ctx, team)
	return func(text []byte) (bool, error) {
		found, err := s.Backend.Redacted(ctx, team, []string{memory.RedactionFingerprint(policy.FingerprintKey, text)})
		return len(found) > 0, err
	}, err
}

// Conflicts lists the open conflicts of a project, oldest first, texts included.
func (s *Service) Conflicts(ctx context.Context, c Call, key memory.ProjectKey, page Page) ([]Conflict, string, error) {
	if err := c.Principal.mayProject(key, Reader); err != nil {
		return nil, "", s.refused(ctx, c, key.Team, "conflict.list", key.String(), err)
	}
	if _, err := s.Backend.Project(ctx, key); err != nil {
		return nil, "", hide(key, err)
	}
	scope := key.String()
	list, err := s.listedConflicts(ctx, key)
	if err != nil {
		return nil, "", err
	}
	withhold, err := s.redactedTexts(ctx, key.Team)
	if err != nil {
		return nil, "", err
	}
	of := listOf("conflicts", scope)
	var at struct{ After string }
	if err := page.decode(of, &at); err != nil {
		return nil, "", err
	}
	if i := slices.IndexFunc(list, func(l listedConflict) bool { return l.ID == at.After }); i >= 0 {
		list = list[i+1:]
	}
	size, bytes := page.size(50, 500), 0
	var out []Conflict
	for _, l := range list {
		if len(out) == size {
			return out, encodePage(of, at), nil
		}
		text, err := s.conflictText(ctx, key, l.ID)
		if err != nil {
			return nil, "", err
		}
		hold, err := withhold(text)
		if err != nil {
			return nil, "", err
		}
		if hold || memory.ETagOf(text) != l.ETag {
			at.After = l.ID
			continue // redacted while it was being reported, or being taken away right now
		}
		if bytes += len(text); bytes > maxAnswerBytes && len(out) > 0 {
			return out, encodePage(of, at), nil
		}
		l.Theirs = text
		out = append(out, l.Conflict)
		at.After = l.ID
	}
	return out, "", nil
}

// ResolveConflict closes a conflict; any writer of the project may.
func (s *Service) ResolveConflict(ctx context.Context, c Call, key memory.ProjectKey, id string) error {
	if err := c.Principal.mayProject(key, Writer); err != nil {
		return s.refused(ctx, c, key.Team, "conflict.resolve", key.String(), err)
	}
	if _, err := s.Backend.Project(ctx, key); err != nil {
		return hide(key, err)
	}
	scope := key.String()
	_, _, err := update(ctx, s.settings, scope, settingConflicts, []listedConflict(nil), func(list *[]listedConflict) error {
		i := slices.IndexFunc(*list, func(l listedConflict) bool { return l.ID == id })
		if i < 0 {
			return &memory.Error{Reason: memory.ReasonNotFound, Message: fmt.Sprintf("%s/conflicts/%.64s: no such open conflict", key, id)}
		}
		*list = slices.Delete(slices.Clone(*list), i, i+1)
		return nil
	})
	if err != nil {
		return err
	}
	return s.dropConflictTexts(ctx, scope, []string{id})
}
