package memory

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSlug(t *testing.T) {
	for in, want := range map[string]string{
		"Testing conventions":           "testing_conventions",
		"单元测试 规范":                       "单元测试_规范",
		"release-freeze":                "release-freeze",
		"release - freeze":              "release_freeze",
		"  --Don't panic!  ":            "dont_panic",
		"API v1.30":                     "api_v1_30",
		"cafe\u0301":                    "café",
		"हिन्दी":                        "हिन्दी",
		"../../etc/passwd":              "etc_passwd",
		"a\u202eb\u200bc":               "a_b_c",
		"ㅤ":                             "", // the Hangul filler is a letter nobody sees
		"…!?":                           "",
		"İstanbul":                      "istanbul",
		"bad\xffbytes":                  "bad_bytes",
		strings.Repeat("word ", 40):     strings.TrimSuffix(strings.Repeat("word_", 24), "_"),
		strings.Repeat("字", 60):         strings.Repeat("字", 40),
		"x " + strings.Repeat("y", 200): "x_" + strings.Repeat("y", 118),
	} {
		if got := Slug(in); got != want {
			t.Errorf("Slug(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFileName(t *testing.T) {
	if got, err := FileName(TypeFeedback, "Unit tests"); err != nil || got != "feedback_unit_tests.md" {
		t.Errorf("FileName = %q, %v", got, err)
	}
	for _, tc := range []struct {
		t    Type
		name string
	}{{"note", "x"}, {"", "x"}, {TypeUser, "!!"}, {TypeUser, ""}} {
		if got, err := FileName(tc.t, tc.name); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("FileName(%q, %q) = %q, %v", tc.t, tc.name, got, err)
		}
	}
}

// TestFileNameIsAPath: whatever the name, the file name is a path of one segment from
// which the type can be read again, and a slug is its own slug.
func TestFileNameIsAPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(AllTypes()).Draw(t, "type")
		name := rapid.String().Draw(t, "name")
		file, err := FileName(typ, name)
		if err != nil {
			return
		}
		p, err := ParsePath(file)
		if err != nil {
			t.Fatalf("FileName(%q) = %q: %v", name, file, err)
		}
		if got, ok := TypeOf(p, Frontmatter{}); !ok || got != typ || p.Dir() != "" {
			t.Fatalf("%q: type %q, directory %q", file, got, p.Dir())
		}
		if slug := Slug(name); Slug(slug) != slug {
			t.Fatalf("Slug(%q) = %q, again %q", name, slug, Slug(slug))
		}
	})
}
