package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v4"
)

// patience bounds each wait of the rehearsal.
const patience = 2 * time.Minute

// reexec starts this program again with mounts, network and processes of its own; they
// all end with it.
func reexec(ctx context.Context, dir, work string, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, inside, dir, work)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	return cmd.Run()
}

// stage is where the play is performed.
type stage struct {
	*play
	work    string
	out     io.Writer
	hosts   string
	address map[string]string
	running []*container
}

// perform plays the compose file: up, a memory from one agent to the other, what
// Prometheus would scrape, up once more, down.
func perform(ctx context.Context, dir, work string, out io.Writer) (err error) {
	p, err := read(ctx, dir)
	if err != nil {
		return err
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	if err := ip(ctx, "link", "set", "lo", "up"); err != nil {
		return err
	}
	s := &stage{play: p, work: work, out: out, address: map[string]string{}}
	names := p.project.ServiceNames()
	slices.Sort(names)
	for i, name := range names {
		// An address of the range for documentation, in a network that leads nowhere: what
		// programs do on loopback alone, they must not do here.
		s.address[name] = fmt.Sprintf("192.0.2.%d", i+1)
		if err := ip(ctx, "address", "add", s.address[name]+"/32", "dev", "lo"); err != nil {
			return err
		}
		s.hosts += s.address[name] + " " + name + "\n"
	}
	defer func() { err = errors.Join(err, s.down()) }()
	if err := s.up(ctx); err != nil {
		return err
	}
	if err := s.travel(ctx); err != nil {
		return err
	}
	if err := s.scrape(ctx); err != nil {
		return err
	}
	if err := s.again(ctx); err != nil {
		return err
	}
	return s.watched(ctx)
}

// ip changes the network of the rehearsal.
func ip(ctx context.Context, args ...string) error {
	if text, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("network of its own: ip %s: %w: %s", strings.Join(args, " "), err, text)
	}
	return nil
}

// up starts the services in the order that their dependencies leave, each when what it
// waits for is healthy or done.
func (s *stage) up(ctx context.Context) error {
	done := map[string]bool{}
	for len(done) < len(s.project.Services) {
		progress := false
		for _, name := range s.project.ServiceNames() {
			service := s.project.Services[name]
			ready := !done[name]
			for to := range service.DependsOn {
				ready = ready && done[to]
			}
			if !ready {
				continue
			}
			began := time.Now()
			what, err := s.start(ctx, name, service)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			fmt.Fprintf(s.out, "  %-10s %s (%.2f s)\n", name, what, time.Since(began).Seconds())
			done[name], progress = true, true
		}
		if !progress {
			return errors.New("services wait for each other")
		}
	}
	return nil
}

// start plays one service and waits until it is healthy, or done.
func (s *stage) start(ctx context.Context, name string, service types.ServiceConfig) (what string, err error) {
	i := s.image(service)
	switch {
	case i == nil && name == "postgres":
		return s.postgres(ctx, service)
	case i == nil && name == "prometheus":
		return s.prometheus(ctx, service)
	case i == nil:
		return "not played: " + service.Image + " cannot be had without an engine", nil
	}
	c, err := s.container(name, service, i)
	if err != nil {
		return "", err
	}
	if s.step(name) {
		text, err := c.step(ctx)
		return "done: " + text, err
	}
	if err := c.start(ctx); err != nil {
		return "", err
	}
	s.running = append(s.running, c)
	return "healthy", c.healthy(ctx)
}

