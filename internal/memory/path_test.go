package memory

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// pathRule returns the rule that ParsePath names for s; "" when it accepts s.
func pathRule(t testing.TB, s string) (rule, message string) {
	t.Helper()
	p, err := ParsePath(s)
	if err == nil {
		if string(p) != s {
			t.Fatalf("ParsePath(%q) = %q: an accepted text is its own path", s, p)
		}
		return "", ""
	}
	var e *Error
	if !errors.As(err, &e) || e.Reason != ReasonInvalidPath || len(e.Violations) != 1 {
		t.Fatalf("ParsePath(%q): %#v, want one violation of %s", s, err, ReasonInvalidPath)
	}
	v := e.Violations[0]
	if len(v.Path) > 256 || !utf8.ValidString(v.Path) || strings.ContainsAny(v.Path, "\x00\x1b\n") {
		t.Fatalf("ParsePath(%q): violation path %q", s, v.Path)
	}
	return v.Rule, v.Message
}

func TestParsePathRefuses(t *testing.T) {
	han := strings.Repeat("记", 84) // 252 bytes
	for _, tc := range []struct {
		in, rule, at string
	}{
		{"", RulePathEmpty, "byte 0:"},
		{"a\x00.md", RulePathNUL, "byte 1:"},
		{"/etc/x.md", RulePathAbsolute, "byte 0:"},
		{"//host/x.md", RulePathAbsolute, "byte 0:"},
		{`\\host\x.md`, RulePathAbsolute, "byte 0:"},
		{`\x.md`, RulePathAbsolute, "byte 0:"},
		{"C:x.md", RulePathAbsolute, "byte 0:"},
		{"c:/x.md", RulePathAbsolute, "byte 0:"},
		{`a\b.md`, RulePathBackslash, "byte 1:"},
		{"a/b:c.md", RulePathColon, "byte 3:"},
		{"x.md:stream.md", RulePathColon, "byte 4:"},
		{"../x.md", RulePathDotSegment, "byte 0:"},
		{"a/../x.md", RulePathDotSegment, "byte 2:"},
		{"./x.md", RulePathDotSegment, "byte 0:"},
		{"a/.", RulePathDotSegment, "byte 2:"},
		{"..", RulePathDotSegment, "byte 0:"},
		{"a//b.md", RulePathEmptySegment, "byte 2:"},
		{"a.md/", RulePathEmptySegment, "byte 5:"},
		{".hidden.md", RulePathHidden, "byte 0:"},
		{"a/.git/x.md", RulePathHidden, "byte 2:"},
		{"...md", RulePathHidden, "byte 0:"},
		{".md", RulePathHidden, "byte 0:"},
		{"a./x.md", RulePathTrailing, "byte 1:"},
		{"a /x.md", RulePathTrailing, "byte 1:"},
		{"x.md.", RulePathTrailing, "byte 4:"},
		{"x.md ", RulePathTrailing, "byte 4:"},
		{"a\u3000/x.md", RulePathTrailing, "byte 3:"},
		{"CON.md", RulePathReserved, "byte 0:"},
		{"nul.md", RulePathReserved, "byte 0:"},
		{"com1.foo.md", RulePathReserved, "byte 0:"},
		{"a/Aux/x.md", RulePathReserved, "byte 2:"},
		{"lpt9 .md", RulePathReserved, "byte 0:"},
		{"COM¹.md", RulePathReserved, "byte 0:"},
		{"conin$.md", RulePathReserved, "byte 0:"},
		{"a\n.md", RulePathControl, "byte 1:"},
		{"a\x7f.md", RulePathControl, "byte 1:"},
		{"a\u0085.md", RulePathControl, "byte 1:"},
		{"a\u202edm.md", RulePathControl, "byte 1:"},
		{"a\u2066b.md", RulePathControl, "byte 1:"},
		{"a\u200bb.md", RulePathControl, "byte 1:"},
		{"\ufeffa.md", RulePathControl, "byte 0:"},
		{"a\u00adb.md", RulePathControl, "byte 1:"},
		{"a\u2028b.md", RulePathControl, "byte 1:"},
		{"a\u3164b.md", RulePathControl, "byte 1:"},
		{"a\U000e0041.md", RulePathControl, "byte 1:"},
		{"a\xff.md", RulePathUTF8, "byte 1:"},
		{"a\xc0\xafb.md", RulePathUTF8, "byte 1:"},
		{"cafe\u0301.md", RulePathNotNFC, "byte 3:"},
		{"\u212b.md", RulePathNotNFC, "byte 0:"},
		{"．．/x.md", RulePathCompatibility, "byte 0:"},
		{"a/．/x.md", RulePathCompatibility, "byte 2:"},
		{"a/\u2025/x.md", RulePathCompatibility, "byte 2:"},
		{"a／b.md", RulePathCompatibility, "byte 1:"},
		{"a＼b.md", RulePathCompatibility, "byte 1:"},
		{"a\ufe68b.md", RulePathCompatibility, "byte 1:"},
		{"℅.md", RulePathCompatibility, "byte 0:"},
		{"%2e%2e/x.md", RulePathPercent, "byte 0:"},
		{"a/%2E/x.md", RulePathPercent, "byte 2:"},
		{"a%2Fb.md", RulePathPercent, "byte 1:"},
		{"a%5cb.md", RulePathPercent, "byte 1:"},
		{"a%00b.md", RulePathPercent, "byte 1:"},
		{"%252e%252e%252f.md", RulePathPercent, "byte 0:"},
		{"%25252fx.md", RulePathPercent, "byte 0:"},
		{"%" + strings.Repeat("25", 60) + "41.md", RulePathPercent, "byte 0:"},
		{"%c0%af.md", RulePathPercent, "byte 0:"},
		{"%e0%80%af.md", RulePathPercent, "byte 0:"},
		{"a%ef%bc%8fb.md", RulePathPercent, "byte 1:"},
		{"a％２ｆb.md", RulePathPercent, "byte 1:"},
		{"％2e％2e/x.md", RulePathPercent, "byte 0:"},
		{"notes.txt", RulePathExtension, "byte 9:"},
		{"notes.MD", RulePathExtension, "byte 8:"},
		{"notes", RulePathExtension, "byte 5:"},
		{han + "a.md", RulePathSegmentTooLong, "byte 0:"},
		{"a/" + strings.Repeat("d", 256) + "/x.md", RulePathSegmentTooLong, "byte 2:"},
		{strings.Repeat("d/", 510) + "xx.md", RulePathTooLong, "byte 1024:"},
	} {
		rule, msg := pathRule(t, tc.in)
		if rule != tc.rule || !strings.Contains(msg, tc.at) {
			t.Errorf("ParsePath(%q): rule %q (%s), want %q at %s", tc.in, rule, msg, tc.rule, tc.at)
		}
	}
}

