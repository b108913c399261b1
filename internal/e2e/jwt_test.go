package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hub/authn/authntest"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// kubelet keeps a token in a file as a projected volume does: a directory of its own
// for each token, a link to it that is replaced in one step, and the file's name a link
// through that one.
type kubelet struct {
	t   *testing.T
	dir string
	n   int
}

func (k *kubelet) file() string { return filepath.Join(k.dir, "token") }

func (k *kubelet) put(token string) {
	k.n++
	version := fmt.Sprintf("..version-%d", k.n)
	err := os.Mkdir(filepath.Join(k.dir, version), 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(k.dir, version, "token"), []byte(token), 0o600)
	}
	if err == nil {
		err = os.Symlink(version, filepath.Join(k.dir, "..data_tmp"))
	}
	if err == nil {
		err = os.Rename(filepath.Join(k.dir, "..data_tmp"), filepath.Join(k.dir, "..data"))
	}
	if err == nil && k.n == 1 {
		err = os.Symlink(filepath.Join("..data", "token"), k.file())
	}
	if err != nil {
		k.t.Error(err)
	}
}

// TestTokenThatRotates runs agents on JWTs that live for four seconds and are replaced
// every second, as those of a Kubernetes service account are. The hub ends every
// stream at its token's expiry; no agent is without one for longer than a reconnection,
// none is restarted, and every edit arrives.
func TestTokenThatRotates(t *testing.T) {
	i := authntest.New(t, false)
	identity := filepath.Join(t.TempDir(), "identity.yaml")
	text := fmt.Sprintf(`
issuers:
  - name: cluster
    issuer: %s
    audience: memsvc
    clock-skew: 1ms
    rules:
      - when: {sub: "system:serviceaccount:agents:*"}
        team: %s
        project: %s
        role: writer
`, i.URL, project.Team, project.Project)
	if err := os.WriteFile(identity, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h := hubtest.Start(t, hubtest.Options{
		Config: func(c *hub.Config) { c.IdentityFile = identity },
		Deps:   func(d *hub.Deps) { d.AuthRecheck = 10 * time.Millisecond },
	})
	h.Token(string(project.Team), string(project.Project), "reader") // makes team and project
	const life, every = 4 * time.Second, time.Second
	k := &kubelet{t: t, dir: t.TempDir()}
	rotate := func() {
		now := time.Now()
		k.put(i.Sign(i.Claims(now, map[string]any{"exp": now.Add(life).Unix(), "jti": fmt.Sprint(now.UnixNano())})))
	}
	rotate()
	// It goes on for itself, however long anything of this test takes.
	stop := make(chan struct{})
	var kubelet sync.WaitGroup
	kubelet.Go(func() {
		for tick := time.Tick(every); ; {
			select {
			case <-stop:
				return
			case <-tick:
				rotate()
			}
		}
	})
	done := sync.OnceFunc(func() { close(stop); kubelet.Wait() })
	defer done()
	a := newMachine(t, "A", h.GRPCAddr, k.file())
	b := newMachine(t, "B", h.GRPCAddr, k.file())
	a.start()
	b.start()
	inStep(t, a, b)

	var away [2]time.Time
	// What starves the agents starves this loop, too.
	var longest, starved time.Duration
	ended := func() int { return strings.Count(h.Log.String(), "reason=UNAUTHENTICATED") }
	for n := range 3 {
		looked := time.Now()
		hubtest.Eventually(t, patience, "the hub ends the streams of old tokens", func() bool {
			now := time.Now()
			starved, looked = max(starved, now.Sub(looked)), now
			for n, m := range []*machine{a, b} {
				switch up := m.d.Status().Hubs[0].Connected; {
				case up:
					away[n] = time.Time{}
				case away[n].IsZero():
					away[n] = now
				default:
					longest = max(longest, now.Sub(away[n]))
				}
			}
			return ended() >= 2*(n+1)
		})
		away = [2]time.Time{} // nobody looks now
		name := fmt.Sprintf("project_%d.md", n)
		a.write(name, note("n", fmt.Sprint(n)))
		b.has(name, note("n", fmt.Sprint(n)))
	}
	if longest > every+4*starved {
		t.Errorf("without a stream for %v, and the test itself was held up for at most %v", longest, starved)
	}
	inStep(t, a, b)
	same(t, a, b)
	done()
	token, err := os.ReadFile(k.file())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*machine{a, b} {
		if strings.Contains(m.log.String(), string(token[:30])) {
			t.Errorf("the log of %s shows the token", m.name)
		}
	}
}
