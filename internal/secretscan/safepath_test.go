package secretscan_test

import (
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/secretscan"
)

// TestSafePath withholds a name that holds a secret, and no other.
func TestSafePath(t *testing.T) {
	const name = "ghp_G0v3aLK9sQ7xZ2bTn8wR5cM4pU1jHf6yEvDk.md"
	scanner := secretscan.New(secretscan.Options{})
	for _, text := range []string{"", "token: ghp_G0v3aLK9sQ7xZ2bTn8wR5cM4pU1jHf6yEvDk"} {
		found, err := scanner.Scan(name, []byte(text))
		if err != nil || len(found) == 0 {
			t.Fatalf("findings %v, %v", found, err)
		}
		safe := secretscan.SafePath(found, name)
		if strings.Contains(safe, "G0v3a") || safe != "ghp… (43 bytes, name withheld)" {
			t.Errorf("%q", safe)
		}
		if again, err := scanner.Scan(safe, nil); err != nil || len(again) > 0 {
			t.Errorf("the withheld name: %v, %v", again, err)
		}
	}
	found, err := scanner.Scan("notes/a.md", []byte("token: ghp_G0v3aLK9sQ7xZ2bTn8wR5cM4pU1jHf6yEvDk"))
	if err != nil || len(found) == 0 || secretscan.SafePath(found, "notes/a.md") != "notes/a.md" {
		t.Errorf("findings %v, %v", found, err)
	}
	for _, short := range []string{"", "a", "日本.md"} {
		if got := secretscan.WithheldPath(short); !strings.HasSuffix(got, "name withheld)") {
			t.Errorf("%q: %q", short, got)
		}
	}
}
