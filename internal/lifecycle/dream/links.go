package dream

import (
	"path"
	"regexp"
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

var (
	fileLink = regexp.MustCompile(`\]\(([^()\s<>#:]+\.md)(#[^()\s]*)?\)`)
	nameLink = regexp.MustCompile(`\[\[([^\[\]\n|]+)(\|[^\[\]\n]*)?\]\]`)
)

// redirect lets links to a memory that is gone lead to the one that took it in.
func (t *tree) redirect() {
	moved := map[memories.Ref]*item{}
	names := map[string]*item{}
	for _, it := range t.items {
		if it.gone && it.into != nil {
			moved[it.Ref] = it.keeper()
			names[strings.ToLower(it.Name())] = it.keeper()
			names[strings.ToLower(stem(it))] = it.keeper()
		}
	}
	if len(moved) == 0 {
		return
	}
	for _, it := range t.items {
		if !it.gone { // whom a name means that is still there it goes on to mean
			delete(names, strings.ToLower(it.Name()))
			delete(names, strings.ToLower(stem(it)))
		}
	}
	for _, it := range t.items {
		if it.gone || it.frozen {
			continue
		}
		body := string(it.Body())
		body = fileLink.ReplaceAllStringFunc(body, func(link string) string {
			m := fileLink.FindStringSubmatch(link)
			to := moved[target(it, m[1])]
			if to == nil || it.Scope == memory.ScopeTeam && to.Scope != memory.ScopeTeam {
				return link
			}
			return "](" + relative(it, to) + m[2] + ")"
		})
		body = nameLink.ReplaceAllStringFunc(body, func(link string) string {
			m := nameLink.FindStringSubmatch(link)
			key := strings.ToLower(strings.TrimSpace(m[1]))
			to := names[strings.TrimSuffix(key, memory.Extension)]
			if to == nil || it.Scope == memory.ScopeTeam && to.Scope != memory.ScopeTeam {
				return link
			}
			return "[[" + stem(to) + m[2] + "]]"
		})
		t.set(it, it.withBody(body), reasonLinks)
	}
}

func stem(it *item) string { return strings.TrimSuffix(it.Path.Base(), memory.Extension) }

// target is the memory that a link in it means.
func target(it *item, link string) memories.Ref {
	p := path.Join(it.Path.Dir(), link)
	if rest, ok := strings.CutPrefix(p, memdir.TeamDir+"/"); ok && it.Scope == memory.ScopePrivate {
		return memories.Ref{Scope: memory.ScopeTeam, Path: memory.Path(rest)}
	}
	return memories.Ref{Scope: it.Scope, Path: memory.Path(p)}
}

// relative is how a memory is named in a link that stands in it.
func relative(it, to *item) string {
	name := string(to.Path)
	if it.Scope == memory.ScopePrivate {
		name = to.Ref.String()
	}
	for range len(it.Path.Segments()) - 1 {
		name = "../" + name
	}
	if dir := it.Path.Dir(); dir != "" && it.Scope == to.Scope {
		if rest, ok := strings.CutPrefix(string(to.Path), dir+"/"); ok {
			return rest
		}
	}
	return name
}
