package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/filelock"
	"github.com/memsvc/memsvc/internal/wholefile"
)

// stateDir is the directory where an agent keeps what it must remember:
//
//	agent.id              who we are, for the hub's list of agents
//	links.json            the links made by `link`
//	origins.json          for which repositories the links were made
//	credentials/          tokens stored by `login`, 0600
//	policy/               guard policies last seen, 0600 (they hold a key)
//	places/               where clients keep a project's memories, where they were seen; see seen.go
//	sessions/             what sessions were given, for whom no transcript tells, and have heard; see inject.Record
//	links/<id>/           the state of each link
//	links/<id>.json       which link that is
//
// Reading never makes any of it.
type stateDir string

// DefaultStateDir is $XDG_STATE_HOME/memsync, else ~/.local/state/memsync.
func DefaultStateDir(env func(string) string) (string, error) {
	if d := env("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "memsync"), nil
	}
	if home := env("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "memsync"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", usage("no home directory is known; give --state-dir")
	}
	return filepath.Join(home, ".local", "state", "memsync"), nil
}

func (s stateDir) path(parts ...string) string {
	return filepath.Join(append([]string{string(s)}, parts...)...)
}

// linkDir is where the state of a link is kept; see package syncstate.
func (s stateDir) linkDir(id string) string { return s.path("links", id) }

// linkFile says which link a state belongs to.
func (s stateDir) linkFile(id string) string { return s.path("links", id+".json") }

// exists reports whether anything was ever kept here.
func (s stateDir) exists() bool {
	fi, err := os.Stat(string(s))
	return err == nil && fi.IsDir()
}

// create makes the directory for this user alone.
func (s stateDir) create() error {
	if err := os.MkdirAll(string(s), 0o700); err != nil {
		return fmt.Errorf("state directory %s cannot be made; give another --state-dir: %w", string(s), err)
	}
	return nil
}

// agentID returns this state's stable id, making it at first use.
func (s stateDir) agentID() (string, error) {
	if b, err := os.ReadFile(s.path("agent.id")); err == nil {
		if id, err := uuid.Parse(strings.TrimSpace(string(b))); err == nil {
			return id.String(), nil
		}
	}
	id := uuid.NewString()
	return id, writeFile(s.path("agent.id"), []byte(id+"\n"))
}

// storedLinks returns the links made by `link`.
func (s stateDir) storedLinks() ([]Link, error) {
	var links []Link
	err := readJSON(s.path("links.json"), &links)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return links, err
}

// alone waits, no longer than most, for other commands that read what is kept here and
// store it changed, and keeps them waiting until release: of two that read the same and
// store one after the other, the second would drop what the first has added. The
// directory is made already. Disks that know no locks on directories go without.
func (s stateDir) alone(ctx context.Context, most time.Duration) (release func(), err error) {
	dir, err := os.Open(string(s))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if err := filelock.Lock(ctx, dir); ctx.Err() != nil && err != nil {
		_ = dir.Close()
		return nil, fmt.Errorf("another command is changing what %s holds; try again when it has ended: %w", string(s), err)
	}
	return func() { _ = filelock.Release(dir) }, nil
}

// storeLinks keeps the links made by `link`; the caller is alone.
func (s stateDir) storeLinks(links []Link) error { return writeJSON(s.path("links.json"), links) }

// record says which link a state belongs to, and whether that link was unlinked since.
type record struct {
	Link
	Unlinked bool `json:"unlinked,omitempty"`
}

// records returns every link that has a state here, whoever made it.
func (s stateDir) records() ([]record, error) {
	entries, err := os.ReadDir(s.path("links"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []record
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		var r record
		err := readJSON(s.linkFile(id), &r)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b record) int { return strings.Compare(a.Name()+a.Dir, b.Name()+b.Dir) })
	return all, nil
}

// knownLinks returns every link that has a state here and was not unlinked.
func (s stateDir) knownLinks() ([]Link, error) {
	all, err := s.records()
	var links []Link
	for _, r := range all {
		if !r.Unlinked {
			links = append(links, r.Link)
		}
	}
	return links, err
}

// begin notes which link a state is about to belong to. One that is known stays as it was
// noted, with its hub and credential, until remember: a mistyped address must not take
// the place of the one that works.
func (s stateDir) begin(l Link) error {
	var have record
	if err := readJSON(s.linkFile(l.ID()), &have); err == nil && !have.Unlinked {
		return nil
	}
	return s.remember(l)
}

// remember notes which link a state belongs to.
func (s stateDir) remember(l Link) error { return s.keepRecord(record{Link: l}) }

func (s stateDir) keepRecord(r record) error {
	var have record
	if err := readJSON(s.linkFile(r.ID()), &have); err == nil && have == r {
		return nil
	}
	return writeJSON(s.linkFile(r.ID()), r)
}

// unlinked notes that a link is no more; its state, if it has one, is kept.
func (s stateDir) unlinked(l Link) error {
	if !s.has(l) {
		return nil
	}
	return s.keepRecord(record{Link: l, Unlinked: true})
}

// has reports whether a link has a state here.
func (s stateDir) has(l Link) bool {
	_, err := os.Stat(s.linkFile(l.ID()))
	return err == nil
}

// forget removes the state of a link.
func (s stateDir) forget(id string) error {
	return errors.Join(os.RemoveAll(s.linkDir(id)), os.RemoveAll(s.linkFile(id)))
}

// credentialFile is where `login` keeps the token for a hub.
func (s stateDir) credentialFile(hub string) string {
	return s.path("credentials", fileName(hub)+".token")
}

// fileName makes an address a name that every disk takes.
func fileName(addr string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '_'
	}, addr)
}

// tokenFileOf returns the file a link's token is in: its own, else what `login` stored.
func (s stateDir) tokenFileOf(l Link) string {
	if l.TokenFile != "" {
		return l.TokenFile
	}
	return s.credentialFile(l.Hub)
}

// loadPolicy returns the last policy seen, if any.
func (s stateDir) loadPolicy(hub, team string) (client.GuardPolicy, bool) {
	var p client.GuardPolicy
	err := readJSON(s.policyPath(hub, team), &p)
	return p, err == nil && string(p.Team) == team
}

func (s stateDir) storePolicy(hub string, p client.GuardPolicy) error {
	return writeJSON(s.policyPath(hub, string(p.Team)), p)
}

func (s stateDir) policyPath(hub, team string) string {
	return s.path("policy", fileName(hub)+"~"+team+".json")
}

func readJSON(name string, into any) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s is damaged; remove it and the agent makes it again: %w", name, err)
	}
	return nil
}

func writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(name, append(b, '\n'))
}

// writeFile replaces a file of ours, for this user alone, atomically and durably.
func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return wholefile.Replace(name, content, 0o600)
}
