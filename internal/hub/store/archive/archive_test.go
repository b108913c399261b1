package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/archive"
	"github.com/memsvc/memsvc/internal/hub/store/inmem"
	"github.com/memsvc/memsvc/internal/hub/store/sqlite"
	"github.com/memsvc/memsvc/internal/memory"
)

var (
	ctx      = context.Background()
	day0     = time.Date(2026, 3, 1, 9, 30, 0, 123456789, time.UTC)
	payments = memory.ProjectKey{Team: "acme", Project: "payments"}
	web      = memory.ProjectKey{Team: "acme", Project: "web"}
	other    = memory.ProjectKey{Team: "beta", Project: "x"}
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// source is a hub with all that a history can hold: versions, a rename, a
// tombstone, an empty text, compacted commits, a redaction, two epochs, settings,
// tokens, and a project without commits.
func source(t testing.TB) *inmem.Store {
	t.Helper()
	b := inmem.New(inmem.Options{Epoch: "src-1"})
	for _, k := range []memory.ProjectKey{payments, web, other} {
		must(t, b.CreateProject(ctx, k, day0))
	}
	now := day0
	commit := func(k memory.ProjectKey, changes ...memory.Change) {
		now = now.Add(time.Minute)
		_, err := b.Commit(ctx, store.CommitRequest{Project: k, Now: now, Message: "why",
			Author: memory.Author{Principal: "token:ann", Machine: "mill", Client: "codex", Session: "s"}, Changes: changes})
		must(t, err)
	}
	for i := range 20 {
		commit(payments, put("a.md", fmt.Sprint("a", i)), put(fmt.Sprintf("f%d.md", i%4), fmt.Sprint("f", i)))
	}
	commit(payments, memory.Change{Path: "f1.md", Kind: memory.Delete}, put("empty.md", ""))
	commit(payments, memory.Change{Path: "f2.md", Kind: memory.Delete},
		memory.Change{Path: "中文.md", Kind: memory.Put, Content: []byte("f18"), RenamedFrom: "f2.md"})
	commit(other, put("o.md", "other"))
	must(t, b.NewEpoch(ctx, "src-2", now))
	commit(payments, put("secret.md", "leak"))
	_, err := b.Redact(ctx, store.RedactRequest{Project: payments, Path: "secret.md", Marker: []byte("[redacted]"), Fingerprints: []string{"fp"}, Now: now.Add(time.Minute)})
	must(t, err)
	_, err = b.Compact(ctx, payments, day0.Add(8*time.Minute))
	must(t, err)
	must(t, b.PutSetting(ctx, "", "hub", []byte(`{"a":1}`), 0))
	must(t, b.PutSetting(ctx, "acme", "policy", []byte(`{}`), 0))
	must(t, b.PutSetting(ctx, payments.String(), "quota", []byte(`[]`), 0))
	must(t, b.PutToken(ctx, store.Token{ID: "t1", Hash: "h1", Team: "acme", Role: "writer", CreateTime: day0}))
	return b
}

func put(path, content string) memory.Change {
	return memory.Change{Path: memory.Path(path), Kind: memory.Put, Content: []byte(content)}
}

// dump is all that an archive moves, but for what an import makes of epochs.
type dump struct {
	Info     store.ProjectInfo
	Memories []memory.Memory
	History  []memory.Commit
	AtOldest []string
}

func dumpOf(t testing.TB, b store.Backend, key memory.ProjectKey) dump {
	t.Helper()
	var d dump
	var err error
	d.Info, err = b.Project(ctx, key)
	must(t, err)
	d.Info.Head.Epoch = ""
	d.Memories, err = b.List(ctx, key, store.ListOptions{Content: true, Deleted: true, EarlierETags: true})
	must(t, err)
	d.History, err = b.History(ctx, key, 0, 0, 0)
	must(t, err)
	for _, m := range d.Memories {
		old, err := b.Get(ctx, key, m.Path, max(1, d.Info.Oldest-1))
		if err != nil && !errors.Is(err, memory.ErrNotFound) && !errors.Is(err, memory.ErrInvalidArgument) {
			t.Fatal(err)
		}
		d.AtOldest = append(d.AtOldest, string(old.Content))
	}
	return d
}

func export(t testing.TB, b store.Backend, scope archive.Scope) []byte {
	t.Helper()
	var out bytes.Buffer
	must(t, archive.Export(ctx, b, &out, scope, nil))
	return out.Bytes()
}

func options(epoch memory.Epoch) archive.ImportOptions {
	return archive.ImportOptions{Epoch: epoch, Now: day0}
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

func newSQLite(t testing.TB) store.Backend {
	t.Helper()
	s, err := sqlite.Open(sqlite.Options{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func TestRoundTripThroughEveryBackend(t *testing.T) {
	src := source(t)
	first := export(t, src, archive.Scope{Tokens: true})
	for name, dst := range map[string]store.Backend{"inmem": inmem.New(inmem.Options{Epoch: "dst-1"}), "sqlite": newSQLite(t)} {
		t.Run(name, func(t *testing.T) {
			count, err := archive.Import(ctx, dst, bytes.NewReader(first), options("dst-2"))
			must(t, err)
			equal(t, "projects", count.Projects, 3)
			for _, key := range []memory.ProjectKey{payments, web, other} {
				equal(t, key.String(), dumpOf(t, dst, key), dumpOf(t, src, key))
			}
			for scope, name := range map[string]string{"": "hub", "acme": "policy", payments.String(): "quota"} {
				doc, version, err := dst.Setting(ctx, scope, name)
				must(t, err)
				if version != 1 || len(doc) == 0 {
					t.Errorf("setting %q of %q: %q at %d", name, scope, doc, version)
				}
			}
			_, err = dst.TokenByHash(ctx, "h1")
			must(t, err)
			known, err := dst.Redacted(ctx, "acme", []string{"fp"})
			must(t, err)
			equal(t, "redactions", known, []string{"fp"})
		})
	}
}

// A client of the old hub that comes to the new one must be told where the
// histories part, not that nothing is shared.
func TestImportMintsAnEpochAndKnowsTheOldOnes(t *testing.T) {
	src := source(t)
	dst := inmem.New(inmem.Options{Epoch: "dst-1"})
	_, err := archive.Import(ctx, dst, bytes.NewReader(export(t, src, archive.Scope{})), options("dst-2"))
	must(t, err)
	epoch, err := dst.Epoch(ctx)
	must(t, err)
	equal(t, "epoch", epoch, memory.Epoch("dst-2"))
	info, err := dst.Project(ctx, payments)
	must(t, err)
	for seen, want := range map[memory.Epoch]memory.Revision{"src-1": 22, "src-2": info.Head.Revision, "dst-1": info.Head.Revision, "dst-2": info.Head.Revision} {
		at, ok, err := dst.Rewind(ctx, payments, seen)
		must(t, err)
		if !ok || at != want {
			t.Errorf("rewind from %s: got %d, %v, want %d", seen, at, ok, want)
		}
	}
	if _, err := dst.TokenByHash(ctx, "h1"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("tokens came along unasked: %v", err)
	}
}

func TestImportAgainChangesNothingButTheEpoch(t *testing.T) {
	src := source(t)
	file := export(t, src, archive.Scope{})
	dst := newSQLite(t)
	for _, epoch := range []memory.Epoch{"dst-2", "dst-3"} {
		_, err := archive.Import(ctx, dst, bytes.NewReader(file), options(epoch))
		must(t, err)
		equal(t, "state", dumpOf(t, dst, payments), dumpOf(t, src, payments))
	}
}

func TestImportGoesOnAfterMoreCommits(t *testing.T) {
	src := source(t)
	dst := newSQLite(t)
	_, err := archive.Import(ctx, dst, bytes.NewReader(export(t, src, archive.Scope{})), options("dst-2"))
	must(t, err)
	_, err = src.Commit(ctx, store.CommitRequest{Project: payments, Now: day0.Add(time.Hour), Changes: []memory.Change{put("new.md", "new")}})
	must(t, err)
	_, err = archive.Import(ctx, dst, bytes.NewReader(export(t, src, archive.Scope{})), options("dst-3"))
	must(t, err)
	equal(t, "state", dumpOf(t, dst, payments), dumpOf(t, src, payments))
}

// failing fails the n-th write to the store, once.
type failing struct {
	store.Backend
	left int
}

var errFault = errors.New("fault")

func (f *failing) fault() error {
	f.left--
	if f.left == 0 {
		return errFault
	}
	return nil
}

func (f *failing) CreateProject(ctx context.Context, key memory.ProjectKey, now time.Time, on ...store.AuditEvent) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.Backend.CreateProject(ctx, key, now, on...)
}

func (f *failing) ImportCommits(ctx context.Context, key memory.ProjectKey, oldest memory.Revision, commits []memory.Commit) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.Backend.ImportCommits(ctx, key, oldest, commits)
}

func (f *failing) ImportSpans(ctx context.Context, key memory.ProjectKey, spans []store.Span) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.Backend.ImportSpans(ctx, key, spans)
}

func (f *failing) NewEpoch(ctx context.Context, next memory.Epoch, now time.Time, on ...store.AuditEvent) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.Backend.NewEpoch(ctx, next, now, on...)
}

func TestInterruptedImportIsBegunAnew(t *testing.T) {
	src := source(t)
	file := export(t, src, archive.Scope{})
	for n := 1; ; n++ {
		dst := inmem.New(inmem.Options{Epoch: "dst-1"})
		_, err := archive.Import(ctx, &failing{dst, n}, bytes.NewReader(file), options("dst-2"))
		if err == nil {
			if n < 5 {
				t.Fatalf("only %d writes were failed", n-1)
			}
			return
		}
		if !errors.Is(err, errFault) {
			t.Fatalf("write %d: %v", n, err)
		}
		_, err = archive.Import(ctx, dst, bytes.NewReader(file), options("dst-2"))
		must(t, err)
		for _, key := range []memory.ProjectKey{payments, web, other} {
			equal(t, key.String(), dumpOf(t, dst, key), dumpOf(t, src, key))
		}
	}
}

func TestAnotherHistoryIsRefused(t *testing.T) {
	file := export(t, source(t), archive.Scope{})
	for name, prepare := range map[string]func(b *inmem.Store){
		"other commits": func(b *inmem.Store) {
			_, err := b.Commit(ctx, store.CommitRequest{Project: payments, Now: day0, Changes: []memory.Change{put("mine.md", "mine")}})
			must(t, err)
		},
		"a longer history": func(b *inmem.Store) {
			for i := range 60 {
				_, err := b.Commit(ctx, store.CommitRequest{Project: payments, Now: day0, Changes: []memory.Change{put("mine.md", fmt.Sprint(i))}})
				must(t, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dst := inmem.New(inmem.Options{Epoch: "dst-1"})
			must(t, dst.CreateProject(ctx, payments, day0))
			prepare(dst)
			before := dumpOf(t, dst, payments)
			_, err := archive.Import(ctx, dst, bytes.NewReader(file), options("dst-2"))
			if !errors.Is(err, memory.ErrAlreadyExists) {
				t.Fatalf("got %v, want ALREADY_EXISTS", err)
			}
			equal(t, "state", dumpOf(t, dst, payments), before)
		})
	}
}

// TestAnotherHistoryRefusesTheWhole finds the last project of an archive, and another one,
// with another history: nothing of the others is written, and both are named.
func TestAnotherHistoryRefusesTheWhole(t *testing.T) {
	file := export(t, source(t), archive.Scope{})
	dst := inmem.New(inmem.Options{Epoch: "dst-1"})
	for _, key := range []memory.ProjectKey{web, other} {
		must(t, dst.CreateProject(ctx, key, day0))
		_, err := dst.Commit(ctx, store.CommitRequest{Project: key, Now: day0, Changes: []memory.Change{put("mine.md", "mine")}})
		must(t, err)
	}
	_, err := archive.Import(ctx, dst, bytes.NewReader(file), options("dst-2"))
	var refused *archive.Refused
	if !errors.As(err, &refused) || !errors.Is(err, memory.ErrAlreadyExists) || !strings.Contains(err.Error(), web.String()) || !strings.Contains(err.Error(), other.String()) {
		t.Errorf("error %v, want a refusal that names %s and %s", err, web, other)
	}
	if _, err := dst.Project(ctx, payments); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("another project was taken in (%v)", err)
	}
	tokens, err := dst.Tokens(ctx, "")
	must(t, err)
	if epoch, err := dst.Epoch(ctx); err != nil || epoch != "dst-1" || len(tokens) > 0 {
		t.Errorf("epoch %s, %d tokens, %v: something was written", epoch, len(tokens), err)
	}
}

// TestFilesThatAreNoArchive says what they are.
func TestFilesThatAreNoArchive(t *testing.T) {
	for text, want := range map[string]string{
		"SQLite format 3\x00rest of it":        "memsvc restore-backup takes it",
		"\x1f\x8b\x08\x00 and so on and so on": "the file is compressed; unpack it first",
		"PK\x03\x04 some other file":           "name a file that memsvc export wrote",
		"memsvc-ar":                            "it ends too early; the file is damaged, export it again",
	} {
		if _, err := archive.Import(ctx, inmem.New(inmem.Options{Epoch: "e"}), strings.NewReader(text), options("x")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestDamageChangesNothing(t *testing.T) {
	file := export(t, source(t), archive.Scope{})
	check := func(what string, bad []byte) {
		t.Helper()
		dst := inmem.New(inmem.Options{Epoch: "dst-1"})
		_, err := archive.Import(ctx, dst, bytes.NewReader(bad), options("dst-2"))
		if err == nil {
			t.Fatalf("%s: it was accepted", what)
		}
		var refused *archive.Refused
		if !errors.As(err, &refused) || !errors.Is(err, memory.ErrInvalidArgument) {
			t.Fatalf("%s: %v is no refusal", what, err)
		}
		if text := err.Error(); strings.Count(text, "export it again")+strings.Count(text, "memsvc export wrote")+strings.Count(text, "the newer memsvc") != 1 {
			t.Errorf("%s: it does not say once what to do: %s", what, text)
		}
		teams, err := dst.Teams(ctx)
		must(t, err)
		if len(teams) > 0 {
			t.Fatalf("%s: something was imported", what)
		}
	}
	for i := 0; i < len(file); i += 1 + len(file)/400 {
		bad := bytes.Clone(file)
		bad[i] ^= 0x04
		check(fmt.Sprintf("byte %d flipped", i), bad)
		check(fmt.Sprintf("cut at %d", i), file[:i])
	}
	check("something after the end", append(bytes.Clone(file), 'x'))
	check("empty", nil)
	check("another file", []byte("# A memory\n"))
}

// A pipe cannot be read twice: what came before the damage is whole, and the
// import is finished by the whole archive.
func TestDamageInAPipe(t *testing.T) {
	src := source(t)
	file := export(t, src, archive.Scope{})
	for _, cut := range []int{len(file) / 3, len(file) / 2, len(file) - 1} {
		dst := inmem.New(inmem.Options{Epoch: "dst-1"})
		_, err := archive.Import(ctx, dst, io.MultiReader(bytes.NewReader(file[:cut])), options("dst-2"))
		if !errors.Is(err, memory.ErrInvalidArgument) {
			t.Fatalf("got %v, want INVALID_ARGUMENT", err)
		}
		_, err = archive.Import(ctx, dst, io.MultiReader(bytes.NewReader(file)), options("dst-2"))
		must(t, err)
		equal(t, "state", dumpOf(t, dst, payments), dumpOf(t, src, payments))
	}
}

func TestScope(t *testing.T) {
	src := source(t)
	dst := inmem.New(inmem.Options{Epoch: "dst-1"})
	_, err := archive.Import(ctx, dst, bytes.NewReader(export(t, src, archive.Scope{Team: "acme", Project: "payments"})), options("dst-2"))
	must(t, err)
	keys, err := dst.Projects(ctx, "")
	must(t, err)
	equal(t, "projects", keys, []memory.ProjectKey{payments})
	if _, v, err := dst.Setting(ctx, "", "hub"); err != nil || v != 0 {
		t.Errorf("the hub's settings came along: %d, %v", v, err)
	}
	for _, bad := range []archive.Scope{{Project: "payments"}, {Team: "acme", Project: "nowhere"}} {
		if err := archive.Export(ctx, src, io.Discard, bad, nil); err == nil {
			t.Errorf("scope %+v was accepted", bad)
		}
	}
}

func TestProgressAndCancel(t *testing.T) {
	src := source(t)
	var last archive.Count
	grow := func(c archive.Count) {
		if c.Commits < last.Commits || c.Projects < last.Projects || c.Bytes < last.Bytes {
			t.Errorf("progress went back from %+v to %+v", last, c)
		}
		last = c
	}
	var file bytes.Buffer
	must(t, archive.Export(ctx, src, &file, archive.Scope{}, grow))
	exported := last
	last = archive.Count{}
	opts := options("dst-2")
	opts.Progress = grow
	_, err := archive.Import(ctx, inmem.New(inmem.Options{}), &file, opts)
	must(t, err)
	equal(t, "imported", last, exported)
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := archive.Export(over, src, io.Discard, archive.Scope{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
	must(t, src.CreateProject(ctx, memory.ProjectKey{Team: "z", Project: "z"}, day0))
}

// FuzzImport feeds hostile archives: they are refused or imported, and what was
// imported is a history that exports to an archive that verifies.
func FuzzImport(f *testing.F) {
	// A small seed: the fuzzer minimises what it finds, byte by byte.
	small := inmem.New(inmem.Options{Epoch: "src-1"})
	must(f, small.CreateProject(ctx, other, day0))
	_, err := small.Commit(ctx, store.CommitRequest{Project: other, Now: day0, Changes: []memory.Change{put("a.md", "x")}})
	must(f, err)
	file := export(f, small, archive.Scope{Tokens: true})
	f.Add(file)
	f.Add(file[:len(file)/2])
	f.Add([]byte("memsvc-archive\n\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		dst := inmem.New(inmem.Options{Epoch: "dst-1"})
		_, _ = archive.Import(ctx, dst, io.MultiReader(bytes.NewReader(in)), options("dst-2"))
		var out bytes.Buffer
		must(t, archive.Export(ctx, dst, &out, archive.Scope{Tokens: true}, nil))
		must(t, archive.Verify(ctx, &out))
	})
}
