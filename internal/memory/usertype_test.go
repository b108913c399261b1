package memory

import (
	"strings"
	"testing"
	"time"
)

// TestUserTypeInAnySpelling: what a person means as `type: user` stays private, also
// where a parser would read another thing or nothing.
func TestUserTypeInAnySpelling(t *testing.T) {
	fenced := func(s string) string { return "---\nname: n\n" + s + "\n---\nBody\n" }
	long := strings.Repeat("k: v\n", 80)
	for name, in := range map[string]string{
		"capital key":             fenced("Type: User"),
		"capitals":                fenced("TYPE: user"),
		"flow list":               fenced("type: [user]"),
		"flow list of two":        fenced("type: [user, project]"),
		"flow list over lines":    fenced("type: [\n  project,\n  user\n]"),
		"plain list of two":       fenced("type: project, user"),
		"block list":              fenced("type:\n  - user"),
		"block list at the key":   fenced("type:\n- project\n- \"User\""),
		"mapping":                 fenced("type: {user: true}"),
		"nested mapping":          fenced("type:\n  user: true"),
		"block scalar":            fenced("type: >-\n  user"),
		"value in the next line":  fenced("type:\n  user"),
		"alias":                   fenced("x: &a user\ntype: *a"),
		"tag and comment":         fenced("type: !!str 'user' # mine"),
		"explicit key":            fenced("? type\n: user"),
		"Metadata":                fenced("Metadata:\n  type: user"),
		"meta":                    fenced("meta:\n  type: user"),
		"meta, flow":              fenced("meta: {node_type: memory, Type: 'User'}"),
		"dotted":                  fenced("metadata.type: user"),
		"deeper":                  fenced("metadata:\n  x:\n    type: user"),
		"full-width value":        fenced("type: ｕｓｅｒ"),
		"full-width key":          fenced("ｔｙｐｅ: user"),
		"full-width colon":        fenced("type：user"),
		"zero-width in the value": fenced("type: us\u200ber"),
		"zero-width in the key":   fenced("ty\u200dpe: user"),
		"no-break space":          fenced("type:\u00a0user"),
		"no-break space before":   fenced("\u00a0type: user\u00a0"),
		"no space":                fenced("type:user"),

		"blank line before":      "\n" + fenced("type: user"),
		"space before":           " " + fenced("type: user"),
		"form feed before":       "\f" + fenced("type: user"),
		"comment before":         "<!-- x -->\n" + fenced("type: user"),
		"comment over two lines": "<!-- x\n y -->" + fenced("type: user"),
		"two byte order marks":   "\ufeff\ufeff" + fenced("type: user"),
		"directive before":       "%YAML 1.2\n" + fenced("type: user"),
		"all before":             "\ufeff\n \n%YAML 1.2\n<!-- x -->\n" + fenced("type: user"),
		"CR alone":               strings.ReplaceAll(fenced("type: user"), "\n", "\r"),
		"never closed, far down": "---\n" + long + "type: user\n",
		"four dashes":            "----\ntype: user\n----\nBody\n",
		"fence twice":            "---\n---\ntype: user\n---\nBody\n",
		"TOML":                   "+++\nname = \"n\"\ntype = \"user\"\n+++\nBody\n",
		"no fence":               "type: user\nname: n\n\nBody\n",
		"no fence, second":       "name: n\nType: User\n\nBody\n",
		"only a closing fence":   "name: n\ntype: user\n---\nBody\n",
		"mapping at the fence":   "--- {type: user}\n---\nBody\n",

		"plural":                 fenced("type: users"),
		"plural, capital, blank": fenced("type: Users "),
		"plural key":             fenced("types: [user]"),
		"personal":               fenced("type: personal"),
		"private":                fenced("metadata:\n  type: Private"),
		"personal, no fence":     "type: personal\n\nBody\n",
		"private, broken head":   "---\nd: a: b\ntype: private\n---\nBody\n",
		"Cyrillic, broken head":  "---\nd: a: b\ntype: us\u0435r\n---\nBody\n",
		"longer key":             fenced("memory_type: user"),
		"longer key, camel":      fenced("memoryType: user"),
		"longer key, dashes":     fenced("metadata:\n  memory-type: user"),
		"longer key beside type": fenced("type: project\nmemory_type: user"),
		"kind, no type":          fenced("kind: user"),
		"kind, unknown type":     fenced("type: note\nkind: user"),
		"Cyrillic e":             fenced("type: us\u0435r"),
		"Cyrillic throughout":    fenced("type: \u0446\u0455\u0435\u0433"),
		"Cyrillic key":           fenced("t\u0443pe: user"),
		"Greek upsilon":          fenced("type: \u03c5ser"),
		"Greek capitals":         fenced("\u03a4\u03a5\u03a1\u0395: user"),
		"Armenian":               fenced("type: \u057dser"),
		"small capitals":         fenced("type: \u1d1c\ua731\u1d07\u0280"),
		"accents":                fenced("type: \u00fcs\u00e9r"),
		"accent of its own":      fenced("type: u\u0301ser"),
		"long s":                 fenced("type: u\u017fer"),
		"letters in circles":     fenced("type: \u24e4\u24e2\u24d4\u24e1"),
		"personal, Cyrillic":     fenced("type: \u0440\u0435rs\u043en\u0430l"),

		"second block":             "---\nname: n\ntype: project\n---\n---\ntype: user\n---\nBody\n",
		"second block, no body":    "---\ntype: project\n---\n\n---\nname: me\ntype: user\n---\n",
		"second block after none":  "---\nname: n\n---\n\n---\nmetadata:\n  type: user\n---\nBody\n",
		"second block at once":     "---\nname: n\ntype: feedback\n---\n---\ntype: users\n---\nBody\n",
		"second block, comment":    "---\ntype: feedback\n---\n<!-- pasted -->\n---\ntype: user\n---\nBody\n",
		"second block, TOML":       "---\ntype: feedback\n---\n+++\ntype = \"user\"\n+++\nBody\n",
		"second block, bare first": "name: n\n---\ntype: user\n---\nBody\n",
		"third block":              "---\ntype: feedback\n---\n---\nname: n\n---\n---\ntype: user\n---\nBody\n",
		"second, first broken":     "---\nd: a: b\n---\n---\ntype: user\n---\nBody\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, content := range []string{in, strings.ReplaceAll(in, "\n", "\r\n")} {
				if !refusesUser(t, "a.md", content) {
					t.Errorf("passes: %q", content)
				}
			}
		})
	}
}

