package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/memsvc/memsvc/internal/lifecycle/notes"
)

type notesCmd struct {
	Show   notesShowCmd   `cmd:"" help:"Print the notes of a conversation."`
	Update notesUpdateCmd `cmd:"" help:"Bring the notes of a conversation up to date now."`
	Path   notesPathCmd   `cmd:"" help:"Print where the notes of a conversation are."`
}

// conversationFlags choose a conversation.
type conversationFlags struct {
	Transcript string `cmdline:"" help:"The conversation; else the one of this directory that was written last." placeholder:"FILE"`
}

func (f conversationFlags) file(c *command) (string, error) {
	if f.Transcript == "" {
		return c.newestTranscript()
	}
	return filepath.Abs(expandHome(f.Transcript))
}

type notesShowCmd struct{ conversationFlags }

// Run prints notes.
func (x *notesShowCmd) Run(c *command) error {
	file, err := x.file(c)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(notes.Path(file))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no notes of %s yet; 'memsync-agent notes update' makes them", file)
	}
	if err != nil {
		return err
	}
	_, err = c.Stdout.Write(text)
	return err
}

type notesUpdateCmd struct{ conversationFlags }

// Run brings notes up to date, however little was said.
func (x *notesUpdateCmd) Run(c *command) error {
	file, err := x.file(c)
	if err != nil {
		return err
	}
	p, err := c.project()
	if err != nil {
		return err
	}
	r, err := notes.Keeper{Model: c.modelOrNone(), Config: p.config, Secrets: c.secrets}.Update(c.ctx, file, p.dir, true)
	if err != nil {
		return err
	}
	if r.Fallback != "" {
		fmt.Fprintf(c.Stderr, "memsync-agent: filled by rules; the model did not do it: %s\n", visible(r.Fallback))
	}
	fmt.Fprintln(c.Stdout, r.File)
	return nil
}

type notesPathCmd struct{ conversationFlags }

// Run prints a path, whether there are notes or not.
func (x *notesPathCmd) Run(c *command) error {
	file, err := x.file(c)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.Stdout, notes.Path(file))
	return nil
}
