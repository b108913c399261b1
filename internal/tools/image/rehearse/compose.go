package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/sirupsen/logrus"
)

// play is what there is to play.
type play struct {
	dir     string
	project *types.Project
	images  map[string]*image
	runs    []*instructions.RunCommand
}

// password is the database's in the rehearsal; with signs that a URL would not bear.
const password = "rehearsal p@ss/word"

func read(ctx context.Context, dir string) (*play, error) {
	text, err := os.ReadFile(filepath.Join(dir, "Dockerfile"))
	if err != nil {
		return nil, err
	}
	p := &play{dir: dir}
	if p.images, p.runs, err = readDockerfile(text); err != nil {
		return nil, fmt.Errorf("read the Dockerfile: %w", err)
	}
	logrus.SetOutput(io.Discard) // the loader's way to warn; what matters is an error
	file := filepath.Join(dir, "docker-compose.yml")
	if _, err := load(ctx, file, nil); err == nil || !strings.Contains(err.Error(), "POSTGRES_PASSWORD") {
		return nil, fmt.Errorf("docker-compose.yml: without POSTGRES_PASSWORD it has to be refused, and name it: %w", cmp.Or(err, errors.New("it is taken")))
	}
	if p.project, err = load(ctx, file, types.Mapping{"POSTGRES_PASSWORD": password}); err != nil {
		return nil, fmt.Errorf("docker-compose.yml: %w", err)
	}
	return p, nil
}

// load reads a compose file as `docker compose config` does: with the specification's
// schema, which knows every key.
func load(ctx context.Context, file string, env types.Mapping) (*types.Project, error) {
	return loader.LoadWithContext(ctx, types.ConfigDetails{
		WorkingDir: filepath.Dir(file), ConfigFiles: []types.ConfigFile{{Filename: file}}, Environment: env,
	}, func(o *loader.Options) { o.SetProjectName("memsvc", false) })
}

// image returns the image of a service that is built here, or nil.
func (p *play) image(s types.ServiceConfig) *image {
	if s.Build == nil {
		return nil
	}
	return p.images[s.Build.Target]
}

// step reports whether a service ends by itself: others wait for its end.
func (p *play) step(name string) bool {
	for _, s := range p.project.Services {
		if d, ok := s.DependsOn[name]; ok && d.Condition == types.ServiceConditionCompletedSuccessfully {
			return true
		}
	}
	return false
}

// judge returns what is wrong with the files.
func (p *play) judge() (findings []string) {
	for _, target := range []string{"hub", "agent"} {
		if p.images[target] == nil {
			findings = append(findings, "Dockerfile: no stage "+target+" from scratch")
			continue
		}
		findings = append(findings, p.images[target].judge()...)
	}
	for name, s := range p.project.Services {
		findings = append(findings, p.judgeService(name, s)...)
	}
	slices.Sort(findings)
	return findings
}

func (p *play) judgeService(name string, s types.ServiceConfig) (findings []string) {
	say := func(format string, args ...any) {
		findings = append(findings, "docker-compose.yml: "+name+": "+fmt.Sprintf(format, args...))
	}
	own := p.image(s)
	if s.Build != nil && own == nil {
		say("build.target %q: the Dockerfile has no such image", s.Build.Target)
	}
	if own != nil && (!s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") || s.Privileged) {
		say("want read_only: true and cap_drop: [ALL]")
	}
	if own == nil && !strings.Contains(s.Image, ":") {
		say("image %q has no version", s.Image)
	}
	if (own == nil || len(own.health) == 0) && s.HealthCheck == nil {
		say("no health check: nothing can wait for it")
	}
	if p.step(name) == (s.Restart == types.RestartPolicyUnlessStopped) {
		say("restart %q: what others wait for ends, everything else is started again", s.Restart)
	}
	for to, d := range s.DependsOn {
		if d.Condition == types.ServiceConditionStarted {
			say("depends_on %s: wait until it is healthy or done, not until it is started", to)
		}
	}
	for _, port := range s.Ports {
		if port.HostIP != "127.0.0.1" {
			say("port %d is published beyond loopback", port.Target)
		}
	}
	for _, v := range s.Volumes {
		if v.Type != types.VolumeTypeBind {
			continue
		}
		if _, err := os.Stat(v.Source); err != nil {
			say("mount of %s: %v", v.Source, err)
		}
		if !v.ReadOnly {
			say("mount of %s: want it read-only", v.Source)
		}
	}
	return findings
}
