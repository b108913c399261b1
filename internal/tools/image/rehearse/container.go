package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
)

// container is a service as an engine would run it.
type container struct {
	name  string
	root  string
	image *image
	args  []string
	env   []string
	user  syscall.Credential
	grace time.Duration

	log   buffer
	cmd   *exec.Cmd
	ended chan error
}

// buffer is a text that a process writes while others read it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write appends to the text.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns the text so far.
func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// container mounts what the service sees: the image's root, its volumes and tmpfs, and
// the names of the other services.
func (s *stage) container(name string, service types.ServiceConfig, i *image) (*container, error) {
	uid, gid, err := i.ids()
	if err != nil {
		return nil, err
	}
	c := &container{
		name: name, image: i, user: syscall.Credential{Uid: uid, Gid: gid}, grace: 10 * time.Second, // the engine's default
		root: filepath.Join(s.work, "root", fmt.Sprintf("%s-%d", name, time.Now().UnixNano())),
		args: append(slices.Clone(i.entrypoint), i.command...), env: slices.Clone(i.env),
	}
	if len(service.Command) > 0 {
		c.args = append(slices.Clone(i.entrypoint), service.Command...)
	}
	for key, value := range service.Environment {
		if value != nil {
			c.env = append(c.env, key+"="+*value)
		}
	}
	if service.StopGracePeriod != nil {
		c.grace = time.Duration(*service.StopGracePeriod)
	}
	if err := os.MkdirAll(c.root, 0o755); err != nil {
		return nil, err
	}
	for _, v := range service.Volumes {
		if v.Type == types.VolumeTypeBind {
			if err := mountPoint(v.Source, filepath.Join(s.work, "image", i.name, v.Target)); err != nil {
				return nil, err
			}
		}
	}
	if err := mount(filepath.Join(s.work, "image", i.name), c.root, service.ReadOnly); err != nil {
		return nil, err
	}
	hosts := filepath.Join(s.work, "hosts-"+name)
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n"+s.hosts), 0o644); err != nil {
		return nil, err
	}
	err = errors.Join(mount(hosts, filepath.Join(c.root, "etc", "hosts"), true),
		syscall.Mount("proc", filepath.Join(c.root, "proc"), "proc", 0, ""))
	for _, dir := range service.Tmpfs {
		err = errors.Join(err, syscall.Mount("tmpfs", filepath.Join(c.root, dir), "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=1777"))
	}
	for _, v := range service.Volumes {
		source := v.Source
		if v.Type == types.VolumeTypeVolume {
			source = s.volume(v.Source)
			err = errors.Join(err, newVolume(source, filepath.Join(s.work, "image", i.name, v.Target)))
		}
		err = errors.Join(err, mount(source, filepath.Join(c.root, v.Target), v.ReadOnly))
	}
	return c, err
}

// mountPoint makes what a bind mount covers, as an engine does.
func mountPoint(source, target string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.MkdirAll(target, 0o755)
	}
	return errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, nil, 0o644))
}

// mount binds a file or directory to a place.
func mount(from, to string, readOnly bool) error {
	err := syscall.Mount(from, to, "", syscall.MS_BIND|syscall.MS_REC, "")
	if err == nil && readOnly {
		err = syscall.Mount("", to, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	}
	if err != nil {
		return fmt.Errorf("mount %s to %s: %w", from, to, err)
	}
	return nil
}

// newVolume makes a named volume as an engine does: where the image has a directory, the
// volume gets its owner and mode, else it is root's.
func newVolume(dir, covered string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	info, err := os.Stat(covered)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the image has no %s, so that the volume would be root's", covered)
	}
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: owner unknown", covered)
	}
	return errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, info.Mode().Perm()), os.Chown(dir, int(owner.Uid), int(owner.Gid)))
}

// command returns a process of the container.
func (c *container) command(ctx context.Context, args []string) *exec.Cmd {
	// The path counts inside: it is not looked for on this machine.
	cmd := &exec.Cmd{Path: args[0], Args: args, Env: c.env, Dir: "/"}
	if ctx != nil {
		with := exec.CommandContext(ctx, args[0])
		with.Path, with.Args, with.Env, with.Dir, with.Err = args[0], args, c.env, "/", nil
		cmd = with
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.root, Credential: &c.user, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// exec runs a command in the container and returns what it says.
func (c *container) exec(ctx context.Context, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := c.command(ctx, args).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// step runs the service to its end.
func (c *container) step(ctx context.Context) (string, error) {
	text, err := c.exec(ctx, c.args)
	if err != nil {
		return "", fmt.Errorf("%q: %w\n%s", c.args, err, text)
	}
	if lines := strings.Split(text, "\n"); len(lines) > 0 {
		return lines[len(lines)-1], nil
	}
	return text, nil
}

func (c *container) start(context.Context) error {
	// Not with the context: it is ended by its signal, in order.
	c.cmd = c.command(nil, c.args) //nolint:staticcheck // no context on purpose
	c.cmd.Stdout, c.cmd.Stderr = &c.log, &c.log
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("%q: %w", c.args, err)
	}
	c.ended = make(chan error, 1)
	go func() { c.ended <- c.cmd.Wait() }()
	return nil
}

// healthy waits until the image's health check succeeds.
func (c *container) healthy(ctx context.Context) error {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		text, err := c.exec(ctx, c.image.health)
		if err == nil {
			return nil
		}
		select {
		case ended := <-c.ended:
			c.ended <- ended
			return fmt.Errorf("%q ended: %w\n%s", c.args, ended, c.log.String())
		default:
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("not healthy: %w: %s\n%s", err, text, c.log.String())
		}
	}
}

// stop ends the service with its signal.
func (c *container) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	select {
	case err := <-c.ended:
		if err != nil {
			return fmt.Errorf("%s ended badly: %w\n%s", c.name, err, c.log.String())
		}
		return nil
	case <-time.After(c.grace):
		return fmt.Errorf("%s did not end within its grace of %s\n%s", c.name, c.grace, c.log.String())
	}
}
