package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestGeneratorsMatchTheirRuntime: generated code and the module it calls belong to
// one release. The generators are pinned apart from the product, so nothing else
// would notice when one of the two is updated alone.
func TestGeneratorsMatchTheirRuntime(t *testing.T) {
	product := modVersions(t, filepath.Join("..", "..", "go.mod"))
	tools := modVersions(t, filepath.Join("..", "tools", "go.mod"))
	for _, module := range []string{
		"google.golang.org/protobuf",
		"github.com/grpc-ecosystem/grpc-gateway/v2",
	} {
		if product[module] == "" || product[module] != tools[module] {
			t.Errorf("%s: go.mod has %q, internal/tools/go.mod has %q; update both and run make generate", module, product[module], tools[module])
		}
	}
}

// modVersions returns the versions that a go.mod requires.
func modVersions(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(?:require|\t)\s*(\S+) (v\S+)`).FindAllStringSubmatch(string(text), -1) {
		versions[m[1]] = m[2]
	}
	return versions
}
