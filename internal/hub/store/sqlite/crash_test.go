package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/sqlite"
	"github.com/memsvc/memsvc/internal/memory"
)

// crashEnv names the data directory to a child that is to be killed.
const crashEnv = "MEMSVC_TEST_CRASH_DIR"

// crashWritersEnv is how many write in it, if not crashWriters.
const crashWritersEnv = "MEMSVC_TEST_CRASH_WRITERS"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashEnv); dir != "" {
		crashChild(dir)
	}
	os.Exit(m.Run())
}

const (
	crashProjects = 4
	crashWriters  = 12
)

func crashKey(n int) memory.ProjectKey {
	return memory.ProjectKey{Team: "acme", Project: memory.Project(fmt.Sprintf("p%d", n))}
}

// crashChild commits without end, compacts now and then, and prints what was
// acknowledged, one write a line, until it is killed.
func crashChild(dir string) {
	ctx := context.Background()
	s, err := sqlite.Open(sqlite.Options{Dir: dir})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	start := time.Now()
	for n := range crashProjects {
		if err := s.CreateProject(ctx, crashKey(n), start); err != nil && !errors.Is(err, memory.ErrAlreadyExists) {
			fmt.Println("error:", err)
			os.Exit(1)
		}
	}
	fmt.Println("ready")
	writers := crashWriters
	if n, err := strconv.Atoi(os.Getenv(crashWritersEnv)); err == nil {
		writers = n
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := 0; ; i++ {
				key := crashKey((w + i) % crashProjects)
				text := fmt.Sprintf("%d %d %d %s", os.Getpid(), w, i, strings.Repeat("x", rand.IntN(6000)))
				res, err := s.Commit(ctx, store.CommitRequest{Project: key, Now: time.Now().UTC(), RequestID: fmt.Sprint(os.Getpid(), w, i),
					Changes: []memory.Change{{Path: memory.Path(fmt.Sprintf("w%d.md", w)), Kind: memory.Put, Content: []byte(text)}}})
				if err != nil {
					fmt.Println("error:", err)
					os.Exit(1)
				}
				fmt.Printf("ack %s %d %s %s\n", key, res.Head.Revision, res.Head.CommitID, res.Commit.Changes[0].ETag)
				if w == 0 && i%20 == 19 {
					if _, err := s.Compact(ctx, key, time.Now().Add(-50*time.Millisecond)); err != nil {
						fmt.Println("error:", err)
						os.Exit(1)
					}
				}
			}
		})
	}
	wg.Wait()
}

type ack struct {
	rev  memory.Revision
	id   memory.CommitID
	etag memory.ETag
}

// A hub that is killed under load, at any moment, again and again, has every
// commit that it acknowledged, without gap, in a sound file.
func TestKilledUnderLoad(t *testing.T) {
	dir := t.TempDir()
	acked := make(map[string][]ack)
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		out := killChild(t, dir, time.Duration(5+rand.IntN(300))*time.Millisecond)
		lines := 0
		for line := range strings.Lines(out) {
			var name string
			var a ack
			if strings.HasPrefix(line, "error:") {
				t.Fatalf("round %d: %s", round, line)
			}
			if n, _ := fmt.Sscanf(line, "ack %s %d %s %s\n", &name, &a.rev, &a.id, &a.etag); n == 4 && strings.HasSuffix(line, "\n") {
				acked[name] = append(acked[name], a)
				lines++
			}
		}
		t.Logf("round %d: %d commits acknowledged before the kill", round, lines)
		checkAcked(t, dir, acked)
	}
}

// killChild runs a child until it is ready and a little longer, kills it, and
// returns what it printed.
func killChild(t *testing.T, dir string, after time.Duration) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), crashEnv+"="+dir)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(pipe)
	first, err := r.ReadString('\n')
	if err != nil || first != "ready\n" {
		_ = cmd.Process.Kill()
		t.Fatalf("the child said %q, %v", first, err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	var out bytes.Buffer
	if _, err := io.Copy(&out, r); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, which is an error
	return out.String()
}

func checkAcked(t *testing.T, dir string, acked map[string][]ack) {
	t.Helper()
	s, err := sqlite.Open(sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.CheckIntegrity(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, acks := range acked {
		key, err := memory.ParseProjectKey(name)
		if err != nil {
			t.Fatal(err)
		}
		info, err := s.Project(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		commits, err := s.Changes(t.Context(), key, info.Oldest-1, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		byRev := make(map[memory.Revision]*memory.Commit)
		for i := range commits {
			if want := info.Oldest + memory.Revision(i); commits[i].Revision != want {
				t.Fatalf("%s: revision %d where %d should be", name, commits[i].Revision, want)
			}
			byRev[commits[i].Revision] = &commits[i]
		}
		for _, a := range acks {
			c := byRev[a.rev]
			switch {
			case a.rev > info.Head.Revision:
				t.Fatalf("%s: revision %d was acknowledged, the head is %d", name, a.rev, info.Head.Revision)
			case a.rev < info.Oldest:
			case c.ID != a.id || c.Changes[0].ETag != a.etag || memory.ETagOf(c.Changes[0].Content) != a.etag:
				t.Fatalf("%s: revision %d is another commit than was acknowledged", name, a.rev)
			}
		}
	}
}
