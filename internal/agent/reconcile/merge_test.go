package reconcile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/memsvc/memsvc/internal/memory"
)

func TestMergeTexts(t *testing.T) {
	fm := func(fields, body string) string { return "---\n" + fields + "---\n" + body }
	tests := []struct {
		name                      string
		path                      memory.Path
		base, local, remote, want string
		conflict                  bool
		noBase                    bool
	}{
		{name: "apart", base: "a\nb\nc\n", local: "A\nb\nc\n", remote: "a\nb\nC\n", want: "A\nb\nC\n"},
		{name: "touching", base: "a\nb\n", local: "A\nb\n", remote: "a\nB\n", conflict: true},
		{name: "same line", base: "a\nb\nc\n", local: "a\nx\nc\n", remote: "a\ny\nc\n", conflict: true},
		{name: "same change", base: "a\nb\nc\n", local: "a\nx\nc\n", remote: "a\nx\nc\n", want: "a\nx\nc\n"},
		{name: "same change and one more", base: "a\nb\nc\nd\n", local: "a\nx\nc\nd\n", remote: "a\nx\nc\nD\n", want: "a\nx\nc\nD\n"},
		{name: "both append", base: "a\n", local: "a\nx\n", remote: "a\ny\n", conflict: true},
		{name: "top and bottom", base: "a\nb\n", local: "x\na\nb\n", remote: "a\nb\ny\n", want: "x\na\nb\ny\n"},
		{name: "no base, equal", noBase: true, local: "a\n", remote: "a\n", want: "a\n"},
		{name: "no base, different", noBase: true, local: "a\n", remote: "b\n", conflict: true},
		{name: "last line without end", base: "a\nb\nc", local: "A\nb\nc", remote: "a\nb\nC", want: "A\nb\nC"},
		{name: "last line gets its end", base: "a\nb\nc", local: "a\nb\nc\n", remote: "A\nb\nc", want: "A\nb\nc\n"},
		{name: "CRLF throughout", base: "a\r\nb\r\nc\r\n", local: "A\r\nb\r\nc\r\n", remote: "a\r\nb\r\nC\r\n", want: "A\r\nb\r\nC\r\n"},
		{name: "one turns to CRLF", base: "a\nb\nc\n", local: "a\r\nb\r\nc\r\n", remote: "a\nb\nC\n", want: "a\r\nb\r\nC\r\n"},
		{name: "byte order mark stays", base: "\ufeffa\nb\nc\n", local: "\ufeffA\nb\nc\n", remote: "\ufeffa\nb\nC\n", want: "\ufeffA\nb\nC\n"},
		{
			name: "fields apart", base: fm("name: n\ndescription: d\n", "x\n"),
			local: fm("name: N\ndescription: d\n", "x\n"), remote: fm("name: n\ndescription: D\n", "x\n"),
			want: fm("name: N\ndescription: D\n", "x\n"),
		},
		{
			name: "a field both changed", base: fm("name: n\n", "x\n"),
			local: fm("name: a\n", "x\n"), remote: fm("name: b\n", "x\n"), conflict: true,
		},
		{
			name: "field here, body there", base: fm("name: n\n", "x\n"),
			local: fm("name: a\n", "x\n"), remote: fm("name: n\n", "x\ny\n"), want: fm("name: a\n", "x\ny\n"),
		},
		{
			name:   "volatile fields never conflict, the later wins",
			base:   fm("name: n\nmetadata:\n  modified: 2026-01-01T00:00:00Z\n  originSessionId: s0\n", "x\ny\nz\n"),
			local:  fm("name: n\nmetadata:\n  modified: 2026-01-03T00:00:00Z\n  originSessionId: s1\n", "X\ny\nz\n"),
			remote: fm("name: n\nmetadata:\n  modified: 2026-01-02T00:00:00Z\n  originSessionId: s2\n", "x\ny\nZ\n"),
			want:   fm("name: n\nmetadata:\n  modified: 2026-01-03T00:00:00Z\n  originSessionId: s1\n", "X\ny\nZ\n"),
		},
		{
			name:   "a date that both changed, the later side's stays",
			base:   fm("name: n\ndate: 2026-01-01\n", "x\ny\nz\n"),
			local:  fm("name: n\ndate: 2026-01-03\n", "X\ny\nz\n"),
			remote: fm("name: n\ndate: 2026-01-02\n", "x\ny\nZ\n"),
			want:   fm("name: n\ndate: 2026-01-03\n", "X\ny\nZ\n"),
		},
		{
			name: "both add fields", base: fm("name: n\n", "x\n"),
			local:  fm("name: n\nmetadata:\n  type: project\ntags: [a]\n", "x\n"),
			remote: fm("name: n\nmetadata:\n  pinned: true\n", "x\n"),
			want:   fm("name: n\nmetadata:\n  pinned: true\n  type: project\ntags: [a]\n", "x\n"),
		},
		{
			name: "quoted differently", base: fm("name: n\n", "x\n"),
			local: fm("name: \"m\"\n", "x\n"), remote: fm("name: m\n", "x\n"), want: fm("name: m\n", "x\n"),
		},
		{
			name: "unreadable frontmatter is lines", base: "---\nname: [\n---\nx\ny\n",
			local: "---\nname: [\n---\nX\ny\n", remote: "---\nname: [\n---\nx\ny\nz\n", want: "---\nname: [\n---\nX\ny\nz\n",
		},
		{
			name: "index, both append", path: "MEMORY.md",
			base:   "# Team\n- [A](a.md) — a\n",
			local:  "# Team\n- [A](a.md) — a\n- [L](l.md) — l\n",
			remote: "# Team\n- [A](a.md) — a\n- [R](r.md) — r\n",
			want:   "# Team\n- [A](a.md) — a\n- [L](l.md) — l\n- [R](r.md) — r\n",
		},
		{
			name: "index, edit beats delete", path: "MEMORY.md",
			base: "- [A](a.md) — a\n- [B](b.md) — b\n", local: "- [A](a.md) — changed\n- [B](b.md) — b\n", remote: "- [B](b.md) — b\n",
			want: "- [A](a.md) — changed\n- [B](b.md) — b\n",
		},
		{
			name: "index, delete", path: "MEMORY.md",
			base: "- [A](a.md) — a\n- [B](b.md) — b\n", local: "- [B](b.md) — b\n", remote: "- [A](a.md) — a\n- [B](b.md) — new\n",
			want: "- [B](b.md) — new\n",
		},
		{
			name: "index, moved here and edited there", path: "sub/MEMORY.md",
			base: "- [A](a.md) — a\n- [B](b.md) — b\n", local: "- [B](b.md) — b\n- [A](a.md) — a\n", remote: "- [A](a.md) — x\n- [B](b.md) — b\n",
			want: "- [B](b.md) — b\n- [A](a.md) — x\n",
		},
		{
			name: "index without base unites", path: "MEMORY.md", noBase: true,
			local: "# T\n- [A](a.md)\nours\n", remote: "# T\n- [B](b.md)\ntheirs\n",
			want: "# T\n- [A](a.md)\nours\n- [B](b.md)\ntheirs\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := tt.path
			if path == "" {
				path = "project_x.md"
			}
			for _, mirrored := range []bool{false, true} {
				l, r := tt.local, tt.remote
				if mirrored {
					l, r = r, l
				}
				got := MergeTexts(path, []byte(tt.base), !tt.noBase, []byte(l), []byte(r))
				if got.OK == tt.conflict {
					t.Fatalf("mirrored %v: ok = %v", mirrored, got.OK)
				}
				if memory.IsIndex(path) && mirrored { // order is the hub's
					if sortedLines(string(got.Text)) != sortedLines(tt.want) {
						t.Errorf("mirrored: got %q, want the lines of %q", got.Text, tt.want)
					}
					continue
				}
				if string(got.Text) != tt.want {
					t.Errorf("mirrored %v:\n got %q\nwant %q", mirrored, got.Text, tt.want)
				}
			}
		})
	}
}

