package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	team    = "demo"
	project = "payments"
	// patience bounds every wait. Nothing here takes a tenth of it, and a machine that is
	// on its knees has all of it.
	patience = 2 * time.Minute
)

// demo is the stage: one hub, two machines.
type demo struct {
	ctx  context.Context
	tmp  string
	bin  string
	out  io.Writer
	grpc string
	http string

	hub             *process
	laptop, desktop *machine
}

// machine is one of the two: a memory directory, personal memories beside team/, and
// an agent.
type machine struct {
	name   string
	memory string // what the coding client reads
	team   string // the shared part of it
	state  string
	token  string // file
	agent  *process
}

// process is a program that runs beside us.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	log  *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// launch starts a program with its log in memory.
func (d *demo) launch(name, program string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(d.program(program), args...), done: make(chan struct{}), log: &lockedBuffer{}}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	// Settings of the person who runs the demo must not reach into it.
	p.cmd.Env = environment()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func environment() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "MEMSVC_") && !strings.HasPrefix(kv, "MEMSYNC_") {
			env = append(env, kv)
		}
	}
	return env
}

// call runs a program to its end and returns what it printed and its exit code.
func (d *demo) call(program string, args ...string) (stdout string, code int, err error) {
	cmd := exec.CommandContext(d.ctx, d.program(program), args...)
	cmd.Env = environment()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code, err = exit.ExitCode(), nil
		if code == 1 || code == 2 {
			err = fmt.Errorf("%s %s: %s", program, args[0], strings.TrimSpace(errOut.String()))
		}
	}
	return out.String(), code, err
}

// end stops every process, kindly first.
func (d *demo) end() {
	var all []*process
	for _, m := range []*machine{d.laptop, d.desktop} {
		if m != nil && m.agent != nil {
			all = append(all, m.agent)
		}
	}
	if d.hub != nil {
		all = append(all, d.hub)
	}
	for _, p := range all {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	kindly, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, p := range all {
		select {
		case <-p.done:
		case <-kindly.Done():
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	}
}

// died tells when a process ends that should not.
func (d *demo) died() <-chan error {
	c := make(chan error, 3)
	for _, p := range []*process{d.hub, d.laptop.agent, d.desktop.agent} {
		go func() {
			<-p.done
			c <- fmt.Errorf("%s ended by itself", p.name)
		}()
	}
	return c
}

// logs prints the last lines of every process's log.
func (d *demo) logs(w io.Writer) {
	show := func(p *process) {
		if p == nil {
			return
		}
		lines := strings.Split(strings.TrimSpace(p.log.String()), "\n")
		fmt.Fprintf(w, "\nlast lines of %s:\n  %s\n", p.name, strings.Join(lines[max(0, len(lines)-12):], "\n  "))
	}
	show(d.hub)
	for _, m := range []*machine{d.laptop, d.desktop} {
		if m != nil {
			show(m.agent)
		}
	}
}

// until waits for a condition; what says what was waited for.
func (d *demo) until(what string, cond func() bool) error {
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			return fmt.Errorf("%w within %v: %s", errNotSeen, patience, what)
		}
		select {
		case <-d.ctx.Done():
			return d.ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// startHub starts the hub on free ports and learns them from its log.
func (d *demo) startHub() error {
	data := filepath.Join(d.tmp, "hub")
	p, err := d.launch("the hub", "memsvc", "serve", "--data-dir", data, "--log-format", "json",
		"--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.hub = p
	return d.until("the hub listens", func() bool {
		lines := bufio.NewScanner(strings.NewReader(p.log.String()))
		for lines.Scan() {
			var rec struct{ Msg, GRPC, HTTP string }
			if json.Unmarshal(lines.Bytes(), &rec) == nil && rec.Msg == "listening" {
				d.grpc, d.http = rec.GRPC, rec.HTTP
				return true
			}
		}
		return false
	})
}

// newMachine makes a machine's directories and token.
func (d *demo) newMachine(name string) (*machine, error) {
	m := &machine{name: name, memory: filepath.Join(d.tmp, name, "memory"), state: filepath.Join(d.tmp, name, "state"), token: filepath.Join(d.tmp, name, "token")}
	m.team = filepath.Join(m.memory, "team")
	if err := os.MkdirAll(m.team, 0o755); err != nil {
		return nil, err
	}
	secret, _, err := d.call("memsvc", "token", "create", "--hub", d.grpc, "--token-file", filepath.Join(d.tmp, "hub", "admin.token"),
		"--team", team, "--role", "writer", "--name", name)
	if err != nil {
		return nil, err
	}
	return m, os.WriteFile(m.token, []byte(secret), 0o600)
}

// startAgent starts a machine's agent.
func (d *demo) startAgent(m *machine) (err error) {
	m.agent, err = d.launch(m.name+"'s agent", "memsync-agent", "run", "--hub", d.grpc, "--token-file", m.token,
		"--team", team, "--project", project, "--dir", m.team, "--state-dir", m.state)
	return err
}

// settle waits until a machine has sent and received everything.
func (d *demo) settle(m *machine) error {
	return d.until(m.name+" is in step", func() bool {
		_, code, err := d.call("memsync-agent", "status", "--wait", "--timeout", "10s", "--state-dir", m.state)
		return err == nil && (code == 0 || code == 3)
	})
}

// hubPaths lists what the hub has, over REST, as the curl line does.
func (d *demo) hubPaths() ([]string, error) {
	token, err := os.ReadFile(d.laptop.token)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(d.ctx, http.MethodGet, fmt.Sprintf("http://%s/v1/teams/%s/projects/%s/memories", d.http, team, project), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	res, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("list over REST: %s", res.Status)
	}
	var body struct {
		Memories []struct {
			Path string `json:"path"`
		} `json:"memories"`
	}
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
		return nil, err
	}
	var paths []string
	for _, m := range body.Memories {
		paths = append(paths, m.Path)
	}
	return paths, nil
}
