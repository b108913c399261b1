// Package archive moves whole histories from hub to hub as one stream: commits in
// order with contents, times, authors and ids, tombstones, epochs, settings, the
// fingerprints of redacted texts and, if wished, the hashes of tokens.
//
// An archive is a line of magic, frames, and a trailer with the SHA-256 of all
// before it. A frame is its length and a JSON document; contents stand in it as
// base64. The format favours being read in ten years over being small: compress it
// with any tool.
//
// Import is idempotent: what is there already is compared, not written again, so
// that an import cut short is simply begun anew. A file is verified to its trailer
// before anything is written, if it can be read twice; see Import.
package archive

import (
	"context"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Version is the format that this program writes. It reads this one and older ones.
const Version = 1

// magic begins every archive.
const magic = "memsvc-archive\n"

// Bounds of reading, against damaged or hostile input.
const (
	// maxFrameBytes holds the largest commit, in base64, with room for its metadata.
	maxFrameBytes = 2*memory.MaxCommitBytes + 4<<20
	// maxBatchCommits and maxBatchBytes bound what Import writes at a time.
	maxBatchCommits = 200
	maxBatchBytes   = 4 << 20
)

// Scope says what Export takes.
type Scope struct {
	Team    memory.Team    // "" = all teams
	Project memory.Project // "" = all projects of Team; needs Team
	Tokens  bool           // the hashes of tokens too
}

// Progress reports how far a long work has come; it may be nil. Counts only grow.
type Progress func(Count)

// Count is what was done so far.
type Count struct {
	Projects int
	Commits  int64 // read or written; on import, found there already too
	Bytes    int64 // of contents
}

func (p Progress) report(c Count) {
	if p != nil {
		p(c)
	}
}

// frame is one document of the stream: exactly one field is set.
type frame struct {
	Header  *header       `json:"header,omitempty"`
	Setting *settingFrame `json:"setting,omitempty"`
	Redact  *redactFrame  `json:"redactions,omitempty"`
	Token   *store.Token  `json:"token,omitempty"`
	Project *projectFrame `json:"project,omitempty"`
	Commit  *commitFrame  `json:"commit,omitempty"` // of the project before it
	End     *endFrame     `json:"end,omitempty"`    // of that project
}

type header struct {
	Version int          `json:"version"`
	Epoch   memory.Epoch `json:"epoch"`
	Team    memory.Team  `json:"team,omitempty"`
	Project string       `json:"project,omitempty"`
}

type settingFrame struct {
	Scope string `json:"scope"`
	Name  string `json:"name"`
	Doc   []byte `json:"doc"`
}

type redactFrame struct {
	Team         memory.Team `json:"team"`
	Fingerprints []string    `json:"fingerprints"`
}

type projectFrame struct {
	Team    memory.Team     `json:"team"`
	Project memory.Project  `json:"project"`
	Created time.Time       `json:"created"`
	Oldest  memory.Revision `json:"oldest"`
	Head    memory.Revision `json:"head"`
	HeadID  memory.CommitID `json:"headId,omitempty"`
	Spans   []store.Span    `json:"spans"`
}

func (p *projectFrame) key() memory.ProjectKey {
	return memory.ProjectKey{Team: p.Team, Project: p.Project}
}

type commitFrame struct {
	Revision memory.Revision `json:"revision"`
	ID       memory.CommitID `json:"id"`
	Author   memory.Author   `json:"author"`
	Time     time.Time       `json:"time"`
	Message  string          `json:"message,omitempty"`
	Changes  []changeFrame   `json:"changes"`
}

type changeFrame struct {
	Path         memory.Path `json:"path"`
	Kind         string      `json:"kind"`
	ETag         memory.ETag `json:"etag,omitempty"`
	PreviousETag memory.ETag `json:"previousEtag,omitempty"`
	Content      []byte      `json:"content,omitempty"`
	ModTime      time.Time   `json:"modTime"`
	RenamedFrom  memory.Path `json:"renamedFrom,omitempty"`
}

type endFrame struct {
	Commits int64 `json:"commits"`
}

func newCommitFrame(c *memory.Commit) *commitFrame {
	f := &commitFrame{Revision: c.Revision, ID: c.ID, Author: c.Author, Time: c.Time, Message: c.Message}
	for i := range c.Changes {
		ch := &c.Changes[i]
		f.Changes = append(f.Changes, changeFrame{
			Path: ch.Path, Kind: ch.Kind.String(), ETag: ch.ETag, PreviousETag: ch.PreviousETag,
			Content: ch.Content, ModTime: ch.ModTime, RenamedFrom: ch.RenamedFrom,
		})
	}
	return f
}

// commit returns the commit of the frame, its paths parsed: an archive is input
// like any other.
func (f *commitFrame) commit(key memory.ProjectKey) (memory.Commit, error) {
	c := memory.Commit{Project: key, Revision: f.Revision, ID: f.ID, Author: f.Author, Time: f.Time.UTC(), Message: f.Message}
	for i := range f.Changes {
		ch := &f.Changes[i]
		a := memory.AppliedChange{
			Path: ch.Path, ETag: ch.ETag, PreviousETag: ch.PreviousETag, ModTime: ch.ModTime.UTC(), RenamedFrom: ch.RenamedFrom,
		}
		for _, k := range []memory.ChangeKind{memory.Put, memory.Delete, memory.Redact} {
			if k.String() == ch.Kind {
				a.Kind = k
			}
		}
		if a.Kind == 0 {
			return c, damaged("revision %d: a change of unknown kind", f.Revision)
		}
		if _, err := memory.ParsePath(string(ch.Path)); err != nil {
			return c, err
		}
		if ch.ETag != "" {
			a.Content, a.Size = store.CloneContent(ch.Content), int64(len(ch.Content))
		}
		c.Changes = append(c.Changes, a)
	}
	return c, nil
}

// hint ends what is said of a damaged archive.
const hint = "; the file is damaged, export it again"

func damaged(format string, args ...any) error {
	return store.Invalid("archive: "+format+hint, args...)
}

// unsound is about a part that can be read and that no hub has written so: a rule that it
// breaks is of less use to a person than what to do.
func unsound(err error) error {
	if strings.HasSuffix(err.Error(), hint) {
		return err
	}
	return damaged("%v", err)
}

// projects lists what the scope covers.
func (s Scope) projects(ctx context.Context, b store.Backend) ([]memory.ProjectKey, error) {
	if s.Project == "" {
		return b.Projects(ctx, s.Team)
	}
	if s.Team == "" {
		return nil, store.Invalid("export: a project is named without its team; name both")
	}
	return []memory.ProjectKey{{Team: s.Team, Project: s.Project}}, nil
}
