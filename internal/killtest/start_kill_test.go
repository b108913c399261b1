//go:build linux

package killtest

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// TestHubKilledAtItsFirstStart kills a hub while it makes its data directory, again and
// again. The start that is let live has one admin token, and it works.
func TestHubKilledAtItsFirstStart(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 17))
	for range rounds() {
		data := filepath.Join(tempDir(t), "data")
		for range 8 {
			p := launch(t, "a hub at its first start", command(context.Background(), "memsvc", "serve", "--data-dir", data,
				"--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0"))
			pause(t, time.Duration(rnd.IntN(60))*time.Millisecond)
			if !p.running() {
				t.Fatalf("it ended with code %d: %s", p.exit(t), p.out)
			}
			p.kill()
		}
		h := newHub(t, data) // makes a token with the admin's
		put(t, h.client(), "project_first.md", newText(rnd, "first", 1))
		fi, err := os.Stat(h.adminToken)
		must(t, err)
		if fi.Mode().Perm() != 0o600 {
			t.Errorf("the admin's token has mode %v", fi.Mode())
		}
		h.process().stop(t)
	}
}

// TestAgentKilledAtItsFirstSync kills an agent while it takes in a project and sends
// its own files for the first time, and ends in the same state as one that lives.
func TestAgentKilledAtItsFirstSync(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 18))
	h := newHub(t, "")
	a, b := newMachine(t, h, "anna"), newMachine(t, h, "ben")
	want := map[string]string{}
	for i := range 120 {
		for _, m := range []*machine{a, b} {
			p := filepath.Join(m.name, "project_"+m.name+string(rune('a'+i%26))+string(rune('a'+i/26))+".md")
			want[p] = newText(rnd, m.name, i)
			m.write(p, want[p])
		}
	}
	both := newText(rnd, "both", 1)
	want["project_both.md"] = both
	a.write("project_both.md", both)
	b.write("project_both.md", both)
	a.start()
	waitInStep(t, h, a)
	for range 4 * rounds() {
		p := b.start()
		pause(t, time.Duration(20+rnd.IntN(250))*time.Millisecond)
		if !p.running() {
			t.Fatalf("it ended with code %d: %s", p.exit(t), p.out)
		}
		p.kill()
	}
	b.start()
	if d := difference(want, waitInStep(t, h, a, b)); d != "" {
		t.Errorf("after the first sync: %s", d)
	}
	times := map[memory.Path]int{}
	for _, c := range h.history() {
		for _, ch := range c.Changes {
			if times[ch.Path]++; times[ch.Path] > 1 {
				t.Errorf("%s is in the history twice, or deleted", ch.Path)
			}
		}
	}
	checkTidy(t, h, a, b)
}

// TestRestoreKilled kills restore-backup at any moment. The hub then starts on the old
// store or on the restored one, whole; nothing between.
func TestRestoreKilled(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 19))
	h := newHub(t, "")
	c := h.client()
	for i := range 20 {
		put(t, c, "project_first.md", newText(rnd, "first", i))
	}
	dir := tempDir(t)
	backup := filepath.Join(dir, "backup.db")
	if _, errOut, code := call(t, "memsvc", "backup", backup, "--hub", h.grpc, "--token-file", h.adminToken); code != 0 {
		t.Fatalf("backup: %s", errOut)
	}
	inBackup := len(h.history())
	put(t, c, "project_second.md", newText(rnd, "second", 1))
	restored, kept := 0, 0
	for range 3 * rounds() {
		head := len(h.history())
		h.kill()
		p := launch(t, "restore-backup", command(context.Background(), "memsvc", "restore-backup", backup, "--data-dir", h.data, "--replace"))
		pause(t, time.Duration(rnd.IntN(120))*time.Millisecond)
		p.kill()
		h.start()
		switch n := len(h.history()); n {
		case inBackup:
			restored++
			put(t, c, "project_second.md", newText(rnd, "second", restored))
		case head:
			kept++
		default:
			t.Errorf("%d revisions; the backup has %d, the store had %d", n, inBackup, head)
		}
	}
	t.Logf("%d times restored, %d times as before", restored, kept)

	// Half a backup is none.
	text, err := os.ReadFile(backup)
	must(t, err)
	half := filepath.Join(dir, "half.db")
	must(t, os.WriteFile(half, text[:len(text)/2], 0o600))
	fresh := filepath.Join(dir, "fresh")
	_, errOut, code := call(t, "memsvc", "restore-backup", half, "--data-dir", fresh)
	if code == 0 {
		t.Error("half a backup was restored")
	}
	oneLine(t, errOut, half)
	if _, err := os.Stat(filepath.Join(fresh, "hub.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was made of half a backup: %v", err)
	}
}

// TestTokenRevoked takes an agent's token away: it says so within 10 s, and goes on
// when its file holds a new one.
func TestTokenRevoked(t *testing.T) {
	t.Parallel()
	h := newHub(t, "")
	a, b := newMachine(t, h, "anna"), newMachine(t, h, "ben")
	a.start()
	b.start()
	waitInStep(t, h, a, b)
	list, errOut, code := call(t, "memsvc", "token", "list", "--hub", h.grpc, "--token-file", h.adminToken, "--team", team)
	if code != 0 {
		t.Fatal(errOut)
	}
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) > 1 && strings.Contains(line, "ben") {
			if _, errOut, code := call(t, "memsvc", "token", "revoke", f[0], "--hub", h.grpc, "--token-file", h.adminToken); code != 0 {
				t.Fatal(errOut)
			}
		}
	}
	soon(t, 10*time.Second, "ben's agent says that its token holds no more", func() string {
		if st := b.status(); len(st.Links) == 1 && (st.Links[0].Phase == "stopped" || len(st.Hubs) == 1 && strings.Contains(st.Hubs[0].Error, "token")) {
			return ""
		}
		return "it says " + b.status().trouble()
	})
	rnd := rand.New(rand.NewPCG(20, 20))
	annas, bens := newText(rnd, "annas", 1), newText(rnd, "bens", 1)
	a.write("project_annas.md", annas)
	b.write("project_bens.md", bens)
	waitInStep(t, h, a)
	if files, err := b.files(); err != nil || len(files) != 1 {
		t.Errorf("after its token was revoked a machine got something: %d files, %v", len(files), err)
	}
	text, err := os.ReadFile(h.token("ben-again"))
	must(t, err)
	must(t, os.WriteFile(b.token, text, 0o600))
	b.waitText(patience, "project_annas.md", annas)
	a.waitText(patience, "project_bens.md", bens)
	waitInStep(t, h, a, b)
}
