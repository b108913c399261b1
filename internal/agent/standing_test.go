package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
)

// TestCatchUp: whoever asks for a link's standing at the hub's head gets it with what the hub
// had at that moment, and while the hub is away learns at once since when.
func TestCatchUp(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	dir := filepath.Join(t.TempDir(), "team")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	link := Link{Hub: h.GRPCAddr, Team: "acme", Project: "pay", Dir: dir, Plaintext: true, TokenFile: h.TokenFile("acme", "pay", "writer")}
	d, err := NewDaemon(DaemonOptions{StateDir: filepath.Join(t.TempDir(), "state"), Client: client.Options{MinBackoff: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond, Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := d.Apply([]Link{link}); err != nil {
		t.Fatal(err)
	}
	r, err := d.find(link.ID())
	if err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, patience, "the link in step", func() bool { return r.status().InStep })
	for i := range 20 {
		path := memory.Path(fmt.Sprintf("project_%d.md", i))
		res, err := h.Service().Commit(t.Context(), hubtest.Admin(), service.CommitRequest{Project: link.Key(), Changes: []memory.Change{{Path: path, Kind: memory.Put, Content: []byte("x\n")}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		r.catchUp(ctx)
		cancel()
		if got := r.status().Revision; got < int64(res.Head.Revision) {
			t.Fatalf("at revision %d, the hub was at %d", got, res.Head.Revision)
		}
		if _, err := os.Stat(filepath.Join(dir, string(path))); err != nil {
			t.Fatal(err)
		}
	}
	if s := (standingParams{Head: true}).do(t.Context(), r); s.Touch.IsZero() || !s.Status.InStep && s.Status.Phase != PhaseInSync && s.Status.Phase != "syncing" {
		t.Errorf("with the hub there: %+v", s)
	}
	before := time.Now()
	h.Stop()
	hubtest.Eventually(t, patience, "the hub away", func() bool { return r.status().Phase == PhaseOffline })
	s := (standingParams{Head: true}).do(t.Context(), r)
	if s.Touch.Before(before.Add(-time.Minute)) || s.Touch.After(time.Now()) {
		t.Errorf("the hub was heard of at %s, it went after %s", s.Touch, before)
	}
	if got := syncOf(s); got.Moves || got.InStep || got.Touch.IsZero() {
		t.Errorf("told as %+v", got)
	}
}
