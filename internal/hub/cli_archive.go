package hub

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/sqlite"
	"github.com/memsvc/memsvc/internal/memory"
)

// progress returns a writer that shows how many bytes have passed, on a terminal
// only, and what ends it. total is -1 when nobody knows.
func (e *env) progress(total int64, what string) (io.Writer, func()) {
	f, ok := e.stderr.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) {
		return io.Discard, func() {}
	}
	bar := progressbar.NewOptions64(total, progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	return bar, func() { _ = bar.Finish() } // it is decoration
}

// newFile writes a file that must not exist, whole or not at all.
func newFile(name string, write func(io.Writer) error) (err error) {
	if _, err := os.Lstat(name); err == nil {
		return usage("%s exists and is not overwritten; name a new file", name)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return usage("%v", err)
	}
	dir := filepath.Dir(name)
	if _, err := os.Stat(dir); err != nil {
		return usage("%s: there is no directory %s; make it first", name, dir)
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(name)+".part-")
	if err != nil {
		return usage("%s: no file can be made in %s: %v", name, dir, bare(err))
	}
	defer func() {
		if rerr := os.Remove(f.Name()); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}()
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), name); err != nil {
		return err
	}
	return syncDir(dir)
}

// counter counts what passes.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// save writes a new file with progress, and tells in one line what it is.
func (e *env) save(name, what, remark string, write func(io.Writer) error) error {
	var size counter
	bar, done := e.progress(-1, what)
	err := newFile(name, func(w io.Writer) error { return write(io.MultiWriter(w, bar, &size)) })
	done()
	if err != nil {
		return err
	}
	return e.done("%s: wrote %s, %d bytes; %s", what, name, size, remark)
}

type backupCmd struct {
	remote `embed:""`
	File   string `arg:"" help:"File to write; it must not exist."`
}

// Run copies the store.
func (c *backupCmd) Run(e *env) error {
	return c.with(e, func(hub *client.Client) error {
		return e.save(c.File, "backup", "guard it like the data directory", func(w io.Writer) error { return hub.Backup(e.ctx, w) })
	})
}

type restoreBackupCmd struct {
	DataDir string `help:"Data directory of a hub that does not run." required:"" placeholder:"DIR"`
	Replace bool   `cmdline:"" help:"Take the place of a store that is there; that one is kept beside it."`
	File    string `arg:"" help:"The backup."`
}

