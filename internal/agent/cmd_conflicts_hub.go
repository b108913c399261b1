package agent

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/config"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/secretscan"
)

// keptConflict is a conflict that the hub keeps, so that other machines than the one
// it arose on can end it (ruling 13.22).
type keptConflict struct {
	link Link
	client.Conflict
}

// id is the last part of the hub's name of it.
func (k keptConflict) id() string { return path.Base(k.Name) }

// keptConflictEntry is its outward shape.
type keptConflictEntry struct {
	Link      string    `json:"link"`
	ID        string    `json:"id"`
	Path      string    `json:"path"`
	Principal string    `json:"principal"`
	Machine   string    `json:"machine,omitempty"`
	Since     time.Time `json:"since"`
}

// keptConflicts asks the hubs of the links that the flags choose, or of all known ones.
func (c *command) keptConflicts(f selectFlags) ([]keptConflict, error) {
	if f.Link != "" || f.Dir != "" || f.Hub != "" || f.Project != "" {
		l, err := c.choose(f)
		if err != nil {
			return nil, err
		}
		return c.keptOf([]Link{l})
	}
	known, err := c.known(f.linkFlags)
	if err != nil {
		return nil, err
	}
	return c.keptOf(known)
}

// keptOf asks the hubs of these links.
func (c *command) keptOf(links []Link) (all []keptConflict, err error) {
	type project struct {
		hub string
		key memory.ProjectKey
	}
	asked := map[project]bool{}
	for _, l := range links {
		p := project{l.Hub, l.Key()}
		if asked[p] {
			continue // several directories of one project
		}
		asked[p] = true
		err := c.withHub(l, func(cl *client.Client) error {
			kept, err := cl.Conflicts(c.ctx, l.Key())
			for _, k := range kept {
				all = append(all, keptConflict{l, k})
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (c *command) withHub(l Link, do func(*client.Client) error) error {
	cl, err := c.dialWithToken(l)
	if err != nil {
		return err
	}
	defer cl.Close()
	return do(cl)
}

// listKept prints what the hub keeps of all machines.
func (c *command) listKept(f selectFlags, json bool) error {
	all, err := c.keptConflicts(f)
	if err != nil {
		return err
	}
	entries := []keptConflictEntry{}
	for _, k := range all {
		entries = append(entries, keptConflictEntry{
			Link: k.link.Name(), ID: k.id(), Path: string(k.Path), Principal: k.Author.Principal, Machine: k.Author.Machine, Since: k.CreateTime.UTC(),
		})
	}
	if json {
		return printJSON(c.Stdout, entries)
	}
	if len(entries) == 0 {
		fmt.Fprintln(c.Stdout, "no open conflicts")
	}
	for _, e := range entries {
		fmt.Fprintf(c.Stdout, "%s  %s  %s  text of %s  %s ago\n", e.ID, e.Link, e.Path, whose(e.Principal, e.Machine), age(c.Now(), e.Since))
	}
	return nil
}

func whose(principal, machine string) string {
	if machine == "" {
		return visible(principal)
	}
	return visible(principal + " on " + machine)
}

// ownConflicts are the open conflicts of this machine: link and path, and their ids.
type ownConflicts map[string]string

func (o ownConflicts) add(l LinkStatus) {
	for _, e := range l.Conflicts {
		o[l.Name()+"\x00"+e.Path] = e.ID
	}
}

// at returns this machine's conflict at the place of one that the hub keeps.
func (o ownConflicts) at(k keptConflict) (id string, ok bool) {
	id, ok = o[k.link.Name()+"\x00"+string(k.Path)]
	return id, ok
}

// keptElsewhere finds a conflict by the hub's id of it, or by its path, and reports
// false for one of this machine's own, which the state knows better.
func (c *command) keptElsewhere(f selectFlags, id string) (k keptConflict, found bool, err error) {
	st, err := (&statusCmd{}).read(c)
	if err != nil {
		return keptConflict{}, false, err
	}
	own := ownConflicts{}
	for _, l := range st.Links {
		for _, e := range l.Conflicts {
			if e.ID == id || e.Path == id {
				return keptConflict{}, false, nil
			}
		}
		own.add(l)
	}
	all, err := c.keptConflicts(f)
	if err != nil {
		return keptConflict{}, false, err
	}
	k, found, err = findKept(all, own, id)
	if err == nil && !found {
		err = usage("no open conflict is called %s; see 'memsync-agent conflicts list', and list --all for what the hub keeps", id)
	}
	return k, found, err
}

// findKept finds the one that an id or a path names, where nothing of this machine stands
// in its way.
func findKept(all []keptConflict, own ownConflicts, id string) (keptConflict, bool, error) {
	var hits []keptConflict
	for _, one := range all {
		if one.id() == id || string(one.Path) == id {
			hits = append(hits, one)
		}
	}
	if len(hits) == 0 {
		return keptConflict{}, false, nil
	}
	if mine, ok := own.at(hits[0]); ok {
		return keptConflict{}, false, usage("this machine has a conflict at %s itself; resolve that one first: %s", hits[0].Path, mine)
	}
	if len(hits) > 1 {
		var ids []string
		for _, h := range hits {
			ids = append(ids, h.id())
		}
		return keptConflict{}, false, usage("the hub keeps several conflicts at %s; name one by its id: %s", id, strings.Join(ids, ", "))
	}
	return hits[0], true, nil
}

// present returns what the hub has at the conflict's path now; a tombstone or the zero
// Memory where it has none.
func (k keptConflict) present(ctx context.Context, cl *client.Client) (memory.Memory, error) {
	m, err := cl.Get(ctx, k.link.Key(), k.Path, 0)
	if errors.Is(err, memory.ErrNotFound) {
		return memory.Memory{Path: k.Path, Deleted: true}, nil
	}
	return m, err
}

// texts returns both texts as for a conflict of this machine: ours is the one that lost
// its place, theirs what the hub has now.
func (k keptConflict) texts(c *command) (conflictTexts, error) {
	var m memory.Memory
	err := c.withHub(k.link, func(cl *client.Client) (err error) {
		m, err = k.present(c.ctx, cl)
		return err
	})
	return conflictTexts{
		ConflictEntry: ConflictEntry{ID: k.id(), Path: string(k.Path), HubRevision: int64(m.Revision), Deleted: m.Deleted, Redacted: memory.IsRedactionMarker(m.Content), Since: k.CreateTime.UTC()},
		Ours:          string(k.Text), Theirs: string(m.Content),
	}, err
}

// show prints both texts.
func (k keptConflict) show(c *command, json bool) error {
	t, err := k.texts(c)
	if err != nil {
		return err
	}
	if json {
		return printJSON(c.Stdout, t)
	}
	t.print(c, "ours ("+whose(k.Author.Principal, k.Author.Machine)+")")
	return nil
}

// resolve ends the conflict: what is chosen is committed, unless it is in place, if the
// memory is still what it was a moment ago. The machine it arose on learns of it from the
// hub. done says where the memory stands now, warning what is to be looked at; "" = nothing.
func (k keptConflict) resolve(c *command, p resolveParams) (done, warning string, err error) {
	done = "the hub's text stays"
	err = c.withHub(k.link, func(cl *client.Client) error {
		text := k.Text
		switch p.How {
		case "theirs":
			return cl.ResolveConflict(c.ctx, k.Name)
		case "merged":
			text = p.Merged
		}
		if err := k.judge(c, cl, text); err != nil {
			return err
		}
		m, err := k.present(c.ctx, cl)
		if err != nil {
			return err
		}
		want := memory.IfMatch(m.ETag)
		if m.Deleted {
			want = memory.IfAbsent()
		}
		res, err := cl.Commit(c.ctx, client.CommitRequest{
			Project: k.link.Key(), Message: "resolve conflict " + k.id(),
			Changes: []memory.Change{{Path: k.Path, Kind: memory.Put, Content: text, Precondition: want, ModTime: c.Now().UTC()}},
		})
		if errors.Is(err, memory.ErrETagMismatch) {
			return fmt.Errorf("resolve %s: somebody changed %s at the same time; look at it and try again", k.id(), k.Path)
		}
		if err != nil {
			return err
		}
		done = fmt.Sprintf("it is in place as of revision %d", res.Head.Revision)
		if memory.IsRedactionMarker(m.Content) {
			warning = broughtBack
		}
		return cl.ResolveConflict(c.ctx, k.Name)
	})
	return done, warning, err
}

// judge has the guard look at a text before it leaves this machine, under the policy
// that the hub has now.
func (k keptConflict) judge(c *command, cl *client.Client, text []byte) error {
	policy, err := cl.Policy(c.ctx, k.link.Key().Team)
	if err != nil {
		return err
	}
	g := guard{scanner: secretscan.New(secretscan.Options{CacheEntries: -1}), policy: &policyHolder{}}
	g.policy.set(policy)
	v, err := g.Check(c.ctx, k.Path, text)
	if err == nil && len(v.Violations) > 0 {
		err = &config.UsageError{Err: &syncer.RefusedError{Path: k.Path, Violations: v.Violations}}
	}
	return err
}
