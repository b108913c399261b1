package hub

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/secretscan"
)

// errRefused ends the program with exitPerson after everything was said.
var errRefused = errors.New("files were refused")

// markdownImport takes a directory of Markdown files into a project.
type markdownImport struct {
	e       *env
	hub     *client.Client
	key     memory.ProjectKey
	replace bool

	refused map[string]bool // files
	out     struct {
		files, same int
		first, last memory.Revision
	}
}

// run imports what it can, lists the rest, and ends with errRefused if there is any.
func (m *markdownImport) run(dir string) error {
	m.refused = map[string]bool{}
	files, others, err := readTree(dir, m.refuse)
	if err != nil {
		return err
	}
	policy, err := m.hub.Policy(m.e.ctx, m.key.Team)
	if err != nil {
		return err
	}
	files = m.judge(files, secretscan.Policy{
		Version: policy.Version, FingerprintKey: policy.FingerprintKey, AllowFingerprints: policy.AllowedFingerprints,
		AllowRules: policy.AllowedRules, AllowInline: policy.AllowInline, RulesTOML: policy.RulesTOML,
	})
	changes, names, err := m.compare(files)
	if err != nil {
		return err // nothing was tried yet, so there is nothing to sum up
	}
	err = m.commit(changes, names)
	if told := m.tell(others); err != nil || told != nil {
		return errors.Join(err, told)
	}
	if len(m.refused) > 0 {
		return errRefused
	}
	return nil
}

// warn lists what the hub says of a file that it took.
func (m *markdownImport) warn(v memory.Violation) {
	fmt.Fprintf(m.e.stdout, "%s: warning: %s: %s\n", printable(placeOf(v)), printable(v.Rule), printable(v.Message))
}

func placeOf(v memory.Violation) string {
	if v.Line > 0 {
		return v.Path + ":" + strconv.Itoa(v.Line)
	}
	return v.Path
}

// refuse lists a violation as file:line: rule: message, of a secret with the fingerprint
// by which the team can let it through.
func (m *markdownImport) refuse(v memory.Violation) {
	m.refused[v.Path] = true
	message := v.Message
	if v.Fingerprint != "" {
		message += "; fingerprint " + v.Fingerprint
	}
	fmt.Fprintf(m.e.stdout, "%s: %s: %s\n", printable(placeOf(v)), v.Rule, printable(message))
}

// judge returns the files that the rules of contents and the guard let through. It runs
// here, so that no secret leaves the machine.
func (m *markdownImport) judge(files []markdownFile, policy secretscan.Policy) []markdownFile {
	scanner := secretscan.New(secretscan.Options{CacheEntries: -1})
	return slices.DeleteFunc(files, func(f markdownFile) bool {
		bad := memory.CheckContent(f.path, f.content).Violations
		if len(f.content) <= memory.MaxMemoryBytes {
			findings, err := scanner.ScanWith(policy, string(f.path), f.content)
			for _, v := range findings {
				bad = append(bad, memory.Violation{Line: v.Line, Rule: v.Rule, Fingerprint: v.Fingerprint, Message: strings.TrimSuffix(v.Description, ".") + "; remove it from the file, and revoke it if it is real"})
			}
			if err != nil && len(bad) == 0 {
				bad = append(bad, memory.Violation{Rule: ruleGuardFailed, Message: err.Error()})
			}
		}
		for _, v := range bad {
			v.Path = f.name
			m.refuse(v)
		}
		return len(bad) > 0
	})
}