func TestParsePathAccepts(t *testing.T) {
	for _, in := range []string{
		"a.md",
		"MEMORY.md",
		"feedback_testing.md",
		"a/b/c.md",
		"项目_规范：命名.md", // a full-width colon is no colon
		"等等……再说.md",   // NFKC makes dots of it, but no whole segment
		"……/x.md",     // six dots are a name
		"café.md",
		"日本語/メモ.md",
		"100%.md",
		"50%25.md", // decodes to a plain percent sign
		"a%20b.md",
		"a%zz.md",
		"%2e%2ea.md", // ..a is no dot segment
		"console.md",
		"com10.md",
		"community.md",
		"❤\ufe0f.md", // as keyboards write it
		"a b.md",
		"a..b.md",
		"-rf.md",
		strings.Repeat("记", 84) + ".md", // 255 bytes
		strings.Repeat("d/", 510) + "x.md",
	} {
		if rule, msg := pathRule(t, in); rule != "" {
			t.Errorf("ParsePath(%q): %s (%s), want it accepted", in, rule, msg)
		}
	}
}

func TestInvalidPathErrorHoldsNoControlCharacters(t *testing.T) {
	_, err := ParsePath("a\x1b[31m\u202e.md")
	if text := err.Error(); strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("error %q passes the characters on", text)
	}
	if !errors.Is(err, ErrInvalidPath) {
		t.Errorf("%v is no ErrInvalidPath", err)
	}
}

func TestNormalizePath(t *testing.T) {
	if got := NormalizePath("cafe\u0301.md"); got != "café.md" {
		t.Errorf("NormalizePath = %q", got)
	}
	if _, err := ParsePath(NormalizePath("cafe\u0301.md")); err != nil {
		t.Error(err)
	}
}

