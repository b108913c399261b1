package instructions

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"time"
)

// gitWait bounds how long git may take; a repository on a slow disk goes without.
const gitWait = 2 * time.Second

// Git is what a client tells a model about the repository at each turn.
type Git struct {
	Branch  string
	Status  []string // changed files, as git prints them, at most MaxStatus
	More    int      // changed files beyond that
	Commits []string // the last ones, a line each
}

// How much of a repository is told.
const (
	MaxStatus  = 40
	maxCommits = 5
)

// ReadGit asks git about the work tree at top. Without git, or where it fails, what it
// would have said is empty.
func ReadGit(ctx context.Context, top string) Git { return readGit(ctx, top, gitWait) }

func readGit(ctx context.Context, top string, wait time.Duration) Git {
	var g Git
	if top == "" {
		return g
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	run := func(args ...string) string { return run(ctx, top, wait/2, args...) }
	g.Branch = strings.TrimSpace(run("symbolic-ref", "--quiet", "--short", "HEAD"))
	if g.Branch == "" {
		g.Branch = strings.TrimSpace(run("rev-parse", "--short", "HEAD"))
	}
	status := lines(run("status", "--porcelain", "--untracked-files=normal"))
	if len(status) > MaxStatus {
		g.More = len(status) - MaxStatus
		status = status[:MaxStatus]
	}
	g.Status = status
	g.Commits = lines(run("log", "--oneline", "--no-decorate", "-n", "5"))
	g.Commits = g.Commits[:min(len(g.Commits), maxCommits)]
	return g
}

// run returns what git prints, "" if it fails. After its end, or ctx's, its output may take
// as long as last.
func run(ctx context.Context, dir string, last time.Duration, args ...string) string {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	// No lock is taken and no hook or pager of the repository's own runs.
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0")
	cmd.WaitDelay = last
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(out)
}

func lines(s string) []string {
	var out []string
	for l := range strings.Lines(s) {
		out = append(out, strings.TrimRight(l, "\r\n"))
	}
	return out
}
