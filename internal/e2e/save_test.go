package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/agent/watcher"
	"github.com/memsvc/memsvc/internal/memory"
)

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestFiftySaves saves one file fifty times in a row, in the ways editors do it
// (W1, W2, W3): the final text arrives and no delete is ever sent.
func TestFiftySaves(t *testing.T) {
	for _, style := range []struct {
		name string
		save func(t *testing.T, file, text string)
	}{
		{"vim", func(t *testing.T, file, text string) {
			// A probe file, the old file renamed to a backup, the new one written
			// under the name, the backup removed.
			probe := filepath.Join(filepath.Dir(file), "4913")
			must(t, os.WriteFile(probe, nil, 0o644))
			must(t, os.Remove(probe))
			must(t, os.WriteFile(filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".swp"), []byte("swap"), 0o600))
			must(t, os.Rename(file, file+"~"))
			must(t, os.WriteFile(file, []byte(text), 0o644))
			must(t, os.Remove(file+"~"))
		}},
		{"VS Code", func(t *testing.T, file, text string) {
			f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0o644)
			must(t, err)
			_, err = f.WriteString(text)
			must(t, err)
			must(t, f.Close())
		}},
		{"sed -i", func(t *testing.T, file, text string) {
			tmp := filepath.Join(filepath.Dir(file), "sedAbCdEf")
			must(t, os.WriteFile(tmp, []byte(text), 0o644))
			must(t, os.Rename(tmp, file))
		}},
		{"unlink and write", func(t *testing.T, file, text string) {
			must(t, os.Remove(file))
			must(t, os.WriteFile(file, []byte(text), 0o644))
		}},
	} {
		t.Run(style.name, func(t *testing.T) {
			t.Parallel()
			h, ms := team(t, 2)
			a, b := ms[0], ms[1]
			a.write("project_x.md", note("x", "revision 0"))
			b.has("project_x.md", note("x", "revision 0"))
			for i := 1; i <= 50; i++ {
				text := note("x", fmt.Sprintf("revision %d", i))
				style.save(t, a.path("project_x.md"), text)
				if i%10 == 0 {
					b.has("project_x.md", text) // sometimes it arrives in between
				}
			}
			b.has("project_x.md", note("x", "revision 50"))
			inStep(t, a, b)
			same(t, a, b)
			hist := historyOf(t, h)
			hist.noDeletes()
			if got := hist.files(); len(got) != 1 {
				t.Errorf("the hub holds %d files, want the one saved", len(got))
			}
		})
	}
}

// TestWrittenWithoutPause changes a file faster than the debounce for a while (W11):
// the other machine must not fall further behind than ceiling and travel.
func TestWrittenWithoutPause(t *testing.T) {
	every, span, behind := 10*time.Millisecond, 3*time.Second, time.Second
	opts := func(*agent.DaemonOptions) {}
	if long() {
		every, span, behind = 100*time.Millisecond, 30*time.Second, 3*time.Second
		opts = func(o *agent.DaemonOptions) { o.Watcher = watcher.Options{} }
	}
	_, ms := team(t, 2, opts)
	a, b := ms[0], ms[1]
	a.write("project_x.md", "0\n")
	b.has("project_x.md", "0\n")
	tick := time.NewTicker(every)
	defer tick.Stop()
	var written []time.Time // written[i] is when number i was written
	// What starves the agents starves this loop, too: a machine under other load must not
	// fail the test.
	worst, starved := time.Duration(0), time.Duration(0)
	for start := time.Now(); time.Since(start) < span; {
		<-tick.C
		if n := len(written); n > 0 {
			starved = max(starved, time.Since(written[n-1])-every)
		}
		written = append(written, time.Now())
		a.write("project_x.md", fmt.Sprintf("%d\n", len(written)-1))
		var seen int
		if n, _ := fmt.Sscanf(b.read("project_x.md"), "%d\n", &seen); n == 1 && seen+1 < len(written) {
			// Number seen+1 is the oldest that b has not got.
			worst = max(worst, time.Since(written[seen+1]))
		}
	}
	t.Logf("%d writes, at most %v behind", len(written), worst)
	if worst > behind+4*starved {
		t.Errorf("the other machine was %v behind, want at most %v, and the test itself was held up for at most %v", worst, behind, starved)
	}
	b.has("project_x.md", fmt.Sprintf("%d\n", len(written)-1))
}