func TestIndexEntryBothChanged(t *testing.T) {
	got := MergeTexts("MEMORY.md", []byte("- [A](a.md) — a\n"), true, []byte("- [A](a.md) — ours\n"), []byte("- [A](a.md) — theirs\n"))
	if want := "- [A](a.md) — theirs\n"; string(got.Text) != want {
		t.Errorf("got %q, want %q", got.Text, want)
	}
	if !slices.Equal(got.Lost, []string{"- [A](a.md) — ours"}) {
		t.Errorf("lost %q", got.Lost)
	}
}

func sortedLines(s string) string {
	lines := strings.SplitAfter(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// drawText draws short texts over few lines, and edits of a given one.
func drawText(t *rapid.T, label string) []byte {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "", "f"}), 0, 8).Draw(t, label)
	end := rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(t, label+" ends")
	text := strings.Join(lines, end)
	if rapid.Bool().Draw(t, label+" closed") && text != "" {
		text += end
	}
	return []byte(text)
}

func edit(t *rapid.T, label string, text []byte) []byte {
	lines := strings.SplitAfter(string(text), "\n")
	for i := range rapid.IntRange(0, 3).Draw(t, label+" edits") {
		at := rapid.IntRange(0, len(lines)).Draw(t, label+" at")
		switch rapid.IntRange(0, 2).Draw(t, label+" how") {
		case 0:
			lines = slices.Insert(lines, at, fmt.Sprintf("%s %d\n", label, i))
		case 1:
			if at < len(lines) {
				lines = slices.Delete(lines, at, at+1)
			}
		case 2:
			if at < len(lines) {
				lines[at] = fmt.Sprintf("%s changed %d\n", label, i)
			}
		}
	}
	return []byte(strings.Join(lines, ""))
}

