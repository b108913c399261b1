package archive

import (
	"context"

	"github.com/memsvc/memsvc/internal/memory"
)

// Judge decides about the texts of an archive that an import takes in: an archive is
// input like any other, and its file may have been written by anybody. Contents of
// memories are not its business; they are judged again where they are stored.
type Judge interface {
	// Name returns an error if text, an id, a path or the like, must not be stored.
	// The archive is then refused, before anything of it is written if it can be
	// read twice.
	Name(text string) error
	// Label returns what to store in the place of text, a person's or agent's words.
	Label(text string) string
	// Setting returns what to store in the place of a document of settings; nil
	// leaves it out. An error refuses the archive, as for Name.
	Setting(scope, name string, doc []byte) ([]byte, error)
}

// judged calls f with every frame, after j has had its say. It is what stands between
// an archive and the store; without a judge nothing does.
func judged(j Judge, f func(context.Context, frame) error) func(context.Context, frame) error {
	if j == nil {
		return f
	}
	known := map[string]bool{} // names that were fit: paths come again and again
	name := func(texts ...string) error {
		for _, text := range texts {
			if text == "" || known[text] {
				continue
			}
			if err := j.Name(text); err != nil {
				return err
			}
			if len(known) >= maxKnownNames {
				clear(known)
			}
			known[text] = true
		}
		return nil
	}
	return func(ctx context.Context, fr frame) error {
		if err := clean(j, &fr, name); err != nil {
			return err
		}
		if fr == (frame{}) {
			return nil // it was left out
		}
		return f(ctx, fr)
	}
}

// maxKnownNames bounds the names remembered as fit.
const maxKnownNames = 100_000

// clean judges every text of the frame. TestEveryTextOfAnArchiveIsJudged holds it
// against the frame's fields.
func clean(j Judge, fr *frame, name func(...string) error) error {
	switch {
	case fr.Header != nil:
		return name(string(fr.Header.Epoch), string(fr.Header.Team), fr.Header.Project)
	case fr.Setting != nil:
		if err := name(fr.Setting.Scope, fr.Setting.Name); err != nil {
			return err
		}
		doc, err := j.Setting(fr.Setting.Scope, fr.Setting.Name, fr.Setting.Doc)
		if err != nil {
			return err
		}
		if doc == nil {
			fr.Setting = nil
			return nil
		}
		fr.Setting = &settingFrame{Scope: fr.Setting.Scope, Name: fr.Setting.Name, Doc: doc}
	case fr.Redact != nil:
		return name(append(fr.Redact.Fingerprints[:len(fr.Redact.Fingerprints):len(fr.Redact.Fingerprints)], string(fr.Redact.Team))...)
	case fr.Token != nil:
		t := *fr.Token
		t.Name = j.Label(t.Name)
		fr.Token = &t
		return name(t.ID, t.Hash, string(t.Team), string(t.Project), t.Role)
	case fr.Project != nil:
		names := []string{string(fr.Project.Team), string(fr.Project.Project), string(fr.Project.HeadID)}
		for _, s := range fr.Project.Spans {
			names = append(names, string(s.Epoch))
		}
		return name(names...)
	case fr.Commit != nil:
		return cleanCommit(j, fr, name)
	}
	return nil
}

func cleanCommit(j Judge, fr *frame, name func(...string) error) error {
	c := *fr.Commit
	fr.Commit = &c
	c.Author = memory.Author{
		Principal: j.Label(c.Author.Principal), Machine: j.Label(c.Author.Machine),
		Client: j.Label(c.Author.Client), Session: j.Label(c.Author.Session),
	}
	c.Message = j.Label(c.Message)
	if err := name(string(c.ID)); err != nil {
		return err
	}
	for i := range c.Changes {
		ch := &c.Changes[i]
		if err := name(string(ch.Path), ch.Kind, string(ch.ETag), string(ch.PreviousETag), string(ch.RenamedFrom)); err != nil {
			return err
		}
	}
	return nil
}
