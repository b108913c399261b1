package dream_test

import (
	"strings"
	"testing"
)

// TestOneLabelMayHoldTwoFacts: of a line "X: value" the newer one takes the older one's
// place only if it is a value of the same kind; else both stay, whatever X is.
func TestOneLabelMayHoldTwoFacts(t *testing.T) {
	const shared = "Use pnpm for every package of the monorepo, never npm or yarn.\n"
	merged := func(t *testing.T, newer, older string) string {
		t.Helper()
		w := newWorld(t)
		w.write("project_a.md", dated("Packages of it", 1, shared+newer+"\n"), 1)
		w.write("project_b.md", dated("Packages of it", 90, shared+older+"\n"), 90)
		w.dreams()
		return w.read("project_a.md") + w.read("project_b.md")
	}
	both := [][2]string{
		{"Contact: Ada for access", "Contact: Bob for billing"},
		{"Storage: use pnpm", "Storage: keep a backup"},
		{"Never: npm", "Never: yarn"},
		{"Deploys: at 5", "Deploys: Friday"},
		{"Docs: docs/a.md", "Docs: Ada"},
		{"2026-03-01: moved", "2026-03-01: broken"},
		{"2026年3月1日: 搬家", "2026年3月1日: 故障"},
		{"数据库: 锁文件已提交", "数据库: 预发布环境没有加密"},
	}
	for _, label := range []string{
		"Decision", "Decided", "Rule", "Tip", "Fix", "Cause", "Problem", "Gotcha", "Contact", "Remember", "Known issue", "Never", "Caveat", "Workaround",
		"Anything", "决定", "约定", "2026-03-01",
	} {
		both = append(both, [2]string{label + ": the lockfile is checked in", label + ": staging has no TLS before the gateway"})
	}
	for _, lines := range both {
		if all := merged(t, lines[0], lines[1]); !strings.Contains(all, lines[0]) || !strings.Contains(all, lines[1]) {
			t.Errorf("of %q and %q there is\n%s", lines[0], lines[1], all)
		}
	}
	for _, lines := range [][2]string{
		{"Deploy day: Friday", "Deploy day: Wednesday"},
		{"Owner: Ada", "Owner: Bob"},
		{"Timeout: 30 seconds", "Timeout: 60 seconds"},
		{"Version: v1.4.2", "Version: v1.3"},
		{"Docs: docs/a.md", "Docs: docs/b.md"},
		{"Board: https://a.example/x", "Board: https://b.example/y"},
		{"Releases: go out every Friday at noon", "Releases: go out every Tuesday at noon"},
		{"负责人: 小王", "负责人: 小李"},
	} {
		if all := merged(t, lines[0], lines[1]); !strings.Contains(all, lines[0]) || strings.Contains(all, lines[1]) {
			t.Errorf("of %q and %q there is\n%s", lines[0], lines[1], all)
		}
	}
}
