package agent

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/buildinfo"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/clients/mcp"
	"github.com/memsvc/memsvc/internal/lifecycle/skills"
	"github.com/memsvc/memsvc/internal/lifecycle/transcript"
	"github.com/memsvc/memsvc/internal/memory"
)

type mcpCmd struct {
	placeFlags
	HTTP string `name:"http" help:"Serve streamable HTTP here instead of standard input and output; loopback only." placeholder:"HOST:PORT"`
}

// mcpTokenFile holds what HTTP clients must show: other users of the machine can reach
// a loopback port too.
const mcpTokenFile = "mcp.token"

// Run serves the memories of this project to a coding client.
func (x *mcpCmd) Run(c *command) error {
	if err := c.models.check(); err != nil {
		c.warnNoModel(err)
	}
	live, err := c.liveModel(slog.New(slog.DiscardHandler)) // the client reads our error stream
	if err != nil {
		return err
	}
	s := mcp.New(mcp.Options{
		Version: buildinfo.Read().Version, Now: c.Now,
		Open: func(context.Context) (mcp.Project, error) { return c.mcpProject(x.placeFlags, live) },
	})
	if x.HTTP == "" {
		err := mcp.ServeStdio(c.ctx, s, c.Stdin, c.Stdout)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
	if !loopback(x.HTTP) {
		return usage("--http %s: give a loopback address, such as 127.0.0.1:7423; personal memories are never served to other machines", x.HTTP)
	}
	token, err := c.state.mcpToken(c.ctx)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", x.HTTP)
	if err != nil {
		return fmt.Errorf("--http: %w", err)
	}
	fmt.Fprintf(c.Stdout, "http://%s/ with the bearer token in %s\n", l.Addr(), c.state.path(mcpTokenFile))
	srv := &http.Server{Handler: bearer(token, mcp.Handler(s)), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-c.ctx.Done():
	}
	// Streams stay open as long as their clients; nothing is lost by closing them.
	err = srv.Close()
	if served := <-done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// bearer lets only those in who show the token.
func bearer(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(shown), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "show the bearer token of this agent's state directory", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// mcpToken returns the token for HTTP clients, made at first use and for this user only.
func (s stateDir) mcpToken(ctx context.Context) (string, error) {
	if err := s.create(); err != nil {
		return "", err
	}
	release, err := s.alone(ctx, defaultTimeout) // or another server would serve with a token that no file holds
	if err != nil {
		return "", err
	}
	defer release()
	text, err := os.ReadFile(s.path(mcpTokenFile))
	if token := strings.TrimSpace(string(text)); err == nil && token != "" {
		return token, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	token := rand.Text()
	return token, writeFile(s.path(mcpTokenFile), []byte(token+"\n"))
}

// mcpProject finds what the tools work on, anew for each call.
func (c *command) mcpProject(f placeFlags, live *liveModel) (mcp.Project, error) {
	p, err := c.place(f)
	if err != nil {
		return mcp.Project{}, err
	}
	settings, _ := live.read() // those that cannot be used are none: the ranker answers
	wd, _ := os.Getwd()        // without one nothing is checked against a repository
	out := mcp.Project{
		CWD:      wd,
		Selector: c.selectorOf(settings),
		Personal: p.Dir, Team: p.team, Store: c.store(p),
		Transcripts: func(ctx context.Context, q transcript.Query, all bool) (transcript.Found, error) {
			dirs, err := c.transcriptDirs(all)
			if err != nil {
				return transcript.Found{}, err
			}
			return transcript.Search(ctx, dirs, q)
		},
		Skills: func(context.Context) ([]skills.Skill, error) { return c.skills() },
	}
	if p.link != nil {
		out.Shared = sharedLink{c: c, l: *p.link}
	}
	return out, nil
}

// sharedLink is what a link adds to the tools.
type sharedLink struct {
	c *command
	l Link
}

// hub runs one question to the hub.
func (s sharedLink) hub(ctx context.Context, do func(context.Context, *client.Client) error) error {
	cl, err := s.c.dialWithToken(s.l)
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	return do(ctx, cl)
}

// History returns the newest commits.
func (s sharedLink) History(ctx context.Context, path string, limit int) (out []mcp.Commit, err error) {
	var p memory.Path
	if path != "" {
		if p, err = memory.ParsePath(memory.NormalizePath(path)); err != nil {
			return nil, err
		}
	}
	err = s.hub(ctx, func(ctx context.Context, cl *client.Client) error {
		commits, _, err := cl.Log(ctx, s.l.Key(), p, limit, "")
		for _, commit := range commits {
			e := entryOf(commit)
			m := mcp.Commit{Revision: e.Revision, Time: e.Time.Format(time.RFC3339), Author: e.Principal, Client: e.Client, Message: e.Message, Changes: []string{}}
			for _, ch := range e.Changes {
				line := ch.Kind + " " + ch.Path
				if ch.RenamedFrom != "" {
					line += " (was " + ch.RenamedFrom + ")"
				}
				m.Changes = append(m.Changes, line)
			}
			out = append(out, m)
		}
		return err
	})
	return out, err
}

// Restore makes a commit that brings a memory back.
func (s sharedLink) Restore(ctx context.Context, path string, revision int64) error {
	p, err := memory.ParsePath(memory.NormalizePath(path))
	if err != nil {
		return err
	}
	return s.hub(ctx, func(ctx context.Context, cl *client.Client) error {
		_, err := cl.Restore(ctx, client.RestoreRequest{Project: s.l.Key(), Revision: memory.Revision(revision), Paths: []memory.Path{p}})
		return err
	})
}

// transcriptDirs returns where the conversations of this directory, or all, are kept.
func (c *command) transcriptDirs(all bool) ([]string, error) {
	return (&transcriptsSearchCmd{All: all}).dirs(c)
}