func TestMergeLaws(t *testing.T) {
	for _, path := range []memory.Path{"project_x.md", "MEMORY.md"} {
		t.Run(string(path), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				base := drawText(t, "base")
				if memory.IsIndex(path) {
					base = drawIndex(t, "base")
				}
				if rapid.Bool().Draw(t, "frontmatter") {
					base = append([]byte("---\nname: n\nmetadata:\n  modified: 2026-01-01\n---\n"), base...)
				}
				local, remote := edit(t, "local", base), edit(t, "remote", base)
				checkMergeLaws(t, path, base, local, remote)
			})
		})
	}
}

type failer interface {
	Fatalf(format string, args ...any)
}

func checkMergeLaws(t failer, path memory.Path, base, local, remote []byte) {
	merge := func(l, r []byte) Merged { return MergeTexts(path, base, true, l, r) }
	if m := merge(local, local); !m.OK || !bytes.Equal(m.Text, local) {
		t.Fatalf("equal sides %q: %q", local, m.Text)
	}
	if m := merge(base, remote); !m.OK || !bytes.Equal(m.Text, remote) {
		t.Fatalf("local unchanged, remote %q: %q", remote, m.Text)
	}
	if m := merge(local, base); !m.OK || !bytes.Equal(m.Text, local) {
		t.Fatalf("remote unchanged, local %q: %q", local, m.Text)
	}
	m, mirrored := merge(local, remote), merge(remote, local)
	if m.OK != mirrored.OK {
		t.Fatalf("symmetry: %v and %v", m.OK, mirrored.OK)
	}
	if memory.IsIndex(path) {
		if !m.OK {
			t.Fatalf("an index made a conflict")
		}
	} else if !bytes.Equal(m.Text, mirrored.Text) {
		t.Fatalf("symmetry:\n%q\n%q", m.Text, mirrored.Text)
	}
	if !m.OK {
		return
	}
	// What one side added is in the result; of an index it may be among the lost lines.
	kept := m.Text
	for _, l := range m.Lost {
		kept = append(append(kept[:len(kept):len(kept)], '\n'), l...)
	}
	for _, side := range [][]byte{local, remote} {
		for line := range bytes.Lines(side) {
			line = bytes.TrimRight(line, "\r\n")
			if !bytes.Contains(base, line) && !bytes.Contains(kept, line) {
				t.Fatalf("line %q is lost:\nbase   %q\nlocal  %q\nremote %q\nmerged %q", line, base, local, remote, m.Text)
			}
		}
	}
	// Merging the result again changes nothing or is a conflict, never a third text.
	// Where lines repeat, the comparison may pair others than before; that is why the
	// syncer notes its intent before it writes a merged text.
	if again := merge(m.Text, remote); !repeatsLines(base) && again.OK && !memory.IsIndex(path) && !bytes.Equal(again.Text, m.Text) {
		t.Fatalf("merged again:\nbase   %q\nremote %q\nmerged %q\nagain  %q", base, remote, m.Text, again.Text)
	}
}

func drawIndex(t *rapid.T, label string) []byte {
	var b strings.Builder
	for range rapid.IntRange(0, 6).Draw(t, label+" lines") {
		switch rapid.IntRange(0, 3).Draw(t, label+" line") {
		case 0:
			b.WriteString(rapid.SampledFrom([]string{"# Team\n", "\n", "words\n", "<!-- note -->\n"}).Draw(t, label+" prose"))
		default:
			b.WriteString(drawEntry(t, label))
		}
	}
	return []byte(b.String())
}

