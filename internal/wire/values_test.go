package wire

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
)

// overWire marshals and parses m, so that a round trip includes what protobuf
// itself does to a value.
func overWire[M proto.Message](t interface{ Fatalf(string, ...any) }, m M) M {
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	out, ok := m.ProtoReflect().New().Interface().(M)
	if !ok {
		t.Fatalf("new message has another type")
	}
	if err := proto.Unmarshal(b, out); err != nil {
		t.Fatalf("unmarshal: %v", err)
	}
	return out
}

func requireSame(t *rapid.T, want, got any, err error) {
	if err != nil {
		t.Fatalf("from proto: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("round trip (-want +got):\n%s", diff)
	}
}

func TestValuesSurviveTheTrip(t *testing.T) {
	t.Run("Memory", rapid.MakeCheck(func(t *rapid.T) {
		want := genMemory(t)
		got, err := MemoryFromProto(overWire(t, MemoryToProto(genKey(t), want)))
		requireSame(t, want, got, err)
	}))
	t.Run("Change", rapid.MakeCheck(func(t *rapid.T) {
		want := genChange(t)
		message, err := ChangeToProto(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ChangeFromProto(overWire(t, message))
		requireSame(t, want, got, err)
	}))
	t.Run("Commit", rapid.MakeCheck(func(t *rapid.T) {
		want := genCommit(t)
		got, err := CommitFromProto(overWire(t, CommitToProto(want)))
		requireSame(t, want, got, err)
	}))
	t.Run("Cursor", rapid.MakeCheck(func(t *rapid.T) {
		want := genCursor(t)
		message := CursorToProto(want)
		if message != nil {
			message = overWire(t, message)
		}
		got, err := CursorFromProto(message)
		requireSame(t, want, got, err)
	}))
	t.Run("Author", rapid.MakeCheck(func(t *rapid.T) {
		want := genAuthor(t)
		requireSame(t, want, AuthorFromProto(AuthorToProto(want)), nil)
	}))
}

// TestMessagesSurviveTheTrip is the other direction: what parses comes out as it
// went in, so the hub's gateway and old clients lose nothing.
func TestMessagesSurviveTheTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := CommitToProto(genCommit(t))
		c, err := CommitFromProto(want)
		if err != nil {
			t.Fatal(err)
		}
		if got := CommitToProto(c); !proto.Equal(want, got) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestZeroValuesAreNil(t *testing.T) {
	if CursorToProto(memory.Cursor{}) != nil || AuthorToProto(memory.Author{}) != nil || TimeToProto(time.Time{}) != nil {
		t.Error("a zero value travels as a message; want nil")
	}
	if c := CommitToProto(memory.Commit{}); c != nil {
		t.Errorf("the commit before the first travels as %v; want nil", c)
	}
	if c, err := CommitFromProto(nil); err != nil || c.Revision != 0 {
		t.Errorf("CommitFromProto(nil) = %v, %v; want the zero commit", c, err)
	}
	if _, err := MemoryFromProto(nil); !errors.Is(err, memory.ErrInvalidArgument) {
		t.Errorf("MemoryFromProto(nil): %v; want INVALID_ARGUMENT", err)
	}
}

func TestTimesOutsideATimestampAreClamped(t *testing.T) {
	for _, year := range []int{-300, 40000} {
		in := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		ts := TimeToProto(in)
		if err := ts.CheckValid(); err != nil {
			t.Errorf("year %d: %v", year, err)
		}
	}
	zone := time.FixedZone("x", 3*3600)
	in := time.Date(2001, 2, 3, 4, 5, 6, 7, zone)
	out, err := TimeFromProto("t", TimeToProto(in))
	if err != nil || !out.Equal(in) || out.Location() != time.UTC {
		t.Errorf("got %v, %v; want %v in UTC", out, err, in)
	}
}

func goodMemory() *memsvcv1.Memory {
	return &memsvcv1.Memory{Path: "project_x.md", Etag: strings.Repeat("a", 64), Content: []byte("x"), SizeBytes: 1, Revision: 1}
}

func goodCommit() *memsvcv1.Commit {
	return &memsvcv1.Commit{
		Name: "teams/t/projects/p/commits/3", Revision: 3,
		Changes: []*memsvcv1.CommittedChange{{Path: "project_x.md", Kind: memsvcv1.ChangeKind_CHANGE_KIND_PUT, Etag: strings.Repeat("a", 64)}},
	}
}

// TestWhatDoesNotFitIsRefused changes one field of a good message at a time.
func TestWhatDoesNotFitIsRefused(t *testing.T) {
	goodChange := func() *memsvcv1.Change {
		return &memsvcv1.Change{Path: "project_x.md", Action: &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{}}}
	}
	badTime := &timestamppb.Timestamp{Seconds: 1, Nanos: -1}

	memories := map[string]func(*memsvcv1.Memory){
		"":                   func(*memsvcv1.Memory) {},
		"path above":         func(m *memsvcv1.Memory) { m.Path = "../x.md" },
		"drive path":         func(m *memsvcv1.Memory) { m.Path = "C:x.md" },
		"encoded path":       func(m *memsvcv1.Memory) { m.Path = "%2e%2e%2fx.md" },
		"no path":            func(m *memsvcv1.Memory) { m.Path = "" },
		"short etag":         func(m *memsvcv1.Memory) { m.Etag = "ab" },
		"upper-case etag":    func(m *memsvcv1.Memory) { m.Etag = strings.Repeat("A", 64) },
		"etag not hex":       func(m *memsvcv1.Memory) { m.Etag = strings.Repeat("g", 64) },
		"last etag":          func(m *memsvcv1.Memory) { m.LastEtag = "x" },
		"earlier etag":       func(m *memsvcv1.Memory) { m.EarlierEtags = []string{"x"} },
		"living, no etag":    func(m *memsvcv1.Memory) { m.Etag = "" },
		"deleted, with etag": func(m *memsvcv1.Memory) { m.Deleted = true },
		"size below zero":    func(m *memsvcv1.Memory) { m.Content, m.SizeBytes = nil, -1 },
		"size of another":    func(m *memsvcv1.Memory) { m.SizeBytes = 2 },
		"revision":           func(m *memsvcv1.Memory) { m.Revision = -1 },
		"modify time":        func(m *memsvcv1.Memory) { m.ModifyTime = badTime },
		"commit time":        func(m *memsvcv1.Memory) { m.CommitTime = badTime },
	}
	for name, spoil := range memories {
		m := goodMemory()
		spoil(m)
		_, err := MemoryFromProto(m)
		requireRefused(t, "memory: "+name, err, name == "")
	}

	commits := map[string]func(*memsvcv1.Commit){
		"":                    func(*memsvcv1.Commit) {},
		"no name":             func(c *memsvcv1.Commit) { c.Name = "" },
		"name of a memory":    func(c *memsvcv1.Commit) { c.Name = "teams/t/projects/p/memories/x.md" },
		"padded revision":     func(c *memsvcv1.Commit) { c.Name = "teams/t/projects/p/commits/03" },
		"other revision":      func(c *memsvcv1.Commit) { c.Revision = 4 },
		"revision 0":          func(c *memsvcv1.Commit) { c.Name, c.Revision = "teams/t/projects/p/commits/0", 0 },
		"time":                func(c *memsvcv1.Commit) { c.CommitTime = badTime },
		"kind unspecified":    func(c *memsvcv1.Commit) { c.Changes[0].Kind = 0 },
		"kind unknown":        func(c *memsvcv1.Commit) { c.Changes[0].Kind = 99 },
		"change etag":         func(c *memsvcv1.Commit) { c.Changes[0].Etag = "x" },
		"previous etag":       func(c *memsvcv1.Commit) { c.Changes[0].PreviousEtag = "x" },
		"change size":         func(c *memsvcv1.Commit) { c.Changes[0].SizeBytes = -1 },
		"change size differs": func(c *memsvcv1.Commit) { c.Changes[0].Content = []byte("xyz") },
		"change time":         func(c *memsvcv1.Commit) { c.Changes[0].ModifyTime = badTime },
	}
	for name, spoil := range commits {
		c := goodCommit()
		spoil(c)
		_, err := CommitFromProto(c)
		requireRefused(t, "commit: "+name, err, name == "")
	}

	changes := map[string]func(*memsvcv1.Change){
		"":             func(*memsvcv1.Change) {},
		"path":         func(c *memsvcv1.Change) { c.Path = "a/../b.md" },
		"no action":    func(c *memsvcv1.Change) { c.Action = nil },
		"time":         func(c *memsvcv1.Change) { c.GetPut().ModifyTime = badTime },
		"renamed from": func(c *memsvcv1.Change) { c.GetPut().RenamedFrom = "x\x00.md" },
		"if match": func(c *memsvcv1.Change) {
			c.Precondition = &memsvcv1.Precondition{Condition: &memsvcv1.Precondition_Etag{Etag: "x"}}
		},
		"if match none": func(c *memsvcv1.Change) {
			c.Precondition = &memsvcv1.Precondition{Condition: &memsvcv1.Precondition_Etag{}}
		},
	}
	for name, spoil := range changes {
		c := goodChange()
		spoil(c)
		_, err := ChangeFromProto(c)
		requireRefused(t, "change: "+name, err, name == "")
	}

	_, err := CursorFromProto(&memsvcv1.Cursor{Revision: -1})
	requireRefused(t, "cursor: revision", err, false)
	_, err = ChangeToProto(memory.Change{Path: "x.md", Kind: memory.Redact})
	requireRefused(t, "change: a writer's redact", err, false)
	_, err = ChangeToProto(memory.Change{Path: "x.md", Kind: memory.Put, Precondition: memory.Precondition{Kind: 9}})
	requireRefused(t, "change: unknown precondition", err, false)
	_, err = ContentWanted(7, true)
	requireRefused(t, "view", err, false)
	_, err = StartsAtHead(7)
	requireRefused(t, "start", err, false)
}

func requireRefused(t *testing.T, name string, err error, good bool) {
	t.Helper()
	if good {
		if err != nil {
			t.Errorf("%s: the good message is refused: %v", name, err)
		}
		return
	}
	if !errors.Is(err, memory.ErrInvalidArgument) && !errors.Is(err, memory.ErrInvalidPath) {
		t.Errorf("%s: got %v; want INVALID_ARGUMENT or INVALID_PATH", name, err)
	}
}

func TestMustNotExistFalseAsksNothing(t *testing.T) {
	c, err := ChangeFromProto(&memsvcv1.Change{
		Path:         "x.md",
		Action:       &memsvcv1.Change_Delete{Delete: &memsvcv1.DeleteAction{}},
		Precondition: &memsvcv1.Precondition{Condition: &memsvcv1.Precondition_MustNotExist{}},
	})
	if err != nil || c.Precondition != (memory.Precondition{}) {
		t.Errorf("got %v, %v; want no precondition", c.Precondition, err)
	}
}

func TestViewsAndStarts(t *testing.T) {
	for view, want := range map[memsvcv1.MemoryView]bool{
		memsvcv1.MemoryView_MEMORY_VIEW_UNSPECIFIED: true, // the default given
		memsvcv1.MemoryView_MEMORY_VIEW_METADATA:    false,
		memsvcv1.MemoryView_MEMORY_VIEW_FULL:        true,
	} {
		if got, err := ContentWanted(view, true); err != nil || got != want {
			t.Errorf("ContentWanted(%v) = %v, %v; want %v", view, got, err, want)
		}
	}
	for start, want := range map[memsvcv1.WatchStart]bool{
		memsvcv1.WatchStart_WATCH_START_UNSPECIFIED:  false,
		memsvcv1.WatchStart_WATCH_START_AFTER_CURSOR: false,
		memsvcv1.WatchStart_WATCH_START_HEAD:         true,
	} {
		if got, err := StartsAtHead(start); err != nil || got != want {
			t.Errorf("StartsAtHead(%v) = %v, %v; want %v", start, got, err, want)
		}
	}
}

// TestEveryEnumValueIsKnown fails when the contract gains a value that wire does
// not translate.
func TestEveryEnumValueIsKnown(t *testing.T) {
	for n := range memsvcv1.MemoryView_name {
		if _, err := ContentWanted(memsvcv1.MemoryView(n), false); err != nil {
			t.Error(err)
		}
	}
	for n := range memsvcv1.WatchStart_name {
		if _, err := StartsAtHead(memsvcv1.WatchStart(n)); err != nil {
			t.Error(err)
		}
	}
	for n := range memsvcv1.ChangeKind_name {
		k, err := changeKindFromProto(memsvcv1.ChangeKind(n))
		if n == 0 {
			if err == nil {
				t.Error("an unspecified kind is taken")
			}
			continue
		}
		if err != nil || changeKindToProto(k) != memsvcv1.ChangeKind(n) {
			t.Errorf("kind %d: %v, %v", n, k, err)
		}
	}
}

func TestNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, r := genKey(t), genRevision(t, "revision")
		gotKey, gotRevision, err := ParseCommitName(CommitName(key, r))
		if err != nil || gotKey != key || gotRevision != r {
			t.Fatalf("got %v, %v, %v; want %v, %v", gotKey, gotRevision, err, key, r)
		}
		team, err := ParsePolicyName(PolicyName(key.Team))
		if err != nil || team != key.Team {
			t.Fatalf("got %v, %v; want %v", team, err, key.Team)
		}
	})
	for _, bad := range []string{"", "teams", "teams/t", "teams/t/guardPolicy/x", "teams//guardPolicy", "x/t/guardPolicy", "teams/T/guardPolicy"} {
		if _, err := ParsePolicyName(bad); !errors.Is(err, memory.ErrInvalidArgument) {
			t.Errorf("ParsePolicyName(%q): %v; want INVALID_ARGUMENT", bad, err)
		}
	}
}

