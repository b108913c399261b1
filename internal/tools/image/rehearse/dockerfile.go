package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// image is what a stage of the Dockerfile makes.
type image struct {
	name       string
	copies     []*instructions.CopyCommand
	env        []string
	user       string
	entrypoint []string
	command    []string
	health     []string
}

func readDockerfile(text []byte) (map[string]*image, []*instructions.RunCommand, error) {
	tree, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	stages, _, err := instructions.Parse(tree.AST, nil)
	if err != nil {
		return nil, nil, err
	}
	images := map[string]*image{}
	var runs []*instructions.RunCommand
	for _, stage := range stages {
		i := &image{name: stage.Name}
		for _, command := range stage.Commands {
			switch c := command.(type) {
			case *instructions.RunCommand:
				runs = append(runs, c)
			case *instructions.CopyCommand:
				i.copies = append(i.copies, c)
			case *instructions.EnvCommand:
				for _, e := range c.Env {
					i.env = append(i.env, e.Key+"="+e.Value)
				}
			case *instructions.UserCommand:
				i.user = c.User
			case *instructions.EntrypointCommand:
				if c.PrependShell {
					return nil, nil, fmt.Errorf("stage %s: ENTRYPOINT needs a shell, and there is none", stage.Name)
				}
				i.entrypoint = c.CmdLine
			case *instructions.CmdCommand:
				if c.PrependShell {
					return nil, nil, fmt.Errorf("stage %s: CMD needs a shell, and there is none", stage.Name)
				}
				i.command = c.CmdLine
			case *instructions.HealthCheckCommand:
				if len(c.Health.Test) < 2 || c.Health.Test[0] != "CMD" {
					return nil, nil, fmt.Errorf("stage %s: HEALTHCHECK has to be of the form CMD [\"...\"]", stage.Name)
				}
				i.health = c.Health.Test[1:]
			}
		}
		if stage.BaseName == "scratch" {
			images[stage.Name] = i
		}
	}
	return images, runs, nil
}

var numericUser = regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`)

// judge returns what an image lacks.
func (i *image) judge() (findings []string) {
	say := func(format string, args ...any) {
		findings = append(findings, "Dockerfile: stage "+i.name+": "+fmt.Sprintf(format, args...))
	}
	if !numericUser.MatchString(i.user) {
		say("USER %q: want numbers that are not root's, as 65532:65532", i.user)
	}
	for what, line := range map[string][]string{"ENTRYPOINT": i.entrypoint, "HEALTHCHECK": i.health} {
		if len(line) == 0 || !slices.ContainsFunc(i.copies, func(c *instructions.CopyCommand) bool { return c.DestPath == line[0] }) {
			say("%s %q: not a file that is copied into the image", what, line)
		}
	}
	for _, c := range i.copies {
		if c.From != "build" {
			say("COPY to %s: want it from the build stage alone", c.DestPath)
		}
	}
	return findings
}

// ids returns the user and group of USER.
func (i *image) ids() (uid, gid uint32, err error) {
	u, g, _ := strings.Cut(i.user, ":")
	a, aerr := strconv.ParseUint(u, 10, 32)
	b, berr := strconv.ParseUint(g, 10, 32)
	return uint32(a), uint32(b), errors.Join(aerr, berr)
}

// context copies what .dockerignore lets through.
func buildContext(dir, to string) error {
	ignore, err := os.Open(filepath.Join(dir, ".dockerignore"))
	if err != nil {
		return err
	}
	defer ignore.Close()
	patterns, err := ignorefile.ReadAll(ignore)
	if err != nil {
		return err
	}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil || rel == "." {
			return err
		}
		if d.IsDir() && (rel == ".git" || rel == "bin") {
			return fs.SkipDir // large, and ignored; patterns with ! forbid skipping others
		}
		ignored, err := matcher.MatchesOrParentMatches(rel)
		if err != nil || ignored || d.IsDir() {
			return err
		}
		return copyFile(name, filepath.Join(to, rel))
	})
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, text, info.Mode().Perm()); err != nil {
		return err
	}
	return os.Chmod(to, info.Mode().Perm())
}

// build runs the build stage's commands on a copy of the context below work, and lays
// out the root of each image as work/image/NAME.
func (p *play) build(ctx context.Context, work string, out io.Writer) error {
	src, dirs := filepath.Join(work, "src"), filepath.Join(work, "dirs")
	if err := buildContext(p.dir, src); err != nil {
		return err
	}
	for _, r := range p.runs {
		line := strings.ReplaceAll(strings.Join(r.CmdLine, " "), "/dirs/", dirs+"/")
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Dir = src
		// What an engine would set: the build platform is this one, and there is no .git.
		cmd.Env = append(os.Environ(), "TARGETOS=", "TARGETARCH=", "VERSION=rehearsal", "COMMIT=unknown")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("RUN %s: %w\n%s", line, err, text)
		}
	}
	for _, i := range p.images {
		if err := i.layout(filepath.Join(work, "image", i.name), src, dirs); err != nil {
			return fmt.Errorf("image %s: %w", i.name, err)
		}
	}
	return nil
}

// layout makes the root of an image: its files, and the places where an engine mounts
// something into every container.
func (i *image) layout(root, src, dirs string) error {
	for _, d := range []string{"tmp", "proc", "dev", "etc"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(root, "etc", "hosts"), nil, 0o644); err != nil {
		return err
	}
	for _, c := range i.copies {
		for _, source := range c.SourcePaths {
			from := source
			switch {
			case strings.HasPrefix(source, "/src/"):
				from = filepath.Join(src, strings.TrimPrefix(source, "/src/"))
			case strings.HasPrefix(source, "/dirs/"):
				from = filepath.Join(dirs, strings.TrimPrefix(source, "/dirs/"))
			}
			uid, gid := uint32(0), uint32(0)
			if c.Chown != "" {
				var err error
				if uid, gid, err = (&image{user: c.Chown}).ids(); err != nil {
					return err
				}
			}
			if err := copyTree(from, filepath.Join(root, c.DestPath), int(uid), int(gid)); err != nil {
				return fmt.Errorf("COPY %s: %w", source, err)
			}
		}
	}
	return nil
}

// copyTree copies a file, or what is in a directory, with its modes, for an owner.
func copyTree(from, to string, uid, gid int) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if err := copyFile(from, to); err != nil {
			return err
		}
		return os.Chown(to, uid, gid)
	}
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if rel == "." {
			return os.MkdirAll(target, 0o755)
		}
		if d.IsDir() {
			info, err := d.Info()
			if err != nil {
				return err
			}
			return errors.Join(os.Mkdir(target, info.Mode().Perm()), os.Chmod(target, info.Mode().Perm()), os.Chown(target, uid, gid))
		}
		return errors.Join(copyFile(name, target), os.Chown(target, uid, gid))
	})
}