// travel writes a memory at one agent and waits for it at the other.
func (s *stage) travel(ctx context.Context) error {
	uid, gid, err := s.images["agent"].ids()
	if err != nil {
		return err
	}
	const name = "project_rehearsal.md"
	text := "---\nname: Rehearsal\ndescription: a memory that travels\ntype: project\n---\nFrom one to two.\n"
	from, to := filepath.Join(s.volume("team-one"), name), filepath.Join(s.volume("team-two"), name)
	began := time.Now()
	if err := errors.Join(os.WriteFile(from, []byte(text), 0o600), os.Chown(from, int(uid), int(gid))); err != nil {
		return err
	}
	for ; ; time.Sleep(5 * time.Millisecond) {
		got, err := os.ReadFile(to)
		if err == nil && string(got) == text {
			break
		}
		if time.Since(began) > patience {
			return fmt.Errorf("the memory did not travel: %w", errors.Join(err, s.logs()))
		}
	}
	fmt.Fprintf(s.out, "a memory came from one to two in %d ms\n", time.Since(began).Milliseconds())
	for _, c := range s.running {
		if c.image == s.images["agent"] {
			if text, err := c.exec(ctx, append(slices.Clone(c.image.entrypoint), "status", "--wait")); err != nil {
				return fmt.Errorf("%s: status: %w: %s", c.name, err, text)
			}
		}
	}
	return nil
}

// scrape asks every target of the Prometheus configuration that is played for metrics.
func (s *stage) scrape(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(s.dir, "deploy", "compose", "prometheus.yml"))
	if err != nil {
		return err
	}
	var config struct {
		Jobs []struct {
			Name    string `yaml:"job_name"`
			Targets []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return err
	}
	asked := 0
	for _, job := range config.Jobs {
		prefix, ok := map[string]string{"memsvc": "memsvc_build_info", "memsync-agent": "memsync_links"}[job.Name]
		if !ok {
			continue
		}
		for _, group := range job.Targets {
			for _, target := range group.Targets {
				if err := s.metrics(ctx, target, prefix); err != nil {
					return fmt.Errorf("scrape %s: %w", target, err)
				}
				asked++
			}
		}
	}
	if asked != 3 {
		return fmt.Errorf("deploy/compose/prometheus.yml: %d targets are the hub's and the agents', want 3", asked)
	}
	fmt.Fprintf(s.out, "%d targets have metrics\n", asked)
	return nil
}

func (s *stage) metrics(ctx context.Context, target, want string) error {
	host, port, _ := strings.Cut(target, ":")
	var text page
	if err := ask(ctx, "http://"+s.address[host]+":"+port+"/metrics", &text); err != nil {
		return err
	}
	if !strings.Contains(string(text), want) {
		return errors.New("no " + want)
	}
	return nil
}

// again plays the steps once more, as a second `up` does: they end well and change no
// token.
func (s *stage) again(ctx context.Context) error {
	tokens := func() (all []string, err error) {
		for _, v := range []string{"admin-token", "token-one", "token-two"} {
			text, rerr := os.ReadFile(filepath.Join(s.volume(v), "token"))
			all, err = append(all, string(text)), errors.Join(err, rerr)
		}
		return all, err
	}
	before, err := tokens()
	if err != nil {
		return err
	}
	for _, name := range s.project.ServiceNames() {
		if s.step(name) {
			if _, err := s.start(ctx, name, s.project.Services[name]); err != nil {
				return fmt.Errorf("%s, once more: %w", name, err)
			}
		}
	}
	after, err := tokens()
	if err != nil {
		return err
	}
	if !slices.Equal(before, after) {
		return errors.New("a second up made other tokens")
	}
	fmt.Fprintln(s.out, "a second up changes nothing")
	return nil
}

// down ends the services in the reverse order; each has to end well within its grace.
func (s *stage) down() (err error) {
	for _, c := range slices.Backward(s.running) {
		err = errors.Join(err, c.stop())
	}
	if err == nil {
		fmt.Fprintln(s.out, "all services ended in order")
	}
	return err
}

func (s *stage) logs() (err error) {
	for _, c := range s.running {
		err = errors.Join(err, fmt.Errorf("%s said:\n%s", c.name, c.log.String()))
	}
	return err
}

func (s *stage) volume(name string) string { return filepath.Join(s.work, "volume", name) }