// TestUnfitPaths takes what else a commit and a listing hold where the parser refuses one
// path, and never lets that one through as a path.
func TestUnfitPaths(t *testing.T) {
	for _, bad := range []string{"/etc/passwd.md", "../up.md", `a\b.md`, "a/../../b.md", "nul.md", "later.txt", "", "x\u202e.md"} {
		commit := goodCommit()
		fit := len(commit.Changes)
		odd := proto.CloneOf(commit.Changes[0])
		odd.Path = bad
		gone := proto.CloneOf(odd)
		gone.Kind, gone.Etag, gone.Content, gone.SizeBytes = memsvcv1.ChangeKind_CHANGE_KIND_DELETE, "", nil, 0
		commit.Changes = append([]*memsvcv1.CommittedChange{odd, gone}, commit.Changes...)
		got, err := CommitFromProto(commit)
		if want := []memory.Unfit{{Path: bad}, {Path: bad, Deleted: true}}; err != nil || len(got.Changes) != fit || !slices.Equal(got.Unfit, want) {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
		renamed := goodCommit()
		renamed.Changes[0].RenamedFrom = bad
		if got, err := CommitFromProto(renamed); err != nil || got.Changes[0].RenamedFrom != "" {
			t.Errorf("renamed from %q: %+v, %v", bad, got, err)
		}
		m := goodMemory()
		m.Path = bad
		list, unfit, err := MemoriesFromProto([]*memsvcv1.Memory{goodMemory(), m})
		if err != nil || len(list) != 1 || len(unfit) != 1 || unfit[0].Path != bad {
			t.Errorf("list with %q: %+v, %+v, %v", bad, list, unfit, err)
		}
	}
	// What is wrong with the rest is still refused.
	m := goodMemory()
	m.Etag = "x"
	if _, _, err := MemoriesFromProto([]*memsvcv1.Memory{m}); err == nil {
		t.Error("a bad etag was taken")
	}
}
