package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// built are the programs that the tests run, built once from what is pinned here and
// from this repository.
type built struct{ helm, memsvc, agent string }

// env carries the directory of the programs from TestMain to the tests.
const env = "CHARTCHECK_TEST_PROGRAMS"

func programs(t *testing.T) built {
	t.Helper()
	dir := os.Getenv(env)
	if dir == "" {
		t.Fatal("TestMain has built no programs")
	}
	return built{helm: filepath.Join(dir, "helm"), memsvc: filepath.Join(dir, "memsvc"), agent: filepath.Join(dir, "memsync-agent")}
}

func TestMain(m *testing.M) {
	code, err := withPrograms(context.Background(), m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chartcheck:", err)
		code = 1
	}
	os.Exit(code)
}

func withPrograms(ctx context.Context, run func() int) (code int, err error) {
	dir, err := os.MkdirTemp("", "chartcheck-")
	if err != nil {
		return 1, err
	}
	defer func() {
		if rerr := os.RemoveAll(dir); err == nil {
			err = rerr
		}
	}()
	for _, build := range []struct{ in, what string }{
		{".", "helm.sh/helm/v4/cmd/helm"}, {root, "./cmd/memsvc"}, {root, "./cmd/memsync-agent"},
	} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator), build.what)
		cmd.Dir = build.in
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return 1, fmt.Errorf("build %s: %w\n%s", build.what, err, out)
		}
	}
	if err := os.Setenv(env, dir); err != nil {
		return 1, err
	}
	return run(), nil
}