// compare returns what is to be committed, given what the project has, and the file of
// each path.
func (m *markdownImport) compare(files []markdownFile) ([]memory.Change, map[string]string, error) {
	list, err := m.hub.List(m.e.ctx, m.key, client.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	have := map[memory.Path]memory.ETag{}
	taken := memory.NewCollisionIndex(nil)
	for _, one := range list.Memories {
		have[one.Path] = one.ETag
		taken.Add(one.Path)
	}
	var changes []memory.Change
	names := map[string]string{}
	for _, f := range files {
		etag, exists := have[f.path]
		other, collides := taken.Check(f.path)
		want := memory.IfAbsent()
		switch {
		case exists && etag == memory.ETagOf(f.content):
			m.out.same++
			continue
		case exists && !m.replace:
			m.refuse(memory.Violation{Path: f.name, Rule: ruleExists, Message: "the project has another text of this name; rename the file, or give --replace"})
			continue
		case exists:
			want = memory.IfMatch(etag)
		case collides:
			m.refuse(memory.Violation{Path: f.name, Rule: rulePathCollision, Message: fmt.Sprintf("cannot stand beside %s on every disk; rename one", other)})
			continue
		}
		taken.Add(f.path)
		names[string(f.path)] = f.name
		changes = append(changes, memory.Change{Path: f.path, Kind: memory.Put, Content: f.content, Precondition: want, ModTime: f.info.ModTime().UTC()})
	}
	return changes, names, nil
}

// commit commits changes in as few commits as the hub's bounds allow.
func (m *markdownImport) commit(changes []memory.Change, names map[string]string) error {
	for len(changes) > 0 {
		n, size := 0, 0
		for n < len(changes) && n < memory.MaxCommitChanges {
			if size += len(changes[n].Content); n > 0 && size > memory.MaxCommitBytes {
				break
			}
			n++
		}
		if err := m.commitSome(slices.Clone(changes[:n]), names); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

// commitSome makes one commit, without what the hub itself refuses.
func (m *markdownImport) commitSome(changes []memory.Change, names map[string]string) error {
	for len(changes) > 0 {
		res, err := m.hub.Commit(m.e.ctx, client.CommitRequest{Project: m.key, Changes: changes, Message: "import of a directory"})
		if err == nil {
			if res.Created {
				if m.out.first == 0 {
					m.out.first = res.Commit.Revision
				}
				m.out.last = res.Commit.Revision
			}
			m.out.files += len(changes)
			for _, v := range res.Warnings {
				if c, ok := changeAt(changes, v.Path); ok {
					v.Path = names[string(c)]
				}
				m.warn(v)
			}
			return nil
		}
		var e *memory.Error
		if !errors.As(err, &e) {
			return err
		}
		bad := map[memory.Path]bool{}
		for _, v := range e.Violations {
			if c, ok := changeAt(changes, v.Path); ok {
				bad[c] = true
				v.Path = names[string(c)]
				m.refuse(v)
			}
		}
		for _, now := range e.Current {
			if name, ok := names[string(now.Path)]; ok {
				bad[now.Path] = true
				m.refuse(memory.Violation{Path: name, Rule: ruleChanged, Message: "somebody changed this memory at the same time; look at it and try again"})
			}
		}
		before := len(changes)
		if changes = slices.DeleteFunc(changes, func(c memory.Change) bool { return bad[c.Path] }); len(changes) == before {
			return err // it is about none of the files
		}
	}
	return nil
}

// changeAt returns the path of the first change that a violation's path may mean.
func changeAt(changes []memory.Change, of string) (memory.Path, bool) {
	for _, c := range changes {
		if isPath(of, string(c.Path)) {
			return c.Path, true
		}
	}
	return "", false
}

// isPath reports whether a violation's path, which may be cut short, is path.
func isPath(of, path string) bool {
	start, cut := strings.CutSuffix(of, "…")
	return of == path || cut && strings.HasPrefix(path, start)
}

// tell sums up in one line.
func (m *markdownImport) tell(others int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "import: %s committed to %s", count(int64(m.out.files), "memory", "memories"), m.key)
	switch {
	case m.out.last > m.out.first:
		fmt.Fprintf(&b, " as revisions %d to %d", m.out.first, m.out.last)
	case m.out.last > 0:
		fmt.Fprintf(&b, " as revision %d", m.out.last)
	}
	return m.e.done("%s; %d there already, %s refused, %d left out as hidden or no Markdown", b.String(), m.out.same, count(int64(len(m.refused)), "file", "files"), others)
}

// readAtMost reads n bytes, or fewer if there are no more.
func readAtMost(r io.Reader, n int64) ([]byte, error) { return io.ReadAll(io.LimitReader(r, n)) }
