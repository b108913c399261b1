package synctest

import (
	"bytes"
	"context"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// Secret is the word that Guard takes for a secret.
const Secret = "planted-secret"

// Guard refuses what memory.CheckContent refuses, and every line with Secret in it.
type Guard struct {
	// Version is the policy's.
	Version int64
	// Allow lets Secret pass.
	Allow bool
	// Hook, if set, is called around every check.
	Hook Hook
}

// Check is syncer.Guard's.
func (g *Guard) Check(ctx context.Context, p memory.Path, content []byte) (syncer.Verdict, error) {
	if err := firstError(ctx.Err(), g.Hook.before("check")); err != nil {
		return syncer.Verdict{}, err
	}
	checked := memory.CheckContent(p, content)
	v := syncer.Verdict{Violations: checked.Violations, Warnings: checked.Warnings, PolicyVersion: g.Version}
	line := 0
	for text := range bytes.Lines(content) {
		line++
		if !g.Allow && bytes.Contains(text, []byte(Secret)) {
			v.Violations = append(v.Violations, memory.Violation{Path: string(p), Line: line, Rule: "planted", Message: "a planted secret; remove it"})
		}
	}
	return v, g.Hook.after("check")
}
