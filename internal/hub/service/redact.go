package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// redactMessage is the message of the commits of a redaction. Every reader sees it; the
// admin's reason is for the audit log alone.
const redactMessage = "a text was redacted"

// Redacted says what a redaction did.
type Redacted struct {
	// Commit is the last one that it made, for the memory itself where that had a text.
	Commit memory.Commit
	// Rewritten are the memories that lost texts, the one asked for last.
	Rewritten []RewrittenMemory
	// Remaining are stored texts that may be meant as well and are still served, at most
	// maxRemaining and one that is WhyNotKnown. With nothing Rewritten, they are what
	// redactions before left.
	Remaining []RemainingText
}

// RewrittenMemory counts the texts of one path that a redaction took away.
type RewrittenMemory struct {
	Path      memory.Path
	Versions  int // stored versions
	Conflicts int // texts of open conflicts
}

// Redact removes the memory's stored texts: those with the given etags, or all, also
// from when it had another name, and the texts of open conflicts. Wherever else in the
// project one of these very texts is stored, it goes too. It leaves a marker, tells the
// watchers and remembers keyed fingerprints, so that the texts and the secrets found in
// them cannot return. Backups made before are not covered. A redaction that ends half
// way is taken up by asking again: the memory's own texts go last. Where nothing is left
// at the path, asking again tells what earlier redactions left.
func (s *Service) Redact(ctx context.Context, c Call, key memory.ProjectKey, path memory.Path, etags []memory.ETag, reason string) (Redacted, error) {
	subject := key.MemoryName(path)
	if err := c.Principal.mayProject(key, Admin); err != nil {
		return Redacted{}, s.refused(ctx, c, key.Team, "redact", subject, err)
	}
	if err := s.judgeLabels(ctx, key.Team, label{"reason", reason}); err != nil {
		return Redacted{}, s.refused(ctx, c, key.Team, "redact", key.String(), err)
	}
	policy, err := s.policy(ctx, key.Team)
	if err != nil {
		return Redacted{}, err
	}
	t, err := s.targetsOf(ctx, policy, key, path, etags)
	if err != nil {
		return Redacted{}, hide(key, err)
	}
	tell := func(p memory.Path) memory.Path { return memory.Path(s.tellable(policy, string(p))) }
	if len(t.at) == 0 {
		left, err := s.remainsOfBefore(ctx, policy, key, t)
		if err != nil {
			return Redacted{}, err
		}
		if len(left) == 0 {
			return Redacted{}, s.nothingToRedact(ctx, key, path, etags)
		}
		for i, r := range left {
			left[i].Path = tell(r.Path)
		}
		return Redacted{Remaining: left}, nil
	}
	subject = key.MemoryName(tell(path))
	if err := s.audit(ctx, c, key.Team, "redact", subject, "begun; why: "+reason); err != nil {
		return Redacted{}, err
	}
	if err := s.expectRedactions(ctx, key.Team); err != nil {
		return Redacted{}, err
	}
	out, err := s.redactTargets(ctx, c, key, t)
	s.Feed.Forget(key)
	s.search.forget(key)
	s.outcome(ctx, c, key.Team, "redact", subject, redactDetail(out, path, reason, tell, err))
	if err != nil {
		return Redacted{}, err
	}
	out.Remaining = s.remainsAfter(ctx, policy, key, t, out)
	for i, r := range out.Rewritten {
		out.Rewritten[i].Path = tell(r.Path)
	}
	for i, r := range out.Remaining {
		out.Remaining[i].Path = tell(r.Path)
	}
	return out, nil
}

// redactDetail is what the audit log tells of a redaction's end, err being why it ended
// early.
func redactDetail(out Redacted, path memory.Path, reason string, tell func(memory.Path) memory.Path, err error) string {
	also, texts, conflicts := "", 0, 0
	for _, r := range out.Rewritten {
		texts, conflicts = texts+r.Versions, conflicts+r.Conflicts
		if r.Path != path {
			also += " also " + string(tell(r.Path)) + ";"
		}
	}
	early := ""
	if err != nil {
		early = "ended early, ask again; "
	}
	return fmt.Sprintf("%srevision %d; why: %s; %d versions, %d conflict texts;%s backups made before still hold them",
		early, out.Commit.Revision, reason, texts, conflicts, also)
}

// expectRedactions has commits of the team compared with the fingerprints, from before
// the first text goes.
func (s *Service) expectRedactions(ctx context.Context, team memory.Team) error {
	first := false
	_, _, err := update(ctx, s.settings, string(team), settingTeam, TeamSettings{WritersCreateProjects: true}, func(t *TeamSettings) error {
		if first = !t.Redactions; !first {
			return errUnchanged
		}
		t.Redactions = true
		return nil
	})
	if err == nil && first && s.Shared != nil {
		// Until then another replica may believe that there is nothing to compare with.
		err = pause(ctx, settingsTTL)
	}
	return err
}

