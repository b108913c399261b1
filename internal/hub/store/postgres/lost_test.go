package postgres_test

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/pgtest"
)

// cutter passes connections on to a server, and cuts one at a COMMIT that writes when
// it is told to: before the server gets it, or before the client gets the answer.
type cutter struct {
	ln  net.Listener
	to  string
	cut atomic.Int32 // what the next COMMIT meets; see below
	wg  sync.WaitGroup
}

const (
	cutBefore = iota + 1
	cutAfter
)

func startCutter(t *testing.T, to string) *cutter {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{ln: ln, to: to}
	c.wg.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			c.wg.Go(func() { c.pass(in) })
		}
	})
	t.Cleanup(func() { _ = ln.Close(); c.wg.Wait() })
	return c
}

func (c *cutter) pass(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer out.Close()
	var deaf atomic.Bool // the client gets no more answers
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer in.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := out.Read(buf)
			if n > 0 && deaf.Load() {
				return // the server has answered to the COMMIT
			}
			if _, werr := in.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	}()
	buf := make([]byte, 1<<20)
	for {
		n, err := in.Read(buf)
		if err != nil {
			_ = out.Close()
			<-done
			return
		}
		if bytes.Contains(buf[:n], []byte("COMMIT\x00")) && bytes.Contains(buf[:n], []byte("memsvc.heads")) {
			switch c.cut.Swap(0) {
			case cutBefore:
				_ = out.Close()
				<-done
				return
			case cutAfter:
				deaf.Store(true)
				if _, err := out.Write(buf[:n]); err == nil {
					<-done
				}
				return
			}
		}
		if _, err := out.Write(buf[:n]); err != nil {
			<-done
			return
		}
	}
}

// TestLostAnswerToCommit cuts the connection at COMMIT. A commit with a request id is
// settled unseen, whatever the database did; one without is UNAVAILABLE, and is there or
// not.
func TestLostAnswerToCommit(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	cut := startCutter(t, hostOf(url))
	// Sent as text, so that the cutter sees it.
	s := open(t, postgres.Options{URL: strings.Replace(url, hostOf(url), cut.ln.Addr().String(), 1) + "&default_query_exec_mode=exec"})
	defer func() { _ = s.Close() }()
	key := memory.ProjectKey{Team: "acme", Project: "p"}
	must(t, s.CreateProject(ctx, key, time.Now()))
	commit := func(id, text string) (store.CommitResult, error) {
		return s.Commit(ctx, store.CommitRequest{Project: key, Now: time.Now(), RequestID: id,
			Changes: []memory.Change{{Path: "a.md", Kind: memory.Put, Content: []byte(text)}}})
	}
	head := memory.Revision(0)
	for what, how := range map[string]int32{"before": cutBefore, "after": cutAfter} {
		cut.cut.Store(how)
		res, err := commit("r"+what, "with id, "+what)
		if err != nil || !res.Created || res.Head.Revision != head+1 {
			t.Fatalf("cut %s COMMIT: %+v, %v, want revision %d", what, res, err, head+1)
		}
		if cut.cut.Load() != 0 {
			t.Fatalf("cut %s COMMIT: the cutter saw none", what)
		}
		head++
		again, err := commit("r"+what, "with id, "+what)
		if err != nil || again.Head != res.Head {
			t.Errorf("retry: %+v, %v, want %+v", again.Head, err, res.Head)
		}
	}
	for what, how := range map[string]int32{"before": cutBefore, "after": cutAfter} {
		cut.cut.Store(how)
		if _, err := commit("", "without id, "+what); !errors.Is(err, memory.ErrUnavailable) {
			t.Fatalf("cut %s COMMIT without a request id: %v, want UNAVAILABLE", what, err)
		}
		if how == cutAfter {
			head++
		}
		info, err := s.Project(ctx, key)
		if err != nil || info.Head.Revision != head {
			t.Fatalf("cut %s COMMIT without a request id: %+v, %v, want revision %d", what, info, err, head)
		}
	}
	if _, err := commit("last", "goes on"); err != nil {
		t.Fatal(err)
	}
}
