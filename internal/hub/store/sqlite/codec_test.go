package sqlite

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/memsvc/memsvc/internal/memory"
)

func drawTime(rt *rapid.T, label string) time.Time {
	if rapid.Bool().Draw(rt, label+" zero") {
		return time.Time{}
	}
	return time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(rt, label), rapid.Int64Range(0, 999_999_999).Draw(rt, label+" ns")).UTC()
}

func drawRecord(rt *rapid.T) *record {
	s := func(label string) string { return rapid.String().Draw(rt, label) }
	r := &record{Commit: memory.Commit{
		ID:      memory.CommitID(rapid.SampledFrom([]string{"", "00ff", "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", "not hex", "ABCD", "abc"}).Draw(rt, "id")),
		Author:  memory.Author{Principal: s("principal"), Machine: s("machine"), Client: s("client"), Session: s("session")},
		Time:    drawTime(rt, "time"),
		Message: s("message"),
	}}
	for range rapid.IntRange(0, 5).Draw(rt, "changes") {
		v := version{AppliedChange: memory.AppliedChange{
			Path: memory.Path(s("path")), Kind: memory.ChangeKind(rapid.IntRange(1, 3).Draw(rt, "kind")),
			PreviousETag: memory.ETag(rapid.SampledFrom([]string{"", string(memory.ETagOf([]byte("p")))}).Draw(rt, "previous")),
			ModTime:      drawTime(rt, "mod time"), RenamedFrom: memory.Path(s("from")),
		}, prevSeq: rapid.Int64Range(0, 1<<62).Draw(rt, "seq"), prevRev: memory.Revision(rapid.Int64Range(0, 1<<62).Draw(rt, "rev"))}
		if rapid.Bool().Draw(rt, "living") {
			v.Content = []byte(s("content"))
			v.ETag, v.Size = memory.ETagOf(v.Content), int64(len(v.Content))
		}
		r.versions = append(r.versions, v)
	}
	if rapid.Bool().Draw(rt, "request") {
		r.request = &requestTag{key: [16]byte{1, 2}, digest: [32]byte{3, 4}}
	}
	return r
}

var compareRecords = cmp.Options{cmp.AllowUnexported(record{}, version{}, requestTag{}, remembered{}), cmpopts.EquateEmpty()}

func TestCodecRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := drawRecord(rt)
		got, err := decodeMeta(appendMeta(nil, want), want.content(), true)
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(want, got, compareRecords); d != "" {
			rt.Fatalf("commit (-want +got):\n%s", d)
		}
		h := head{seq: 1 << 40, rev: 3, size: 77, sum: [32]byte{9}, deleted: rapid.Bool().Draw(rt, "deleted")}
		if back, err := decodeHead(appendHead(nil, h)); err != nil || back != h {
			rt.Fatalf("head: got %+v, %v, want %+v", back, err, h)
		}
		for i := range want.versions {
			want.versions[i].Content = nil
		}
		q := &remembered{at: drawTime(rt, "at"), created: true, rev: 5, seq: 6, id: "0a", digest: [32]byte{8}, commit: want}
		back, err := decodeRequest(appendRequest(nil, q))
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(q, back, compareRecords); d != "" {
			rt.Fatalf("request (-want +got):\n%s", d)
		}
	})
}

// FuzzDecode feeds damaged rows: they are errors, never panics or huge
// allocations, and what is accepted encodes and decodes to itself.
func FuzzDecode(f *testing.F) {
	r := &record{Commit: memory.Commit{ID: "00ff", Message: "m", Time: day0}, versions: []version{{AppliedChange: memory.AppliedChange{
		Path: "a.md", Kind: memory.Put, ETag: memory.ETagOf([]byte("x")), Content: []byte("x"), Size: 1}}}}
	f.Add(appendMeta(nil, r), []byte("x"))
	f.Add(appendHead(nil, head{seq: 1}), []byte(nil))
	f.Add(appendRequest(nil, &remembered{at: day0, commit: r}), []byte(nil))
	f.Fuzz(func(t *testing.T, meta, content []byte) {
		if got, err := decodeMeta(meta, content, true); err == nil {
			again, err := decodeMeta(appendMeta(nil, got), bytes.Join([][]byte{got.content()}, nil), true)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(got, again, compareRecords); d != "" {
				t.Fatalf("commit (-first +again):\n%s", d)
			}
		}
		if got, err := decodeHead(meta); err == nil {
			if again, err := decodeHead(appendHead(nil, got)); err != nil || again != got {
				t.Fatalf("head: got %+v, %v, want %+v", again, err, got)
			}
		}
		if got, err := decodeRequest(meta); err == nil {
			if _, err := decodeRequest(appendRequest(nil, got)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