// TestDeepDirectoryWithFileAtOnce makes nested directories and a file in one go (W5, W6).
func TestDeepDirectoryWithFileAtOnce(t *testing.T) {
	_, ms := team(t, 2)
	a, b := ms[0], ms[1]
	inStep(t, a, b)
	for i := range 20 {
		a.write(fmt.Sprintf("a%d/b/c/x.md", i), note("x", fmt.Sprint(i)))
	}
	for i := range 20 {
		b.has(fmt.Sprintf("a%d/b/c/x.md", i), note("x", fmt.Sprint(i)))
	}
}

// TestDeleteAndRecreateWithinDebounce removes a file and writes another text under its
// name before anyone looks (D16).
func TestDeleteAndRecreateWithinDebounce(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	a.write("dir/project_x.md", note("x", "old"))
	b.has("dir/project_x.md", note("x", "old"))
	inStep(t, a, b)
	a.remove("dir")
	a.write("dir/project_x.md", note("x", "new"))
	b.has("dir/project_x.md", note("x", "new"))
	inStep(t, a, b)
	historyOf(t, h).noDeletes()
}

// TestOneEditIsOneRevision has five machines: nobody echoes what it received (W12, D8).
func TestOneEditIsOneRevision(t *testing.T) {
	h, ms := team(t, 5)
	inStep(t, ms...)
	hist := historyOf(t, h)
	before := hist.head()
	ms[0].write("project_x.md", note("x", "one"))
	for _, m := range ms {
		m.has("project_x.md", note("x", "one"))
	}
	ms[3].remove("project_x.md")
	for _, m := range ms {
		m.lacks("project_x.md")
	}
	inStep(t, ms...)
	if got := hist.head() - before; got != 2 {
		t.Errorf("an edit and a delete made %d revisions, want 2", got)
	}
}

// TestEmptyFileInMidWrite leaves a known file empty for longer than the debounce, as
// slow writers do (F7): the emptiness is not sent while it is young.
func TestEmptyFileInMidWrite(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	a.write("project_x.md", note("x", "full"))
	b.has("project_x.md", note("x", "full"))
	inStep(t, a, b)
	a.write("project_x.md", "")
	a.eventually("looked at the empty file", func(s agent.LinkStatus) bool { return s.Pending > 0 })
	a.write("project_x.md", note("x", "full again"))
	b.has("project_x.md", note("x", "full again"))
	inStep(t, a, b)
	for _, c := range historyOf(t, h).commits("project_x.md") {
		for _, ch := range c.Changes {
			if ch.Kind == memory.Put && ch.Size == 0 {
				t.Errorf("revision %d is the empty file", c.Revision)
			}
		}
	}
}

// TestChmodAndTouchSendNothing changes what is no content (W7).
func TestChmodAndTouchSendNothing(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	a.write("project_x.md", note("x", "same"))
	b.has("project_x.md", note("x", "same"))
	inStep(t, a, b)
	hist := historyOf(t, h)
	before := hist.head()
	for i := range 10 {
		must(t, os.Chmod(a.path("project_x.md"), 0o600+os.FileMode(i%2)*0o044))
		must(t, os.Chtimes(a.path("project_x.md"), time.Now(), time.Now().Add(-time.Duration(i)*time.Hour)))
	}
	inStep(t, a, b)
	if got := hist.head(); got != before {
		t.Errorf("%d revisions were made by chmod and touch", got-before)
	}
}
