// Package buildinfo says which build of the programs this is.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version and commit are set by the linker alone (see LDFLAGS in the Makefile).
var (
	version string
	commit  string
)

// unknown stands for what neither the linker nor the go command recorded.
const unknown = "unknown"

// Info describes a build. No field is empty.
type Info struct {
	Version string `json:"version"` // a release such as v1.2.3, a description of the commit, or "dev"
	Commit  string `json:"commit"`  // the full hash, or "unknown"
	Go      string `json:"go"`      // the Go version it was built with, such as go1.26.0
	OS      string `json:"os"`      // as in GOOS
	Arch    string `json:"arch"`    // as in GOARCH
}

// Read returns the running program's build: what the linker was told, else what the
// go command recorded.
func Read() Info {
	module, _ := debug.ReadBuildInfo()
	return resolve(version, commit, module)
}

func resolve(version, commit string, module *debug.BuildInfo) Info {
	info := Info{Version: version, Commit: commit, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if module != nil {
		// "(devel)" is the go command's word for a build from a checkout.
		if v := module.Main.Version; info.Version == "" && v != "(devel)" {
			info.Version = v
		}
		for _, s := range module.Settings {
			if s.Key == "vcs.revision" && info.Commit == "" {
				info.Commit = s.Value
			}
		}
	}
	if info.Version == "" {
		info.Version = "dev"
	}
	if info.Commit == "" {
		info.Commit = unknown
	}
	return info
}

// String returns one line for a person: version, commit, Go version and machine.
func (i Info) String() string {
	return fmt.Sprintf("%s (commit %s, %s, %s/%s)", i.Version, i.Commit, i.Go, i.OS, i.Arch)
}