// Run restores the backup.
func (c *restoreBackupCmd) Run(e *env) error {
	if err := checkDataDir(c.DataDir); err != nil {
		return &ConfigError{Err: err}
	}
	if err := regularFile(c.File); err != nil {
		return err
	}
	opts := sqlite.RestoreOptions{Now: time.Now().UTC(), Epoch: sqlite.NewEpochID(), Replace: c.Replace}
	opts.On = []store.AuditEvent{restored("memsvc restore-backup", opts.Epoch, opts.Now)}
	res, err := sqlite.RestoreBackup(e.ctx, c.File, c.DataDir, opts)
	if errors.Is(err, memory.ErrAlreadyExists) {
		return fmt.Errorf("%w; name another --data-dir, or give --replace: what is there is then kept beside it", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "restored under the new epoch %s; agents will compare everything and delete nothing\n", res.Epoch)
	if res.Replaced != "" {
		fmt.Fprintf(e.stdout, "the store that was there is kept as %s\n", res.Replaced)
	}
	return nil
}

type exportCmd struct {
	remote   `embed:""`
	Team     string `help:"Only this team." placeholder:"TEAM"`
	Project  string `help:"Only this project of the team." placeholder:"PROJECT"`
	Markdown string `cmdline:"" help:"Write the project's memories as plain files into this directory, new or empty, instead of an archive." placeholder:"DIR"`
	Revision int64  `cmdline:"" help:"With --markdown: as they were at this revision; 0 is now."`
	File     string `arg:"" optional:"" help:"Archive to write; it must not exist."`
}

// Run writes the archive, or the files.
func (c *exportCmd) Run(e *env) error {
	scope := ""
	switch {
	case (c.File == "") == (c.Markdown == ""):
		return usage("export: name an archive to write, or a directory with --markdown, one of the two")
	case c.Markdown != "" && (c.Team == "" || c.Project == ""):
		return usage("export: --markdown writes one project; give --team and --project")
	case c.Markdown == "" && c.Revision != 0 || c.Revision < 0:
		return usage("export: --revision is a revision of the project, and goes with --markdown")
	case c.Markdown != "":
		key, err := projectArgs{Team: c.Team, Project: c.Project}.key()
		if err != nil {
			return err
		}
		return c.with(e, func(hub *client.Client) error {
			return e.exportMarkdown(hub, key, memory.Revision(c.Revision), c.Markdown)
		})
	case c.Project != "" && c.Team == "":
		return usage("export: --project needs --team")
	case c.Project != "":
		scope = "teams/" + c.Team + "/projects/" + c.Project
	case c.Team != "":
		scope = "teams/" + c.Team
	}
	return c.with(e, func(hub *client.Client) error {
		return e.save(c.File, "export", "of "+cmp.Or(scope, "the whole hub, with the hashes of its tokens"), func(w io.Writer) error { return hub.Export(e.ctx, scope, w) })
	})
}

type importCmd struct {
	remote   `embed:""`
	Markdown string `cmdline:"" help:"Commit the Markdown files of this directory to a project, instead of an archive. Exit 3: some were refused." placeholder:"DIR"`
	Team     string `cmdline:"" help:"With --markdown: team of the project." placeholder:"TEAM"`
	Project  string `cmdline:"" help:"With --markdown: the project." placeholder:"PROJECT"`
	Replace  bool   `cmdline:"" help:"With --markdown: take the place of memories that have another text."`
	Direct   bool   `cmdline:"" help:"Write into the database of --database-url itself, without a hub, and check the result against the archive."`

	DatabaseURL string `name:"database-url" secret:"" help:"With --direct: the PostgreSQL database." placeholder:"URL"`

	File string `arg:"" optional:"" help:"The archive."`
}

// Run takes the archive, or the files, in.
func (c *importCmd) Run(e *env) error {
	switch {
	case (c.File == "") == (c.Markdown == ""):
		return usage("import: name an archive, or a directory with --markdown, one of the two")
	case c.File != "" && (c.Team != "" || c.Project != "" || c.Replace):
		return usage("import: --team, --project and --replace go with --markdown; an archive says itself what is in it")
	case c.Direct && c.File == "":
		return usage("import: --direct takes an archive")
	case c.Direct:
		return c.direct(e)
	case c.File != "":
		return c.archive(e)
	case c.Team == "" || c.Project == "":
		return usage("import: --markdown needs --team and --project")
	}
	key, err := projectArgs{Team: c.Team, Project: c.Project}.key()
	if err != nil {
		return err
	}
	return c.with(e, func(hub *client.Client) error {
		m := markdownImport{e: e, hub: hub, key: key, replace: c.Replace}
		return m.run(c.Markdown)
	})
}

// regularFile refuses a name under which there is no file to be read.
func regularFile(name string) error {
	switch info, err := os.Stat(name); {
	case err != nil:
		return usage("%s: %v", name, bare(err))
	case info.IsDir():
		return usage("%s: is a directory; name a file", name)
	}
	return nil
}

func (c *importCmd) archive(e *env) (err error) {
	if err := regularFile(c.File); err != nil {
		return err
	}
	f, err := os.Open(c.File)
	if err != nil {
		return usage("%v", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return c.with(e, func(hub *client.Client) error {
		bar, done := e.progress(info.Size(), "import")
		defer done()
		res, err := hub.Import(e.ctx, io.TeeReader(f, bar))
		if errors.Is(err, memory.ErrInvalidArgument) || errors.Is(err, memory.ErrAlreadyExists) || errors.Is(err, memory.ErrSecretDetected) {
			return fmt.Errorf("import %s: %w", c.File, err) // it is about the file
		}
		if err != nil {
			return err
		}
		return e.imported(res.Projects, res.Commits, res.Skipped, res.Tokens)
	})
}

// imported says what an import added.
func (e *env) imported(projects, commits, skipped, tokens int64) error {
	return e.done("%s, %s added, %d there already; %s added", count(projects, "project", "projects"), count(commits, "commit", "commits"), skipped, count(tokens, "token", "tokens"))
}

// count says how many there are of what.
func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}
