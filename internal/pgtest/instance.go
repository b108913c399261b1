//go:build unix

package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// instance is a cluster of databases of our own and the process that serves it.
type instance struct {
	bin, dir string
	settings []string
	who      *syscall.Credential // nil: as we are
	port     int

	out  output
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

// output keeps what the server says.
type output struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// newInstance makes an empty cluster. PostgreSQL does not run as root, so root hands it
// to somebody else.
func newInstance(bin string, settings []string) (_ *instance, err error) {
	dir, err := os.MkdirTemp("", "pgtest-")
	if err != nil {
		return nil, err
	}
	in := &instance{bin: bin, dir: dir, settings: settings}
	if os.Getuid() == 0 {
		if in.who, err = nobody(); err != nil {
			return nil, err
		}
		if err := os.Chown(dir, int(in.who.Uid), int(in.who.Gid)); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "memsvc", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	in.prepare(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	return in, nil
}

// nobody finds a user without rights.
func nobody() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uerr := strconv.Atoi(u.Uid)
		gid, gerr := strconv.Atoi(u.Gid)
		if err := errors.Join(uerr, gerr); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("no user postgres or nobody to run PostgreSQL as; it does not run as root")
}

func (in *instance) prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: in.who}
	dieWithUs(cmd.SysProcAttr)
	cmd.Dir = in.dir
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PG") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
}

func (in *instance) start() error {
	args := []string{"-D", filepath.Join(in.dir, "data"), "-p", strconv.Itoa(in.port), "-k", in.dir}
	for _, s := range in.settings {
		args = append(args, "-c", s)
	}
	cmd := exec.Command(filepath.Join(in.bin, "postgres"), args...)
	in.prepare(cmd)
	cmd.Stdout, cmd.Stderr = &in.out, &in.out
	cmd.WaitDelay = time.Second // children of a killed server hold the pipe
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	in.cmd, in.done = cmd, done
	go func() {
		_ = cmd.Wait() // a killed server has no better end
		close(done)
	}()
	return nil
}

// answers waits until the server answers, and reports false if it has ended.
func (in *instance) answers(url string, deadline time.Time) bool {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		c, err := pgx.Connect(ctx, url)
		if err == nil {
			err = c.Close(ctx)
		}
		cancel()
		if err == nil {
			return true
		}
		select {
		case <-in.done:
			return false
		case <-time.After(20 * time.Millisecond):
			if time.Now().After(deadline) {
				return false
			}
		}
	}
}

func (in *instance) running() bool {
	if in.cmd == nil {
		return false
	}
	select {
	case <-in.done:
		return false
	default:
		return true
	}
}

// stop asks for a fast shutdown.
func (in *instance) stop() error {
	if !in.running() {
		return nil
	}
	if err := in.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return err
	}
	select {
	case <-in.done:
		return nil
	case <-time.After(patience):
		return errors.New("PostgreSQL does not stop")
	}
}

// kill ends the server and its children, the server first, so that it makes no more.
func (in *instance) kill() {
	if !in.running() {
		return
	}
	pid := in.cmd.Process.Pid
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	children := childrenOf(pid)
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for _, c := range children {
		_ = syscall.Kill(c, syscall.SIGKILL)
	}
	<-in.done
	// A new server refuses the data while one of the old processes holds its memory.
	for _, c := range children {
		for end := time.Now().Add(patience); syscall.Kill(c, 0) == nil && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
}

func (in *instance) pause() {
	pid := in.cmd.Process.Pid
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	for _, c := range childrenOf(pid) {
		_ = syscall.Kill(c, syscall.SIGSTOP)
	}
}

func (in *instance) resume() {
	pid := in.cmd.Process.Pid
	for _, c := range childrenOf(pid) {
		_ = syscall.Kill(c, syscall.SIGCONT)
	}
	_ = syscall.Kill(pid, syscall.SIGCONT)
}

// end makes sure that nothing of the server is left.
func (in *instance) end() {
	if in.running() {
		in.kill()
	}
}

func (in *instance) lastLines(n int) string {
	in.out.mu.Lock()
	defer in.out.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(in.out.b.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// childrenOf lists the processes whose parent is pid.
func childrenOf(pid int) (out []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // it has ended meanwhile
		}
		// The name stands in brackets and may hold anything; the parent is the second field after it.
		_, rest, ok := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ")
		fields := strings.Fields(rest)
		if ok && len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			out = append(out, child)
		}
	}
	return out
}
