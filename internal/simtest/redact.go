package simtest

import (
	"context"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/memory"
)

// redact is an admin who takes a stored text away, or all of a memory's. What was in it is
// owed by nobody any more; what is only in other texts still is.
func (w *world) redact() {
	versions := w.hub.versions()
	versions = slices.DeleteFunc(versions, func(v version) bool { return v.marker() || strings.TrimSpace(v.text) == "" })
	if len(versions) == 0 {
		return
	}
	v := versions[w.pick(len(versions))]
	var etags []memory.ETag
	if w.chance(60) {
		etags = []memory.ETag{memory.ETagOf([]byte(v.text))}
	}
	admin := service.Call{Principal: service.Principal{Name: "token:admin", Team: project.Team, Role: service.Admin}}
	res, err := w.hub.svc.Redact(context.Background(), admin, project, v.path, etags, "why")
	w.tracef("redacts %s (%d etags: %q): %+v, %v", v.path, len(etags), v.text, res.Rewritten, err)
	if err != nil {
		w.breakLaw("redact %s: %v", v.path, err)
	}
	left := map[string]bool{}
	for _, v := range w.hub.versions() {
		left[v.text] = true
	}
	for _, v := range versions {
		if !left[v.text] {
			w.excuse(v.text, "")
		}
	}
}

// version is a text that the hub has stored.
type version struct {
	path memory.Path
	text string
}

func (v version) marker() bool { return v.text == memory.RedactionMarker }

// versions returns every stored text of the kept history, oldest first.
func (h *hub) versions() (out []version) {
	commits, err := h.backend.History(context.Background(), project, 0, 0, 1<<40)
	if err != nil {
		panic(err)
	}
	for _, c := range commits {
		for _, ch := range c.Changes {
			if ch.ETag != "" {
				out = append(out, version{ch.Path, string(ch.Content)})
			}
		}
	}
	return out
}

// checkRedacted: no redacted text is on the hub, nor in the state of a machine that is in
// step, nor on its disk; what somebody wrote anew there is held back by name.
func (w *world) checkRedacted() {
	ctx := context.Background()
	policy, err := w.hub.svc.GuardPolicy(ctx, call("law"), project.Team)
	if err != nil {
		w.breakLaw("policy: %v", err)
		return
	}
	redacted := func(text []byte) bool {
		found, err := w.hub.backend.Redacted(ctx, project.Team, []string{memory.RedactionFingerprint(policy.FingerprintKey, text)})
		if err != nil {
			w.breakLaw("redacted: %v", err)
		}
		return len(found) > 0
	}
	for _, v := range w.hub.versions() {
		if redacted([]byte(v.text)) {
			w.breakLaw("the hub has the redacted text %q at %s", v.text, v.path)
		}
	}
	for _, m := range w.machines {
		link := m.state.Link()
		held := map[memory.ETag]bool{}
		for _, h := range link.Held {
			held[h.ETag] = true
			if h.RenamedFrom != "" {
				held[link.Baseline[h.RenamedFrom].Text] = true // its delete waits, and is not in step
			}
		}
		for p := range link.Ahead {
			held[link.Baseline[p].Text] = true // something stands in the marker's way
		}
		for e := range link.Texts() {
			text, err := m.state.Text(ctx, e)
			if err == nil && !held[e] && redacted(text) {
				w.breakLaw("%s: the state has the redacted text %q", m.name, text)
			}
		}
		for p, text := range m.disk.Files() {
			if redacted([]byte(text)) && !held[memory.ETagOf([]byte(text))] {
				w.breakLaw("%s: %s is the redacted text %q", m.name, p, text)
			}
		}
		if link.Redacting && len(link.Ahead)+len(link.Intents) == 0 {
			w.breakLaw("%s: in step, and still taking redacted texts out", m.name)
		}
	}
}

// noted returns the index lines that the machine's notes hold.
func (m *machine) noted() string {
	var b strings.Builder
	for _, n := range m.state.Link().Notes {
		if n.Kind == syncer.NoteIndexLine {
			b.WriteString(n.Text + "\n")
		}
	}
	return b.String()
}

// excuseLines excuses the lines that went from the notes since, because their index lost a
// redacted text.
func (m *machine) excuseLines(before string) {
	if now := m.noted(); strings.Count(now, syncer.LineRedacted) > strings.Count(before, syncer.LineRedacted) {
		m.w.excuse(before, now)
	}
}