func TestPathParts(t *testing.T) {
	p := Path("a/b/MEMORY.md")
	if p.Base() != "MEMORY.md" || p.Dir() != "a/b" || len(p.Segments()) != 3 || !IsIndex(p) {
		t.Errorf("%q: base %q, dir %q, segments %q, index %v", p, p.Base(), p.Dir(), p.Segments(), IsIndex(p))
	}
	if Path("x.md").Dir() != "" || IsIndex("memory.md") || IsIndex("xMEMORY.md") {
		t.Error("a file at the top, or an index misspelled")
	}
}

func TestFoldKey(t *testing.T) {
	for _, pair := range [][2]Path{
		{"Note.md", "note.MD"},
		{"Straße.md", "STRASSE.md"},
		{"ΣΑΣ.md", "σας.md"},
		{"É.md", "é.md"},
		{"ᾳ.md", "ΑΙ.md"},
		{"ᾳ\u0323.md", "Α\u0323Ι.md"}, // folded as it stands, the dot would move below the iota
		{"Ꮟ.md", "ꮟ.md"},
		{"Ᏸ.md", "ᏸ.md"},
	} {
		if pair[0].FoldKey() != pair[1].FoldKey() {
			t.Errorf("%q and %q: keys %q and %q", pair[0], pair[1], pair[0].FoldKey(), pair[1].FoldKey())
		}
	}
	if Path("a.md").FoldKey() == Path("á.md").FoldKey() {
		t.Error("an accent is no case")
	}
	want := []string{"a", "a/b", "a/b/c.md"}
	got := Path("A/b/C.md").FoldPrefixes()
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("FoldPrefixes = %q, want %q", got, want)
	}
}

// TestFoldKeyIsOfSegments: the collision index folds segment by segment.
func TestFoldKeyIsOfSegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Path(norm.NFC.String(rapid.String().Draw(t, "path")))
		var parts []string
		for _, s := range p.Segments() {
			parts = append(parts, foldText(s))
		}
		if got, want := p.FoldKey(), strings.Join(parts, "/"); got != want {
			t.Fatalf("%q: key %q, by segments %q", p, got, want)
		}
	})
}

func FuzzParsePath(f *testing.F) {
	for _, s := range []string{"a.md", "../x", "C:x", `a\b`, "%2e%2e%2f", "．．/x.md", "a/b/c.md", "CON.md", "……/x.md", "ᾳΑΙ.md", "a%ef%bc%8f.md", "cafe\u0301.md", "ŉ/ǰ.md"} {
		f.Add(s)
	}
	root := filepath.Join(string(filepath.Separator), "srv", "team")
	f.Fuzz(func(t *testing.T, s string) {
		key := Path(s).FoldKey()
		if utf8.ValidString(s) && Path(key).FoldKey() != key {
			t.Fatalf("FoldKey of %q: %q, folded again %q", s, key, Path(key).FoldKey())
		}
		if rule, _ := pathRule(t, s); rule != "" {
			return
		}
		if !filepath.IsLocal(filepath.FromSlash(s)) {
			t.Fatalf("%q is not local", s)
		}
		if full := filepath.Join(root, filepath.FromSlash(s)); full != root+string(filepath.Separator)+filepath.FromSlash(s) {
			t.Fatalf("%q joins to %q", s, full)
		}
		if NormalizePath(s) != s {
			t.Fatalf("%q is not in NFC", s)
		}
		if compat := norm.NFKC.String(s); strings.Count(compat, "/") != strings.Count(s, "/") || strings.ContainsAny(compat, "\\\x00") || hasDotSegment(compat) {
			t.Fatalf("%q reads %q in compatibility form", s, compat)
		}
	})
}

func BenchmarkParsePath(b *testing.B) {
	for name, s := range map[string]string{"ascii": "decisions/project_release_freeze.md", "han": "决定/项目_发布冻结.md"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParsePath(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestFoldKeyOfEveryLetter: all spellings that Unicode counts as one letter in other
// cases have one key, and a key is its own.
func TestFoldKeyOfEveryLetter(t *testing.T) {
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		next := unicode.SimpleFold(r)
		if next == r {
			continue
		}
		a, b := foldText(string(r)), foldText(string(next))
		if a != b || foldText(a) != a {
			t.Errorf("%U and %U: keys %q and %q, folded again %q", r, next, a, b, foldText(a))
		}
	}
}
