package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/extract"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/secretscan"
)

type extractCmd struct {
	placeFlags
	Transcript string `cmdline:"" help:"The conversation; else the one of this directory that was written last." placeholder:"FILE"`
	DryRun     bool   `cmdline:"" help:"Say what would be written, and write nothing."`
	JSON       bool   `name:"json" help:"Print JSON; see docs/lifecycle.md."`
}

// extractEntry is a report as --json prints it.
type extractEntry struct {
	Transcript string   `json:"transcript"`
	Skipped    string   `json:"skipped,omitempty"`
	By         string   `json:"by,omitempty"`       // rules or model
	Fallback   string   `json:"fallback,omitempty"` // why the rules did the work though there is a model
	Added      []string `json:"added"`
	Updated    []string `json:"updated"`
	Removed    []string `json:"removed"`
	Refused    []string `json:"refused"`
	Warnings   []string `json:"warnings,omitempty"` // of the index, whose caps are passed now
	Rounds     int      `json:"rounds"`
	Tokens     int      `json:"tokens"`
	MS         int64    `json:"ms"`
}

// Run makes memories of what a conversation said since the last time.
func (x *extractCmd) Run(c *command) error {
	p, err := c.place(x.placeFlags)
	if err != nil {
		return err
	}
	file := expandHome(x.Transcript)
	if file == "" {
		if file, err = c.newestTranscript(); err != nil {
			return err
		}
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	m := c.modelOrNone()
	g := c.guardOf(p)
	talk := extract.Conversation{Session: strings.TrimSuffix(filepath.Base(file), ".jsonl"), Transcript: file}
	e := &extract.Extractor{
		Model: m, Secrets: c.secrets, JSON: c.models.textOnly(), Record: c.state.audit(workExtract, p.Dir, talk.Session, c.Now, c.unrecorded),
		Store: c.store(p), Guard: g, Project: p.Root, Dir: c.state.extractDir(p.Dir), Now: c.Now,
	}
	r, err := e.Run(c.ctx, talk, x.DryRun)
	if err != nil {
		return err
	}
	refs := func(list []memories.Ref) []string {
		out := []string{}
		for _, r := range list {
			out = append(out, r.String())
		}
		return out
	}
	entry := extractEntry{
		Transcript: file, Skipped: r.Skipped, By: r.By, Fallback: r.Fallback, Added: refs(r.Added), Updated: refs(r.Updated), Removed: refs(r.Removed), Refused: append([]string{}, r.Refused...), Warnings: r.Warnings,
		Rounds: r.Rounds, Tokens: r.Usage.Input + r.Usage.Output, MS: r.Took.Milliseconds(),
	}
	if x.JSON {
		return printJSON(c.Stdout, entry)
	}
	word := func(did, would string) string {
		if x.DryRun {
			return would
		}
		return did
	}
	for _, ref := range entry.Added {
		fmt.Fprintf(c.Stdout, "%s %s\n", word("added", "would add"), ref)
	}
	for _, ref := range entry.Updated {
		fmt.Fprintf(c.Stdout, "%s %s\n", word("updated", "would update"), ref)
	}
	for _, ref := range entry.Removed {
		fmt.Fprintf(c.Stdout, "%s %s\n", word("removed", "would remove"), ref)
	}
	for _, why := range entry.Refused {
		fmt.Fprintf(c.Stdout, "not written: %s\n", visible(why))
	}
	for _, w := range entry.Warnings {
		fmt.Fprintf(c.Stdout, "warning: %s\n", visible(w))
	}
	if r.Fallback != "" {
		fmt.Fprintf(c.Stdout, "by rules; the model did not do it: %s\n", visible(r.Fallback))
	}
	if r.Skipped != "" {
		fmt.Fprintf(c.Stdout, "nothing to do: %s\n", r.Skipped)
	} else if len(entry.Added)+len(entry.Updated)+len(entry.Removed)+len(entry.Refused) == 0 {
		fmt.Fprintln(c.Stdout, "nothing that was meant to be remembered")
	}
	return nil
}

// unrecorded says that the audit record lacks something.
func (c *command) unrecorded(err error) {
	fmt.Fprintf(c.Stderr, "memsync-agent: %s\n", oneLine(err))
}

// newestTranscript returns the conversation of this directory that was written last.
func (c *command) newestTranscript() (string, error) {
	dirs, err := c.transcriptDirs(false)
	if err != nil {
		return "", err
	}
	var newest string
	var newestInfo os.FileInfo
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // a client that never ran here has none
		}
		for _, e := range entries {
			if fi, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".jsonl") && (newestInfo == nil || fi.ModTime().After(newestInfo.ModTime())) {
				newest, newestInfo = filepath.Join(dir, e.Name()), fi
			}
		}
	}
	if newest == "" {
		return "", usage("no conversation of this directory is in %s; give --transcript", strings.Join(slices.Compact(dirs), " or "))
	}
	return newest, nil
}

// extractDir is where the cursors of a project's conversations are kept.
func (s stateDir) extractDir(personal string) string {
	sum := sha256.Sum256([]byte(personal))
	return s.path("extract", hex.EncodeToString(sum[:8]))
}

// guardFor returns the guard under a team's policy as last told; hub "" is the strict
// default.
func (s stateDir) guardFor(hub, team string) teamGuard {
	g := guard{scanner: secretscan.New(secretscan.Options{}), policy: &policyHolder{}}
	if hub != "" {
		if policy, ok := s.loadPolicy(hub, team); ok {
			g.policy.set(policy)
		}
	}
	return teamGuard{g}
}
