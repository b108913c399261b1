package extract

import (
	"regexp"
	"sync"
)

// lazily compiles a pattern when it is first asked for. This package is linked into every
// hook, and most of them need none.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