// redactTargets takes the texts away. The memory asked for comes last, and what its texts
// were copied to meanwhile after it: from the first commit on no new copy is accepted.
// What went before an error is returned with it.
func (s *Service) redactTargets(ctx context.Context, c Call, key memory.ProjectKey, t *redactTargets) (out Redacted, err error) {
	done := map[memory.Path]*RewrittenMemory{}
	count := func(p memory.Path) *RewrittenMemory {
		if done[p] == nil {
			done[p] = &RewrittenMemory{Path: p}
		}
		return done[p]
	}
	defer func() {
		for _, p := range slices.Sorted(maps.Keys(done)) {
			if p != t.path {
				out.Rewritten = append(out.Rewritten, *done[p])
			}
		}
		if own := done[t.path]; own != nil {
			out.Rewritten = append(out.Rewritten, *own)
		}
	}()
	for round := 0; round < 3; round++ {
		gone, err := s.dropConflicts(ctx, key, t.takesConflict)
		if err != nil {
			return out, err
		}
		for _, x := range gone {
			count(x.Path).Conflicts++
		}
		for _, p := range t.order() {
			at := t.at[p]
			req := store.RedactRequest{
				Project: key, Path: p, ETags: at.etags, Marker: []byte(memory.RedactionMarker), Fingerprints: t.prints,
				Author: memory.Author{Principal: c.Principal.Name}, Now: s.Now(), Message: redactMessage, Elsewhere: at.conflicts > 0,
			}
			if t.whole && p == t.path {
				req.ETags = nil
			} else if len(req.ETags) == 0 {
				req.ETags = t.all(p) // none of them is here: only conflict texts are
			}
			res, err := s.Backend.Redact(ctx, req)
			if errors.Is(err, memory.ErrNotFound) {
				// Somebody else redacted it meanwhile, or the path was never a memory's and
				// had nothing but a conflict. The texts must not return all the same.
				if err := s.Backend.ImportRedactions(ctx, key.Team, t.prints); err != nil {
					return out, err
				}
				continue
			}
			if err != nil {
				return out, err
			}
			out.Commit = res.Commit
			count(p).Versions += at.versions
		}
		if t, err = s.copiesOf(ctx, key, t); err != nil || len(t.at) == 0 {
			if err != nil {
				return out, err
			}
			break
		}
	}
	return out, nil
}

// nothingToRedact says why there was nothing to redact.
func (s *Service) nothingToRedact(ctx context.Context, key memory.ProjectKey, path memory.Path, etags []memory.ETag) error {
	m, err := s.Backend.Get(ctx, key, path, 0)
	why := "no stored version holds a text any more; it was redacted before"
	switch {
	case err == nil && len(etags) == 0 && !memory.IsRedactionMarker(m.Content):
		why = "no stored version holds a text"
	case err != nil && !errors.Is(err, memory.ErrNotFound):
		return err
	case err != nil && len(etags) == 0:
		return err // no such memory
	case len(etags) > 0:
		why = "no stored version has one of these etags; memsync-agent log --json lists them"
	}
	return &memory.Error{Reason: memory.ReasonNotFound, Message: key.MemoryName(path) + ": nothing redacted: " + why}
}

// FindRedacted returns those of the fingerprints (memory.RedactionFingerprint under the
// team's key) that are of redacted texts, never those of secrets in them, nor of what was
// redacted by a hub that kept both as one. Agents ask it about the texts that they keep;
// see docs/design/0005-redaction.md for why they are not told a list.
func (s *Service) FindRedacted(ctx context.Context, c Call, key memory.ProjectKey, fingerprints []string) ([]string, error) {
	if err := c.Principal.mayProject(key, Reader); err != nil {
		return nil, s.refused(ctx, c, key.Team, "redact.find", key.String(), err)
	}
	if _, err := s.Backend.Project(ctx, key); err != nil {
		return nil, hide(key, err)
	}
	asked := make(map[string]string, len(fingerprints))
	look := make([]string, len(fingerprints))
	for i, f := range fingerprints {
		look[i] = asText(f)
		asked[look[i]] = f
	}
	found, err := s.Backend.Redacted(ctx, key.Team, look)
	for i := range found {
		found[i] = asked[found[i]]
	}
	return found, err
}

// asText is what the store keeps, beside the fingerprint of a redacted text, so that
// FindRedacted can answer for texts alone: the store knows fingerprints of texts and of
// secrets as one set, and who has the team's key can make both. It is 64 digits of
// lower-case hex, too.
func asText(fingerprint string) string {
	sum := sha256.Sum256([]byte("memsvc fingerprint of a redacted text\x00" + fingerprint))
	return hex.EncodeToString(sum[:])
}

// checkRedacted refuses the return of a redacted text, and of a secret that stood
// in one even if the policy allows it.
func (s *Service) checkRedacted(ctx context.Context, team memory.Team, policy Policy, path memory.Path, content []byte) error {
	prints := []string{memory.RedactionFingerprint(policy.FingerprintKey, content)}
	strict := Policy{Version: policy.Version, FingerprintKey: policy.FingerprintKey, RulesTOML: policy.RulesTOML}
	found, err := s.Guard.Scan(strict, string(path), content)
	if err != nil {
		return fmt.Errorf("guard: a memory was not judged: %w", err) // its name may be a secret too
	}
	for _, f := range found {
		prints = append(prints, f.Fingerprint)
	}
	hits, err := s.Backend.Redacted(ctx, team, prints)
	if err != nil || len(hits) == 0 {
		return err
	}
	return &memory.Error{
		Reason: memory.ReasonRedacted, Message: "commit refused",
		Violations: []memory.Violation{{Path: s.tellable(strict, string(path)), Rule: memory.RuleRedacted, Message: "an admin removed this text from the team's memories; do not bring it back"}},
	}
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
