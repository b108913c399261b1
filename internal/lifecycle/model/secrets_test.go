package model_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
)

// finder knows "hunter2" and keys in blocks, and has no verdict on "unjudgeable".
func finder(text string) ([]model.Secret, error) {
	if strings.Contains(text, "unjudgeable") {
		return nil, errors.New("too large")
	}
	var out []model.Secret
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.Contains(line, "hunter2"):
			out = append(out, model.Secret{Line: i + 1, Rule: "password"})
		case strings.Contains(line, "-----BEGIN"):
			out = append(out, model.Secret{Line: i + 1, Rule: "private-key"})
		}
	}
	return out, nil
}

func TestMasked(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "",
		"plain\r\ntext\n":                  "plain\r\ntext\n",
		"a\nis hunter2\nb":                 "a\n[secret left out: password]\nb",
		"hun\x00ter2":                      "[secret left out: password]",
		"-----BEGIN K\nAAA\n-----END K\nb": strings.Repeat("[secret left out: private-key]\n", 3) + "b",
		"-----BEGIN K\nAAA":                "[secret left out: private-key]\n[secret left out: private-key]",
		"one\nunjudgeable":                 "[secret left out: not judged]",
		"bad \xff bytes":                   "bad \ufffd bytes",
	} {
		got := model.Secrets(finder).Masked(text)
		if got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if again := model.Secrets(finder).Masked(got); again != got {
			t.Errorf("%q becomes %q the second time", got, again)
		}
		if model.Unjudged(got) != strings.Contains(text, "unjudgeable") {
			t.Errorf("%q: judged?", got)
		}
		if none := model.Secrets(nil).Masked(text); none != text {
			t.Errorf("nil changes %q to %q", text, none)
		}
	}
	// A secret may go on in the lines below, and a key that ends where it begins takes nothing along.
	over := model.Secrets(func(text string) ([]model.Secret, error) {
		if strings.HasPrefix(text, "to") {
			return []model.Secret{{Line: 1, End: 2, Rule: "cut"}}, nil
		}
		return finder(text)
	})
	if got := over.Masked("to\nken\nand more"); got != "[secret left out: cut]\n[secret left out: cut]\nand more" {
		t.Errorf("%q", got)
	}
	if got := over.Masked("-----BEGIN K AAA -----END K\nand more"); got != "[secret left out: private-key]\nand more" {
		t.Errorf("%q", got)
	}
	// Who finds something in every text, or lines that are not there, has no verdict either.
	for _, s := range []model.Secrets{
		func(string) ([]model.Secret, error) { return []model.Secret{{Line: 1, Rule: "any"}}, nil },
		func(string) ([]model.Secret, error) { return []model.Secret{{Line: 7, Rule: "any"}}, nil },
		func(string) ([]model.Secret, error) { return []model.Secret{{Line: 1, End: 2, Rule: "any"}}, nil },
	} {
		if got := s.Masked("text"); !model.Unjudged(got) {
			t.Errorf("%q", got)
		}
	}
}

func TestMarks(t *testing.T) {
	mask := model.Secrets(finder).Masked
	for text, only := range map[string]bool{mask("hunter2"): true, mask("hunter2\n\n hunter2\n"): true, mask("hunter2\nand more"): false, "": false, "text": false, mask("unjudgeable"): true} {
		if model.OnlyMarks(text) != only {
			t.Errorf("only marks in %q: %v", text, !only)
		}
	}
	if m := mask("hunter2"); !model.IsMark(m) || !model.HoldsMark("x "+m+" y") || model.IsMark("x "+m) || model.HoldsMark("left out") {
		t.Error("a mark is not known for one")
	}
	if got := model.Secrets(finder).Line("a\n  hunter2 b", 100); got != "[secret left out: password]" {
		t.Errorf("%q", got)
	}
	if got := model.Secrets(finder).Line("one two\nthree", 6); got != "one t…" {
		t.Errorf("%q", got)
	}
	if got := model.Indented("a\n- Person: b\nc\n"); got != "a\n  - Person: b\n  c\n" {
		t.Errorf("%q", got)
	}
}

// TestCutsLeaveNoHalves: what is cut before it is masked ends and begins where no half of
// a token is left.
func TestCutsLeaveNoHalves(t *testing.T) {
	const text = "the key is sk-0123456789abcdef and more"
	for n := range len(text) + 1 {
		got := model.Head(text, n)
		if !strings.HasPrefix(text, got) || strings.Contains(got, "sk-") && !strings.Contains(got, "cdef") {
			t.Errorf("the first %d bytes become %q", n, got)
		}
	}
	if got := model.Head("日本語日本語", 8); got != "日本" {
		t.Errorf("%q", got)
	}
	const key = "pre\n-----BEGIN K\nAAAAA\nBBBBB\nCCCCC\n-----END K\npost\nlast\n"
	for n := range len(key) {
		got := model.Tail(key, n)
		if !strings.HasSuffix(key, got) || len(got) > n || strings.ContainsAny(got, "ABC") && !strings.Contains(got, "-----BEGIN") {
			t.Errorf("the last %d bytes become %q", n, got)
		}
	}
	// A key whose end is nowhere: what goes on below it in sentences stays, and so does another key's beginning.
	for _, after := range []string{"here is no end\n", "", "-----BEGIN L\nzz\n-----END L\n"} {
		open := "pre\n-----BEGIN K\nAAAAA\n> BBBBB\n 3\tCCCCC\n\nAAAAA==\n" + after
		for n := range len(open) - len("pre\n-----BEGIN K\n") {
			if got := model.Tail(open, n); strings.ContainsAny(got, "AC") || !strings.HasSuffix(after, got) || n > len(after) && got != after {
				t.Errorf("the last %d bytes of %q become %q", n, open, got)
			}
		}
	}
	if got := model.Tail("-----BEGIN K\nA\n-----END K\nword\nword\n", 11); got != "word\nword\n" {
		t.Errorf("%q", got)
	}
	if got := model.Tail(key, len(key)); got != key {
		t.Errorf("%q", got)
	}
}
