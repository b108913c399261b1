package service

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// markerPrefix begins every redaction marker.
const markerPrefix = "<!-- memsvc: redacted"

// Marker is what readers see in the place of a redacted text.
const Marker = markerPrefix + ": an admin removed this text and its earlier versions. -->\n"

func isMarker(content []byte) bool { return bytes.HasPrefix(content, []byte(markerPrefix)) }

// RedactionFingerprint is the keyed fingerprint by which a redacted text is known
// again: an HMAC under the team's key of the text with line ends and trailing space
// made equal, so that a saved copy matches.
func RedactionFingerprint(key, content []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("memsvc redacted text\x00"))
	for line := range bytes.Lines(bytes.TrimRight(content, " \t\r\n")) {
		h.Write(bytes.TrimRight(line, " \t\r\n"))
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Redact removes the memory's stored texts: those with the given etags, or all. It
// leaves a marker, tells the watchers and remembers keyed fingerprints, so that the
// texts and the secrets found in them cannot return. Backups made before are not
// covered.
func (s *Service) Redact(ctx context.Context, c Call, key memory.ProjectKey, path memory.Path, etags []memory.ETag, reason string) (memory.Commit, error) {
	subject := key.MemoryName(path)
	if err := c.Principal.mayProject(key, Admin); err != nil {
		return memory.Commit{}, s.refused(ctx, c, key.Team, "redact", subject, err)
	}
	if err := s.judgeLabels(ctx, key.Team, label{"reason", reason}); err != nil {
		return memory.Commit{}, s.refused(ctx, c, key.Team, "redact", key.String(), err)
	}
	policy, err := s.policy(ctx, key.Team)
	if err != nil {
		return memory.Commit{}, err
	}
	prints, texts, err := s.redactionPrints(ctx, key, path, etags, policy)
	if err != nil {
		return memory.Commit{}, err
	}
	// From before the texts go, commits are compared with the fingerprints.
	first := false
	_, _, err = update(ctx, s.settings, string(key.Team), settingTeam, TeamSettings{WritersCreateProjects: true}, func(t *TeamSettings) error {
		if first = !t.Redactions; !first {
			return errUnchanged
		}
		t.Redactions = true
		return nil
	})
	if err != nil {
		return memory.Commit{}, err
	}
	if first && s.Shared != nil {
		// Until then another replica may believe that there is nothing to compare with.
		if err := pause(ctx, settingsTTL); err != nil {
			return memory.Commit{}, err
		}
	}
	res, err := s.Backend.Redact(ctx, store.RedactRequest{
		Project: key, Path: path, ETags: etags, Marker: []byte(Marker), Fingerprints: prints,
		Author: memory.Author{Principal: c.Principal.Name}, Now: s.Now(), Reason: reason,
	})
	if errors.Is(err, memory.ErrNotFound) {
		err = s.nothingToRedact(ctx, key, path, etags, err)
	}
	if err != nil {
		return memory.Commit{}, err
	}
	subject = key.MemoryName(memory.Path(s.tellable(policy, string(path))))
	s.Feed.Forget(key)
	s.search.forget(key)
	detail := fmt.Sprintf("revision %d, %d texts; backups made before still hold them", res.Commit.Revision, texts)
	return res.Commit, s.audit(ctx, c, key.Team, "redact", subject, detail)
}

// nothingToRedact says why there was nothing to redact, where err says that there was not.
func (s *Service) nothingToRedact(ctx context.Context, key memory.ProjectKey, path memory.Path, etags []memory.ETag, err error) error {
	m, gerr := s.Backend.Get(ctx, key, path, 0)
	why := ""
	switch {
	case gerr != nil:
		return err // no such memory
	case len(etags) > 0:
		why = "no stored version has one of these etags; memsync-agent log --json lists them"
	case isMarker(m.Content):
		why = "no stored version holds a text any more; it was redacted before"
	default:
		return err
	}
	return &memory.Error{Reason: memory.ReasonNotFound, Message: key.MemoryName(path) + ": nothing redacted: " + why}
}

// redactionPrints fingerprints every stored text that is to go, and the findings in it;
// texts counts the former.
func (s *Service) redactionPrints(ctx context.Context, key memory.ProjectKey, path memory.Path, etags []memory.ETag, policy Policy) (prints []string, texts int, err error) {
	wanted := map[memory.ETag]bool{}
	for _, e := range etags {
		wanted[e] = true
	}
	seen := map[memory.ETag]bool{}
	add := func(etag memory.ETag, content []byte) {
		if etag == "" || content == nil || seen[etag] || isMarker(content) || (len(wanted) > 0 && !wanted[etag]) {
			return
		}
		seen[etag] = true
		texts++
		prints = append(prints, RedactionFingerprint(policy.FingerprintKey, content))
		// A text that the guard cannot judge is still redacted whole.
		if found, err := s.Guard.Scan(policy, string(path), content); err == nil {
			for _, f := range found {
				prints = append(prints, f.Fingerprint)
			}
		}
	}
	info, err := s.Backend.Project(ctx, key)
	if err != nil {
		return nil, 0, hide(key, err)
	}
	switch m, err := s.Backend.Get(ctx, key, path, 0); {
	case err == nil:
		add(m.ETag, m.Content)
	case !errors.Is(err, memory.ErrNotFound):
		return nil, 0, err
	}
	for after := info.Oldest - 1; after < info.Head.Revision; {
		commits, err := s.Backend.Changes(ctx, key, after, 100, maxAnswerBytes)
		if err != nil {
			return nil, 0, err
		}
		if len(commits) == 0 {
			break
		}
		for _, commit := range commits {
			for _, ch := range commit.Changes {
				if ch.Path == path {
					add(ch.ETag, ch.Content)
				}
			}
		}
		after = commits[len(commits)-1].Revision
	}
	return prints, texts, nil
}

// checkRedacted refuses the return of a redacted text, and of a secret that stood
// in one even if the policy allows it.
func (s *Service) checkRedacted(ctx context.Context, team memory.Team, policy Policy, path memory.Path, content []byte) error {
	prints := []string{RedactionFingerprint(policy.FingerprintKey, content)}
	strict := Policy{Version: policy.Version, FingerprintKey: policy.FingerprintKey, RulesTOML: policy.RulesTOML}
	found, err := s.Guard.Scan(strict, string(path), content)
	if err != nil {
		return fmt.Errorf("guard: a memory was not judged: %w", err) // its name may be a secret too
	}
	for _, f := range found {
		prints = append(prints, f.Fingerprint)
	}
	hit, err := s.Backend.IsRedacted(ctx, team, prints)
	if err != nil || !hit {
		return err
	}
	return &memory.Error{
		Reason: memory.ReasonRedacted, Message: "commit refused",
		Violations: []memory.Violation{{Path: s.tellable(strict, string(path)), Rule: "redacted", Message: "an admin removed this text from the team's memories; do not bring it back"}},
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
