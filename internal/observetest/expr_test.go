package observetest

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// targetLabels are what Prometheus adds to what it collects: job and instance always,
// namespace where the targets come from Kubernetes.
var targetLabels = []string{"job", "instance", "namespace"}

// node is an expression as Prometheus's own parser sees it. Fields that a kind of
// expression lacks are empty.
type node struct {
	Type     string
	Name     string // of a selector: the metric
	Matchers []struct{ Name string }
	Grouping []string // of an aggregation
	Matching *struct {
		Labels, Include []string
	}
	Expr, LHS, RHS, Param *node
	Args                  []*node
}

// checker knows which metrics there are and with which labels.
type checker struct {
	families map[string]family
	server   *server
}

// check returns what is wrong with an expression: it does not parse, or names a metric
// or a label that does not exist.
func (c checker) check(expr string) (problems []string) {
	var tree node
	if err := c.server.call("parse_query", url.Values{"query": {expr}}, &tree); err != nil {
		return []string{err.Error()}
	}
	c.walk(&tree, func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) })
	return problems
}

// walk checks a node and returns the labels that what is below may have.
func (c checker) walk(n *node, bad func(string, ...any)) map[string]bool {
	labels := map[string]bool{}
	if n == nil {
		return labels
	}
	if n.Type == "vectorSelector" || n.Type == "matrixSelector" {
		return c.selector(n, bad)
	}
	for _, child := range append([]*node{n.Expr, n.LHS, n.RHS, n.Param}, n.Args...) {
		maps.Copy(labels, c.walk(child, bad))
	}
	needed := slices.Clone(n.Grouping)
	if n.Matching != nil {
		needed = append(append(needed, n.Matching.Labels...), n.Matching.Include...)
	}
	for _, l := range needed {
		if !labels[l] {
			bad("label %q is used, and nothing below has it", l)
		}
	}
	return labels
}

func (c checker) selector(n *node, bad func(string, ...any)) map[string]bool {
	labels := map[string]bool{}
	for _, l := range targetLabels {
		labels[l] = true
	}
	if n.Name == "up" {
		return labels
	}
	f, ok := c.families[n.Name]
	if !ok {
		base := n.Name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			base = strings.TrimSuffix(base, suffix)
		}
		if f, ok = c.families[base]; !ok || f.kind != "histogram" {
			bad("metric %q does not exist", n.Name)
			return labels
		}
		if strings.HasSuffix(n.Name, "_bucket") {
			labels["le"] = true
		}
	}
	for _, l := range f.labels {
		labels[l] = true
	}
	for _, m := range n.Matchers {
		if m.Name != "__name__" && !labels[m.Name] {
			bad("metric %q has no label %q", n.Name, m.Name)
		}
	}
	return labels
}
