package archtest

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// pkg is what the checks need to know of one package's shipped files.
type pkg struct {
	// dir is the directory below the module's root, with slashes.
	dir string
	// imports maps an import path to a file that imports it.
	imports map[string]string
	// clock and inits list places, as file:line, that read the clock or declare
	// an init function.
	clock, inits []string
}

// check returns one line per breach of the table, sorted.
func check(pkgs []pkg) []string {
	var out []string
	breach := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, p := range pkgs {
		name, inside := strings.CutPrefix(p.dir, "internal/")
		r, known := ruleOf(name)
		if inside && !known {
			breach("internal/%s: not on the map; add it to layers in internal/archtest/layers.go and to docs/ARCHITECTURE.md, and say why", name)
			continue
		}
		for path, file := range p.imports {
			if why := forbidden(p.dir, name, inside, r, path); why != "" {
				breach("%s imports %s: %s", file, path, why)
			}
		}
		if r.pure && inside {
			for _, at := range p.clock {
				breach("%s reads the clock: %s is pure; take the time as an argument", at, name)
			}
		}
		for _, at := range p.inits {
			breach("%s declares init: nothing registers itself; let the composition root call a constructor", at)
		}
	}
	sort.Strings(out)
	return out
}

// forbidden says why the package in dir may not import path, or "" if it may.
func forbidden(dir, name string, inside bool, r rule, path string) string {
	if target, ok := strings.CutPrefix(path, module+"/internal/"); ok {
		return forbiddenInternal(dir, name, inside, r, target)
	}
	if r.pure && inside {
		if what, bad := impure[path]; bad {
			return name + " is pure; this lets in " + what
		}
		if isForeign(path) && !matchesPath(foreignPure, path) {
			return name + " is pure; of foreign modules only " + strings.Join(foreignPure, ", ") + " may come in"
		}
	}
	for prefix, owners := range restricted {
		if !underPath(prefix, path) {
			continue
		}
		if r.testOnly && inside && slices.Equal(owners, testPackages) {
			continue
		}
		if !matches(owners, name) && !matches(owners, dir) {
			return prefix + " is known to " + strings.Join(owners, ", ") + " only"
		}
	}
	return ""
}

func forbiddenInternal(dir, name string, inside bool, r rule, target string) string {
	if strings.HasPrefix(dir, "hack/") {
		return "" // tools of the repository, which do not ship
	}
	if t, _ := ruleOf(target); t.testOnly && !r.testOnly {
		return "only tests may import a test package"
	}
	if inWing("hub", name) && inWing("agent", target) || inWing("agent", name) && inWing("hub", target) {
		return "hub and agent never know each other; what both need belongs into a shared package"
	}
	allowed := r.internal
	if !inside {
		allowed = programs[dir]
	}
	if !matches(allowed, target) {
		if len(allowed) == 0 {
			return dir + " imports nothing below internal/"
		}
		return dir + " may import " + strings.Join(allowed, ", ") + " only"
	}
	return ""
}

// inWing reports whether name is the wing's root or below it.
func inWing(wing, name string) bool { return underPath(wing, name) }

// underPath reports whether path is prefix or below it.
func underPath(prefix, path string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// matches reports whether one of the patterns is name, or ends in "/..." and
// covers it.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if tree, ok := strings.CutSuffix(p, "/..."); ok {
			return underPath(tree, name)
		}
		return p == name
	})
}

func matchesPath(prefixes []string, path string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return underPath(p, path) })
}

// isForeign reports whether path belongs to another module: the first segment of
// a standard package's path has no dot.
func isForeign(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".")
}