func drawEntry(t *rapid.T, label string) string {
	file := rapid.SampledFrom([]string{"a.md", "b.md", "c.md", "sub/d.md", "secret.md", "../user_me.md"}).Draw(t, label+" file")
	hook := rapid.SampledFrom([]string{"one", "two", "three"}).Draw(t, label+" hook")
	return "- [T](" + file + ") — " + hook + "\n"
}

// Lines that stay on the machine neither leave it nor get lost nor, once merged, make
// the index look edited.
func TestPrivateIndexLines(t *testing.T) {
	private := func(p memory.Path) bool { return p == "secret.md" }
	rapid.Check(t, func(t *rapid.T) {
		agreed, local, remote := drawIndex(t, "agreed"), drawIndex(t, "local"), drawIndex(t, "remote")
		shared := ShareIndex("MEMORY.md", local, agreed, private)
		known := map[string]bool{}
		for _, l := range indexLines(agreed) {
			known[l.raw] = true
		}
		for _, l := range indexLines(shared) {
			if l.entry && (l.key == "secret.md" || strings.HasPrefix(l.key, "../")) && !known[l.raw] {
				t.Fatalf("%q leaves the machine", l.raw)
			}
		}
		merged := MergeTexts("MEMORY.md", agreed, true, shared, remote).Text
		onDisk, _ := KeepPrivate("MEMORY.md", local, shared, merged)
		was := lineSet(shared)
		for _, l := range indexLines(local) {
			if l.entry && private(memory.Path(l.key)) && !was[l.raw] && !strings.Contains(string(onDisk), l.raw) &&
				!strings.Contains(string(remote), "("+l.key+")") {
				t.Fatalf("private line %q is lost:\nlocal  %q\nmerged %q\ndisk   %q", l.raw, local, merged, onDisk)
			}
		}
		again := ShareIndex("MEMORY.md", onDisk, merged, private)
		if sortedLines(string(again)) != sortedLines(string(merged)) {
			t.Fatalf("looks edited:\nlocal  %q\nshared %q\nmerged %q\ndisk   %q\nagain  %q", local, shared, merged, onDisk, again)
		}
	})
}

func lineSet(text []byte) map[string]bool {
	m := map[string]bool{}
	for line := range bytes.Lines(text) {
		m[string(line)] = true
	}
	return m
}

// Texts far apart are given up on, quickly, instead of being compared at any price.
func TestMergeOfHugeTextsIsBounded(t *testing.T) {
	text := func(word string) []byte {
		var b bytes.Buffer
		for i := range 60_000 {
			fmt.Fprintf(&b, "%s%d\n", word, i)
		}
		return b.Bytes()
	}
	if m := MergeTexts("x.md", text("a"), true, text("b"), text("c")); m.OK {
		t.Error("three unlike texts were merged")
	}
	// Large, but near each other: merged.
	base := text("a")
	local := append([]byte("first\n"), base...)
	remote := append(bytes.Clone(base), "last\n"...)
	want := append(bytes.Clone(local), "last\n"...)
	if m := MergeTexts("x.md", base, true, local, remote); !m.OK || !bytes.Equal(m.Text, want) {
		t.Error("a line at each end of a large text was not merged")
	}
}

func FuzzMergeTexts(f *testing.F) {
	f.Add("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n")
	f.Add("---\nname: n\n---\nx\n", "---\nname: m\n---\nx\n", "---\nname: n\n---\ny\n")
	f.Add("- [A](a.md) — a\n", "", "- [A](a.md) — b\n")
	f.Add("\ufeffa\r\nb", "a\rb", "a\n\r\nb\n")
	f.Fuzz(func(t *testing.T, base, local, remote string) {
		for _, path := range []memory.Path{"x.md", "MEMORY.md"} {
			MergeTexts(path, nil, false, []byte(local), []byte(remote))
			m := MergeTexts(path, []byte(base), true, []byte(local), []byte(remote))
			if memory.IsIndex(path) && !m.OK {
				t.Error("an index made a conflict")
			}
			if m := MergeTexts(path, []byte(base), true, []byte(local), []byte(base)); string(m.Text) != local {
				t.Errorf("local alone changed: %q", m.Text)
			}
		}
	})
}

func repeatsLines(text []byte) bool {
	seen := map[string]bool{}
	for line := range bytes.Lines(text) {
		line := string(bytes.TrimRight(line, "\r\n"))
		if seen[line] {
			return true
		}
		seen[line] = true
	}
	return false
}
