package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/memsvc/memsvc/internal/memory"
)

// ArchiveJudge decides about the texts of an archive; see package archive.
type ArchiveJudge interface {
	Name(text string) error
	Label(text string) string
	Setting(scope, name string, doc []byte) ([]byte, error)
}

// archiveJudge judges strictly, without any team's allowances: they may come with the
// archive.
type archiveJudge struct{ s *Service }

// Name refuses names that hold a secret.
func (j archiveJudge) Name(text string) error {
	if strings.Trim(text, "0123456789abcdef-") == "" {
		return nil // hex, as etags, ids and epochs are
	}
	if j.s.HoldsSecret(text) {
		return j.refuse("a name in it")
	}
	return nil
}

func (archiveJudge) refuse(what string) error {
	return &memory.Error{
		Reason: memory.ReasonSecretDetected, Message: "import refused; nothing was written",
		Violations: []memory.Violation{{Path: Withheld, Rule: "archive", Message: what + " holds a secret; take it out on the hub that wrote the archive, and export again"}},
	}
}

// Label leaves out words that hold a secret, or characters that no label may have.
func (j archiveJudge) Label(text string) string {
	if strings.IndexFunc(text, unfit) >= 0 {
		return Withheld
	}
	return j.s.discreet(text)
}

// Setting judges the documents of settings, each by what it is.
func (j archiveJudge) Setting(scope, name string, doc []byte) ([]byte, error) {
	switch {
	case name == settingRules:
		return nil, nil // what another hub judged says nothing here
	case name == settingConflicts:
		return j.conflicts(scope, name, doc)
	case strings.HasPrefix(name, settingConflictPrefix):
		return j.conflictText(scope, name, doc)
	case name == settingTeam:
		var t TeamSettings
		if err := decodeSetting(scope, name, doc, &t); err != nil {
			return nil, err
		}
		return doc, t.check("archive: settings of team " + scope)
	case name == settingPolicy:
		return j.policy(scope, name, doc)
	}
	if j.s.HoldsSecret(string(doc)) {
		return nil, j.refuse("the setting " + name)
	}
	return doc, nil
}

func (j archiveJudge) policy(scope, name string, doc []byte) ([]byte, error) {
	var p Policy
	if err := decodeSetting(scope, name, doc, &p); err != nil {
		return nil, err
	}
	if _, err := j.s.Guard.RulesVersion(p); err != nil {
		return nil, invalid("archive: the guard policy of %s cannot be used; export again from a sound hub", scope)
	}
	for _, text := range append(append([]string{string(p.RulesTOML)}, p.AllowRules...), p.AllowFingerprints...) {
		if j.s.HoldsSecret(text) {
			return nil, j.refuse("a guard policy in it")
		}
	}
	return doc, nil
}

func (j archiveJudge) conflicts(scope, name string, doc []byte) ([]byte, error) {
	var list []listedConflict
	if err := decodeSetting(scope, name, doc, &list); err != nil {
		return nil, err
	}
	for i := range list {
		c := &list[i]
		c.Author = memory.Author{
			Principal: j.Label(c.Author.Principal), Machine: j.Label(c.Author.Machine),
			Client: j.Label(c.Author.Client), Session: j.Label(c.Author.Session),
		}
		if len(c.Theirs) > 0 && j.s.HoldsSecret(string(c.Theirs)) {
			c.Theirs = nil
		}
		for _, text := range []string{c.ID, string(c.Path), string(c.HubETag), string(c.BaseETag), string(c.ETag)} {
			if err := j.Name(text); err != nil {
				return nil, err
			}
		}
	}
	return json.Marshal(list)
}

func (j archiveJudge) conflictText(scope, name string, doc []byte) ([]byte, error) {
	var t conflictText
	if err := decodeSetting(scope, name, doc, &t); err != nil {
		return nil, err
	}
	if j.s.HoldsSecret(string(t.Theirs)) {
		t.Theirs = []byte(memory.RedactionMarker)
	}
	return json.Marshal(t)
}

// decodeSetting reads a document strictly: what this hub does not know it cannot judge.
func decodeSetting(scope, name string, doc []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.DisallowUnknownFields()
	if err := dec.Decode(to); err != nil {
		return invalid("archive: the setting %s of %q cannot be read; export again, from a hub that is not newer than this one", name, scope)
	}
	return nil
}

// rejudge has the stored texts of every team judged again.
func (s *Service) rejudge(ctx context.Context) error {
	teams, err := s.teams(ctx)
	if err != nil {
		return fmt.Errorf("guard: stored texts are not judged again: %w", err)
	}
	for _, team := range teams {
		// The record goes first: a hub that stops meanwhile does it at its next start.
		_, _, err := update(ctx, s.settings, string(team), settingRules, ruleRecord{}, func(r *ruleRecord) error {
			*r = ruleRecord{}
			return nil
		})
		if err != nil {
			return fmt.Errorf("guard: stored texts are not judged again: %w", err)
		}
		s.requestRescan(team)
	}
	return nil
}
