package archive

import (
	"context"
	"fmt"
	"io"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Export writes what the scope covers to w. Commits made meanwhile are in it or
// not; each project is whole up to one revision. A history that compaction takes
// away under the export is an ErrUnavailable: begin again.
func Export(ctx context.Context, b store.Backend, w io.Writer, scope Scope, progress Progress) error {
	keys, err := scope.projects(ctx, b)
	if err != nil {
		return err
	}
	epoch, err := b.Epoch(ctx)
	if err != nil {
		return err
	}
	a, err := newWriter(w)
	if err != nil {
		return err
	}
	if err := a.write(frame{Header: &header{Version: Version, Epoch: epoch, Team: scope.Team, Project: string(scope.Project)}}); err != nil {
		return err
	}
	x := exporter{b: b, a: a, progress: progress}
	if err := x.teams(ctx, scope, keys); err != nil {
		return err
	}
	for _, key := range keys {
		if err := x.project(ctx, key); err != nil {
			return fmt.Errorf("export %s: %w", key, err)
		}
	}
	return a.close()
}

type exporter struct {
	b        store.Backend
	a        *writer
	progress Progress
	count    Count
}

// teams writes what belongs to the hub and to teams rather than to a project.
func (x *exporter) teams(ctx context.Context, scope Scope, keys []memory.ProjectKey) error {
	var scopes []string
	var teams []memory.Team
	if scope.Team == "" {
		scopes = append(scopes, "")
		all, err := x.b.Teams(ctx)
		if err != nil {
			return err
		}
		teams = all
	} else {
		teams = []memory.Team{scope.Team}
	}
	for _, t := range teams {
		if scope.Project == "" {
			scopes = append(scopes, string(t))
		}
		fps, err := x.b.Redactions(ctx, t)
		if err != nil {
			return err
		}
		if len(fps) > 0 {
			if err := x.a.write(frame{Redact: &redactFrame{Team: t, Fingerprints: fps}}); err != nil {
				return err
			}
		}
	}
	for _, key := range keys {
		scopes = append(scopes, key.String())
	}
	for _, s := range scopes {
		if err := x.settings(ctx, s); err != nil {
			return err
		}
	}
	if !scope.Tokens {
		return nil
	}
	tokens, err := x.b.Tokens(ctx, scope.Team)
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if scope.Project != "" && t.Project != scope.Project {
			continue
		}
		if err := x.a.write(frame{Token: &t}); err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) settings(ctx context.Context, scope string) error {
	names, err := x.b.SettingNames(ctx, scope)
	if err != nil {
		return err
	}
	for _, name := range names {
		doc, version, err := x.b.Setting(ctx, scope, name)
		if err != nil {
			return err
		}
		if version == 0 { // gone meanwhile
			continue
		}
		if err := x.a.write(frame{Setting: &settingFrame{Scope: scope, Name: name, Doc: doc}}); err != nil {
			return err
		}
	}
	return nil
}

// project writes a project as of its head when the export comes to it.
func (x *exporter) project(ctx context.Context, key memory.ProjectKey) error {
	info, err := x.b.Project(ctx, key)
	if err != nil {
		return err
	}
	spans, err := x.b.Spans(ctx, key)
	if err != nil {
		return err
	}
	spans[len(spans)-1].Through = info.Head.Revision // commits may have come since
	err = x.a.write(frame{Project: &projectFrame{
		Team: key.Team, Project: key.Project, Created: info.CreateTime,
		Oldest: info.Oldest, Head: info.Head.Revision, HeadID: info.Head.CommitID, Spans: spans,
	}})
	if err != nil {
		return err
	}
	var end endFrame
	for after := memory.Revision(0); after < info.Head.Revision; {
		commits, err := x.b.History(ctx, key, after, maxBatchCommits, maxBatchBytes)
		if err != nil {
			return err
		}
		if len(commits) == 0 { // purged, and made anew
			return errOvertaken(key)
		}
		for i := range commits {
			c := &commits[i]
			if c.Revision > info.Head.Revision {
				break
			}
			if c.Revision > info.Oldest && c.Revision != after+1 {
				return errOvertaken(key)
			}
			after = c.Revision
			if err := x.a.write(frame{Commit: newCommitFrame(c)}); err != nil {
				return err
			}
			end.Commits++
			x.count.Commits++
			for j := range c.Changes {
				x.count.Bytes += c.Changes[j].Size
			}
		}
		x.progress.report(x.count)
	}
	// Compaction under way would have left holes below the new oldest revision.
	now, err := x.b.Project(ctx, key)
	if err != nil {
		return err
	}
	if now.Oldest != info.Oldest {
		return errOvertaken(key)
	}
	x.count.Projects++
	x.progress.report(x.count)
	return x.a.write(frame{End: &end})
}

func errOvertaken(key memory.ProjectKey) error {
	return &memory.Error{Reason: memory.ReasonUnavailable,
		Message: fmt.Sprintf("%s was compacted during the export; export again", key)}
}
