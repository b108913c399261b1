// Package configtest keeps the reference of commands and flags in step with the grammars
// that it is about.
package configtest

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

// Reference is a page whose tables are written from a grammar. A table stands between
//
//	<!-- PROGRAM: COMMAND… -->
//	<!-- end -->
//
// and has the commands below those named, and their flags. Flags that many commands share
// stand once, in a table of their own that is called by a name of Sets, or "every command"
// for those of the program.
type Reference struct {
	File  string
	Model *kong.Application
	// Sets are the flags that commands share, by what the page calls them: those of the
	// program's first command that has them. Who takes all of a set is named below its table.
	Sets map[string][]string
}

// everyCommand is the name of the flags of the program itself.
const everyCommand = "every command"

// Check compares the page's tables with the grammar, or writes them anew. It fails too if a
// command or a set has no table.
func (r Reference) Check(t *testing.T, update bool) {
	t.Helper()
	text, err := os.ReadFile(r.File)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?s)<!-- ` + regexp.QuoteMeta(r.Model.Name) + `: ([^>]*) -->\n.*?<!-- end -->`)
	told := map[string]bool{}
	want := block.ReplaceAllStringFunc(string(text), func(old string) string {
		what := block.FindStringSubmatch(old)[1]
		return "<!-- " + r.Model.Name + ": " + what + " -->\n" + r.table(t, what, told) + "<!-- end -->"
	})
	for _, c := range r.Model.Children {
		if !c.Hidden && !told[c.Name] {
			t.Errorf("%s has no table of %s %s", r.File, r.Model.Name, c.Name)
		}
	}
	for set := range r.Sets {
		if !told[set] {
			t.Errorf("%s has no table of the flags of %q", r.File, set)
		}
	}
	if !told[everyCommand] {
		t.Errorf("%s has no table of the flags of %s %s", r.File, r.Model.Name, everyCommand)
	}
	if update {
		if err := os.WriteFile(r.File, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, string(text)); d != "" {
		t.Errorf("%s is not what the grammar says; run this test with -update (-want +got):\n%s", r.File, d)
	}
}

// table returns what stands in a block, and notes what it is about.
func (r Reference) table(t *testing.T, what string, told map[string]bool) string {
	t.Helper()
	var b strings.Builder
	if what == everyCommand {
		told[what] = true
		writeFlags(&b, flagRows("", r.Model.Flags, func(*kong.Flag) bool { return false }), false)
		return b.String()
	}
	if names, ok := r.Sets[what]; ok {
		told[what] = true
		var flags []*kong.Flag
		for _, name := range names {
			flag := r.shared(name)
			if flag == nil {
				t.Fatalf("no command has --%s of the set %q", name, what)
			}
			flags = append(flags, flag)
		}
		writeFlags(&b, flagRows("", flags, func(*kong.Flag) bool { return false }), false)
		fmt.Fprintf(&b, "\nTaken by %s.\n", strings.Join(r.takers(names), ", "))
		return b.String()
	}
	var leaves []*kong.Node
	for _, name := range strings.Fields(what) {
		i := slices.IndexFunc(r.Model.Children, func(n *kong.Node) bool { return n.Name == name })
		if i < 0 {
			t.Fatalf("%s has no command %q", r.Model.Name, name)
		}
		told[name] = true
		leaves = append(leaves, leavesOf(r.Model.Children[i])...)
	}
	b.WriteString("| command | what it does |\n|---|---|\n")
	for _, n := range leaves {
		fmt.Fprintf(&b, "| `%s` | %s |\n", usage(n), cell(n.Help))
	}
	var rows []row
	for _, n := range leaves {
		rows = append(rows, flagRows(path(n), flagsOf(n), func(f *kong.Flag) bool { return r.inSet(n, f) })...)
	}
	if rows = merged(rows); len(rows) > 0 {
		b.WriteString("\n")
		writeFlags(&b, rows, len(leaves) > 1)
	}
	return b.String()
}

// shared returns the flag of a set as the first command has it.
func (r Reference) shared(name string) *kong.Flag {
	for _, n := range leavesOf(r.Model.Node) {
		for _, f := range flagsOf(n) {
			if f.Name == name {
				return f
			}
		}
	}
	return nil
}

// takes reports whether a command takes all of these flags, with the same meaning.
func (r Reference) takes(n *kong.Node, names []string) bool {
	for _, name := range names {
		want := r.shared(name)
		if !slices.ContainsFunc(flagsOf(n), func(f *kong.Flag) bool { return f.Name == name && f.Help == want.Help }) {
			return false
		}
	}
	return true
}

// takers returns the commands that take all of these flags.
func (r Reference) takers(names []string) (out []string) {
	for _, n := range leavesOf(r.Model.Node) {
		if r.takes(n, names) {
			out = append(out, "`"+path(n)+"`")
		}
	}
	return out
}

// inSet reports whether a flag of a command stands in a table of shared flags: the
// command is named below that one.
func (r Reference) inSet(n *kong.Node, f *kong.Flag) bool {
	for _, names := range r.Sets {
		if slices.Contains(names, f.Name) && r.takes(n, names) {
			return true
		}
	}
	return false
}

// leavesOf returns the commands below n that do something.
func leavesOf(n *kong.Node) (out []*kong.Node) {
	if n.Hidden {
		return nil
	}
	for _, c := range n.Children {
		out = append(out, leavesOf(c)...)
	}
	if len(n.Children) == 0 {
		out = append(out, n)
	}
	return out
}

// flagsOf returns the flags of a command and of the groups that it is in, without the
// program's own.
func flagsOf(n *kong.Node) (out []*kong.Flag) {
	for ; n != nil && n.Type == kong.CommandNode; n = n.Parent {
		out = append(out, n.Flags...)
	}
	return out
}

// path is how a command is called, without the program.
func path(n *kong.Node) string {
	if n.Parent == nil || n.Parent.Type != kong.CommandNode {
		return n.Name
	}
	return path(n.Parent) + " " + n.Name
}

// usage is path with the arguments.
func usage(n *kong.Node) string {
	text := path(n)
	for _, arg := range n.Positional {
		name := strings.ToUpper(arg.Name)
		if arg.IsCumulative() {
			name = strings.TrimSuffix(name, "S") + "…"
		}
		if !arg.Required {
			name = "[" + name + "]"
		}
		text += " " + name
	}
	return text
}

// row is a flag in a table.
type row struct {
	flag, variable, fallback, meaning string
	of                                []string // commands
}

func flagRows(of string, flags []*kong.Flag, skip func(*kong.Flag) bool) (rows []row) {
	for _, f := range flags {
		if f.Hidden || f.Name == "help" || skip(f) {
			continue
		}
		rows = append(rows, row{flag: flagText(f), variable: variable(f), fallback: fallback(f), meaning: cell(f.Help), of: []string{of}})
	}
	return rows
}

// merged makes one row of those that differ in nothing but the command.
func merged(rows []row) (out []row) {
	for _, r := range rows {
		i := slices.IndexFunc(out, func(o row) bool {
			return o.flag == r.flag && o.variable == r.variable && o.fallback == r.fallback && o.meaning == r.meaning
		})
		if i < 0 {
			out = append(out, r)
			continue
		}
		out[i].of = append(out[i].of, r.of...)
	}
	return out
}

func writeFlags(b *strings.Builder, rows []row, of bool) {
	if of {
		b.WriteString("| flag | of | variable | default | meaning |\n|---|---|---|---|---|\n")
	} else {
		b.WriteString("| flag | variable | default | meaning |\n|---|---|---|---|\n")
	}
	for _, r := range rows {
		fmt.Fprintf(b, "| `%s` | ", r.flag)
		if of {
			fmt.Fprintf(b, "%s | ", strings.Join(r.of, ", "))
		}
		fmt.Fprintf(b, "%s | %s | %s |\n", r.variable, r.fallback, r.meaning)
	}
}

func flagText(f *kong.Flag) string {
	switch {
	case f.Tag.Negatable != "":
		return "--[no-]" + f.Name
	case f.IsBool():
		return "--" + f.Name
	case f.PlaceHolder != "":
		return "--" + f.Name + " " + f.PlaceHolder
	case f.Enum != "":
		return "--" + f.Name + " WORD"
	}
	kinds := map[string]string{"time.Duration": "DURATION", "int": "N", "int64": "N", "float64": "N"}
	typ := strings.TrimPrefix(f.Target.Type().String(), "*")
	if kind := kinds[typ]; kind != "" {
		return "--" + f.Name + " " + kind
	}
	words := strings.Split(f.Name, "-")
	return "--" + f.Name + " " + strings.ToUpper(words[len(words)-1])
}

// variable is the environment's name of a flag; none for what only the command line
// decides.
func variable(f *kong.Flag) string {
	if len(f.Envs) == 0 {
		return "–"
	}
	return "`" + f.Envs[0] + "`"
}

func fallback(f *kong.Flag) string {
	switch {
	case f.Required:
		return "required"
	case f.HasDefault && f.Default != "":
		return "`" + f.Default + "`"
	}
	return "–"
}

// cell makes text fit into one cell.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