func TestUserTypeByName(t *testing.T) {
	for path, want := range map[string]bool{
		"User_me.md": true, "USER_x.md": true, "user.md": true, "d/User.md": true, "ｕｓｅｒ_x.md": true,
		"user-me.md": true, "user-guide.md": true, "d/user_me.md": true, "d/e/User-Me.md": true, "us\u0435r_me.md": true,
		"users.md": false, "userland.md": false, "user.guide.md": false, "user_x/in.md": false, "superuser_a.md": false,
	} {
		for _, content := range []string{"text\n", "---\nname: n\n---\n", "---\nd: a: b\n---\n"} {
			if got := refusesUser(t, path, content); got != want {
				t.Errorf("%s with %q: refused %t, want %t", path, content, got, want)
			}
		}
		if refusesUser(t, path, "---\ntype: project\n---\n") {
			t.Errorf("%s with a type of its own is refused", path)
		}
	}
}

// TestTalkOfUsersIsShared: the strict reading stops at the head, and at the type.
func TestTalkOfUsersIsShared(t *testing.T) {
	head := "---\nname: n\ndescription: d\ntype: feedback\n---\n"
	for name, in := range map[string]string{
		"code fence":          head + "```yaml\n---\ntype: user\n---\n```\n",
		"example after text":  head + "As in:\n---\ntype: user\n---\n",
		"text between rules":  head + "---\nA memory of this kind stays.\ntype: user\n---\n",
		"rule, never closed":  head + "---\ntype: user\n",
		"second block, other": head + "---\ntype: project\nuser: me\n---\ntype: user\n",
		"kind beside a type":  "---\ntype: feedback\nkind: user\n---\n",
		"kind of another":     "---\nname: n\nkind: user-guide\n---\n",
		"private network":     "---\ntype: reference\nnetwork: private\nvisibility: personal\n---\n",
		"longer words":        "---\ntype: personalised\n---\n",
		"Russian":             "---\nname: пользователь\ndescription: тип user не делится\ntype: feedback\n---\n",
		"prose":               head + "\nA memory of type: user is private.\ntype: user\n",
		"description":         "---\ndescription: what the user wants\ntype: feedback\n---\n",
		"quoted description":  "---\ndescription: \"why type: user is never shared\"\ntype: feedback\n---\n",
		"folded description":  "---\ndescription: >\n  how it looks:\n  type: user\ntype: feedback\n---\n",
		"name":                "---\nname: user\ntype: feedback\nmetadata:\n  node_type: memory\n---\n",
		"other keys":          "---\ntype: feedback\nuser_type: user\nnode_type: user\nuser: me\n---\n",
		"a list of others":    "---\ntype: feedback\ntags: [user, login]\n---\n",
		"a block list below":  "---\ntype: feedback\ntags:\n- user\n---\n",
		"words in the type":   "---\ntype: user story\n---\n",
		"no head, prose":      "We met.\ntype: user\n",
		"no head, a title":    "# Types\n\ntype: user\n",
		"no head, a field":    "Note: the user decides.\n\ntype: user\n",
		"no head, code first": "```yaml\ntype: user\n```\n",
		"no head, other type": "type: project\nname: user\n",
		"Chinese":             "---\nname: 用户\ndescription: 类型 user 不共享\ntype: feedback\n---\ntype: user\n",
		"TOML":                "+++\ntype = \"feedback\"\ntitle = \"user\"\n+++\ntype = \"user\"\n",
		"four dashes":         "----\ntype: feedback\n----\n\ntype: user\n",
		"CR alone":            strings.ReplaceAll(head+"type: user\n", "\n", "\r"),
	} {
		t.Run(name, func(t *testing.T) {
			if refusesUser(t, "feedback_a.md", in) {
				t.Errorf("refused: %q", in)
			}
		})
	}
}

// TestLooseHeadStaysLinear: no head, however it is made, buys much more work than its
// size. Looking each alias up in all lines would take minutes here.
func TestLooseHeadStaysLinear(t *testing.T) {
	for _, unit := range []string{"type: *a\n", "type:\n", "---\n", "<!--\n", " <!---->\n", "＜!--\n", "type: [\n", "{type:", "x: |\n", "\r"} {
		for _, fence := range []string{"---\n", "----\n", ""} {
			content := fence + strings.Repeat(unit, (MaxMemoryBytes-8)/len(unit))
			start := time.Now()
			refusesUser(t, "a.md", content)
			if took := time.Since(start); took > time.Minute {
				t.Errorf("%q after %q took %v", unit, fence, took)
			}
		}
	}
}

// refusesUser reports whether a memory is refused as one of type user.
func refusesUser(t *testing.T, path, content string) bool {
	t.Helper()
	for _, v := range CheckContent(Path(path), []byte(content)).Violations {
		if v.Rule == RuleTypeUser {
			return true
		}
	}
	return false
}
