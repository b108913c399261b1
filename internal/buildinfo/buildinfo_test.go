package buildinfo

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	recorded := &debug.BuildInfo{
		Main:     debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, {Key: "vcs.revision", Value: "abc"}},
	}
	tests := []struct {
		name            string
		version, commit string
		module          *debug.BuildInfo
		wantVersion     string
		wantCommit      string
	}{
		{"linker wins", "v9", "def", recorded, "v9", "def"},
		{"go command's record", "", "", recorded, "v1.2.3", "abc"},
		{"checkout", "", "", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "dev", "unknown"},
		{"nothing", "", "", nil, "dev", "unknown"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := resolve(test.version, test.commit, test.module)
			if got.Version != test.wantVersion || got.Commit != test.wantCommit {
				t.Errorf("got %s, %s; want %s, %s", got.Version, got.Commit, test.wantVersion, test.wantCommit)
			}
			if got.Go != runtime.Version() || got.OS == "" || got.Arch == "" {
				t.Errorf("incomplete: %+v", got)
			}
		})
	}
}

// TestLinkerFlags builds a program the way the Makefile does and runs it: a renamed
// variable would otherwise be ignored by the linker without a word.
func TestLinkerFlags(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "prog")
	const pkg = "github.com/memsvc/memsvc/internal/buildinfo"
	build := exec.Command("go", "build", "-buildvcs=false",
		"-ldflags", "-X "+pkg+".version=v4.5.6 -X "+pkg+".commit=c0ffee", "-o", bin, "./testdata/prog")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(bin).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := string(out); !strings.HasPrefix(got, "v4.5.6 (commit c0ffee, go") {
		t.Errorf("got %q, want version v4.5.6 and commit c0ffee", got)
	}
}
