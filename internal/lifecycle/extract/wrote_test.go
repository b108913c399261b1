package extract_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/extract"
)

// tool is a call of a tool by the client, and what came of it.
func (k *talk) tool(name string, input any, failed bool) {
	k.t.Helper()
	k.line(object{"type": "assistant", "message": object{"role": "assistant", "content": []object{{"type": "tool_use", "id": "t1", "name": name, "input": input}}}})
	k.line(object{"type": "user", "message": object{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": "t1", "content": "done", "is_error": failed}}}})
}

// TestWhatTheClientSavedIsNotSavedTwice: whichever way a client writes a memory by itself,
// nothing is taken from the turn; a look at the memories, a write that failed, and one
// elsewhere are no reason to take nothing.
func TestWhatTheClientSavedIsNotSavedTwice(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	dir := filepath.Join(home, ".claude", "projects", "-w", "memory")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(home, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	bash := func(command string) []any {
		return []any{"Bash", object{"command": strings.ReplaceAll(command, "DIR", dir)}}
	}
	for name, test := range map[string]struct {
		call  []any
		wrote bool
	}{
		"Write":              {[]any{"Write", object{"file_path": dir + "/x.md", "content": "x"}}, true},
		"a tool of no name":  {[]any{"str_replace_editor", object{"path": dir + "/team/x.md", "old_str": "x", "new_str": "y"}}, true},
		"Write elsewhere":    {[]any{"Write", object{"file_path": "/w/x.md", "content": "x"}}, false},
		"Read":               {[]any{"Read", object{"file_path": dir + "/x.md"}}, false},
		"our tool":           {[]any{"mcp__memsvc__memory_write", object{"type": "project"}}, true},
		"our tool, plugin":   {[]any{"mcp__plugin_memsvc_memsvc__memory_edit", object{"memory": "x.md"}}, true},
		"our tool, OpenCode": {[]any{"memsvc_memory_delete", object{"memory": "x.md"}}, true},
		"our tool, bare":     {[]any{"memory_write", object{}}, true},
		"our tool reads":     {[]any{"mcp__memsvc__memory_read", object{"memory": "x.md"}}, false},
		"another word":       {[]any{"inmemory_write", object{}}, false},
		"a patch":            {[]any{"apply_patch", object{"input": "*** Begin Patch\n*** Update File: " + dir + "/x.md\n@@\n-a\n+b\n*** End Patch\n"}}, true},
		"a patch elsewhere":  {[]any{"apply_patch", object{"input": "*** Begin Patch\n*** Update File: x.go\n@@\n-a\n+see " + dir + "/x.md\n*** End Patch\n"}}, false},

		"cat":                       {bash("cat > DIR/x.md <<'EOF'\nname: it's\nEOF\necho done"), true},
		"append":                    {bash(`echo "- [X](x.md)" >> "DIR/MEMORY.md"`), true},
		"by the home directory":     {bash("cat > ~/.claude/projects/-w/memory/x.md <<EOF\nx\nEOF"), true},
		"by its variable":           {bash("tee ${HOME}/.claude/projects/-w/memory/x.md >/dev/null <<EOF\nx\nEOF"), true},
		"by a variable of its own":  {bash("M=DIR\nmkdir -p $M && printf x > $M/x.md"), true},
		"there":                     {bash("cd DIR && echo x > x.md"), true},
		"through a link":            {bash("echo x > " + link + "/x.md"), true},
		"relative":                  {bash("cd ~/.claude/projects && cp /tmp/x.md ./-w/memory/"), true},
		"moved":                     {bash("mv /tmp/x.md DIR/"), true},
		"in place":                  {bash("sed -i s/a/b/ DIR/x.md"), true},
		"removed":                   {bash("sudo rm -f DIR/x.md"), true},
		"a script":                  {bash("python3 -c \"open('DIR/x.md','w').write('x')\""), true},
		"a script that is read":     {bash("python3 - <<'EOF'\nopen('DIR/x.md', 'w').write('x')\nEOF"), true},
		"a shell in a shell":        {bash("bash -lc 'echo x > DIR/x.md'"), true},
		"as a list":                 {[]any{"shell", object{"command": []string{"bash", "-lc", "echo x > " + dir + "/x.md"}}}, true},
		"our command":               {bash("memsync-agent memory add --type project --name x --description y --file - <<EOF\nx\nEOF"), true},
		"our command elsewhere":     {bash("cd /w && /usr/local/bin/memsync-agent --log-level error memory rm x.md"), true},
		"our command reads":         {bash("memsync-agent memory list --memory-dir DIR"), false},
		"looked at":                 {bash("cat DIR/MEMORY.md 2>/dev/null | head -20; ls -la DIR/ 2>&1; grep -rn x DIR || true"), false},
		"looked at there":           {bash("cd DIR && ls 2>&1 && wc -l *.md > /tmp/count"), false},
		"copied out":                {bash("sed -n 1,5p DIR/x.md > /tmp/y.md"), false},
		"found":                     {bash("find DIR -name '*.md' -newer /tmp/x"), false},
		"found and deleted":         {bash("find DIR -name '*.md' -delete"), true},
		"spoken of":                 {bash("cat > /w/notes.md <<EOF\nwrite to DIR/x.md > later\nEOF"), false},
		"in a comment":              {bash("make test # not > DIR/x.md"), false},
		"in a pattern":              {bash(`grep -rn "=> DIR/x" /w`), false},
		"a directory named like it": {bash("echo x > DIR-old/x.md"), false},

		"read in a loop":              {bash(`while read -r l; do echo "$l"; done < DIR/MEMORY.md`), false},
		"read from it":                {bash("mapfile -t a < DIR/MEMORY.md; cat <DIR/x.md 2>/dev/null"), false},
		"read as a text":              {bash("grep x <<< DIR/x.md\ncat DIR/x.md"), false},
		"read within a time":          {bash("timeout 5 cat DIR/MEMORY.md; timeout -k 1 5 stdbuf -oL cat DIR/x.md"), false},
		"read by find":                {bash(`find DIR -name '*.md' -exec cat {} + ; find DIR -exec grep -l x {} \;`), false},
		"read by an unknown program":  {bash("tac DIR/x.md; glow DIR/x.md; cksum DIR/x.md; make -C /w check FILE=DIR/x.md"), false},
		"read by a script":            {bash(`python3 -c "import sys; sys.stdout.write(open('DIR/x.md').read())"`), false},
		"read one by one":             {bash(`for f in DIR/*.md; do head -5 "$f"; done`), false},
		"read in a shell":             {bash("bash -lc 'cat DIR/x.md'; /bin/cat DIR/x.md; LC_ALL=C sort DIR/x.md"), false},
		"copied elsewhere":            {bash("cp DIR/x.md /tmp/; cp -t /tmp DIR/x.md; rsync -at DIR/ /tmp/b; tar czf /tmp/b DIR; ln -s DIR /tmp/m"), false},
		"copied elsewhere from there": {bash("cd DIR && cp *.md /tmp/ && tar cf /tmp/b ."), false},
		"made":                        {bash("mkdir -p DIR"), false},
		"spoken of to a program":      {bash(`gh pr create --body "see DIR/x.md"; git commit -F - <<EOF` + "\nsee DIR/x.md\nEOF"), false},
		"checked by our command":      {bash("memsync-agent check DIR/team/x.md"), false},

		"by an exported variable":      {bash("export M=DIR; echo x > $M/x.md"), true},
		"by a variable of the loop":    {bash(`for f in DIR/*.md; do sed -i s/a/b/ "$f"; done`), true},
		"out of a loop":                {bash("while read -r l; do echo $l; done < /w/x > DIR/x.md"), true},
		"written within a time":        {bash("timeout -k 1 5 tee DIR/x.md < /w/x"), true},
		"changed by find":              {bash(`find DIR -name '*.md' -exec sed -i s/a/b/ {} +`), true},
		"deleted where it runs":        {bash("cd DIR && find . -name 'x*' -exec rm {} \\;"), true},
		"copied in with an option":     {bash("cp -t DIR /w/x.md"), true},
		"copied to where it runs":      {bash("cd DIR && cp /w/x.md ."), true},
		"downloaded":                   {bash("curl -s -o DIR/x.md http://127.0.0.1/x"), true},
		"unpacked":                     {bash("tar xzf /w/x.tgz -C DIR"), true},
		"in place, in other languages": {bash("perl -pi -e s/a/b/ DIR/x.md; gawk -i inplace 1 DIR/x.md"), true},
		"by awk":                       {bash(`awk 'BEGIN { print "x" > "DIR/x.md" }'`), true},
		"sorted into":                  {bash("sort -o DIR/x.md DIR/x.md"), true},
		"a script of a shell":          {bash("bash <<'EOF'\necho x > DIR/x.md\nEOF"), true},
		"evaluated":                    {bash(`eval "echo x > DIR/x.md"`), true},
		"a script where it runs":       {bash("cd DIR && node -e \"fs.writeFileSync('x.md', 'x')\""), true},
		"patched":                      {bash("patch DIR/x.md < /w/x.diff"), true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, failed := range []bool{false, true} {
				k := newTalk(t)
				k.person("Remember that deploys go out on Fridays.")
				k.tool(test.call[0].(string), test.call[1], failed)
				turns, err := extract.ReadTurns(t.Context(), k.file, "", dir, "")
				if err != nil || turns.Wrote != (test.wrote && !failed) {
					t.Errorf("failed %v: wrote is %v, %v", failed, turns.Wrote, err)
				}
			}
		})
	}
}

// TestACommandIsTakenApartAtOnce: however long a command is, and whatever stands in it.
func TestACommandIsTakenApartAtOnce(t *testing.T) {
	began := time.Now()
	for _, text := range []string{"<<", "'", `"\`, "$(", "`", ">", "<<E\n", "&", "x=$x;", "bash -c '", "\n<<E", " cat <<E\n"} {
		k := newTalk(t)
		k.tool("Bash", object{"command": strings.Repeat(text, 100_000)}, false)
		if _, err := extract.ReadTurns(t.Context(), k.file, "", "/m/memory"); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %v", took)
	}
}

// TestACallCostsNoMoreThanItsText: what stands in a conversation need never have been run,
// and where memory runs out the hook ends with the exit code of a veto.
func TestACallCostsNoMoreThanItsText(t *testing.T) {
	const dir = "/m/memory"
	bash := func(command string) []any { return []any{"Bash", object{"command": command}} }
	for name, test := range map[string]struct {
		call  []any
		wrote bool
	}{
		"doubled over and over":    {bash("x=abcd; " + strings.Repeat("x=$x$x; ", 22) + "echo > $x"), false},
		"and a write behind it":    {bash("x=abcd; " + strings.Repeat("x=$x$x; ", 22) + "echo > " + dir + "/x.md"), true},
		"many long words":          {bash("x=" + strings.Repeat("a", 4000) + strings.Repeat(";y=$x", 10_000)), false},
		"many long variables":      {bash("x=" + strings.Repeat("a", 4000) + "; " + variablesOf(10_000)), false},
		"one word of many":         {bash("x=" + strings.Repeat("a", 4000) + "; echo " + strings.Repeat("$x", 10_000)), false},
		"home, over and over":      {bash("x=~/a; " + strings.Repeat("x=$x/$HOME; ", 10_000)), false},
		"deeper and deeper":        {bash(strings.Repeat("cd a;", 20_000) + "echo > x"), false},
		"a name without end":       {[]any{"Write", object{"file_path": strings.Repeat("/a", 20_000), "content": "x"}}, false},
		"a command without end":    {bash(strings.Repeat("cat<<E ", 40_000)), false},
		"found in what is found":   {bash("cd " + dir + "; " + strings.Repeat("find . -exec ", 18) + "cat {} +"), false},
		"found and run, at length": {bash("find " + dir + strings.Repeat("/a", 2000) + strings.Repeat(" -exec cat", 5000) + strings.Repeat(" {}", 10_000) + " +"), false},
		"a shell in a shell, ever": {bash("bash -c " + strings.Repeat(`bash\ -c\ `, 10_000)), false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t)
			k.tool(test.call[0].(string), test.call[1], false)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			turns, err := extract.ReadTurns(t.Context(), k.file, "", dir)
			runtime.ReadMemStats(&after)
			if err != nil || turns.Wrote != test.wrote {
				t.Errorf("wrote is %v, %v", turns.Wrote, err)
			}
			if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 64 {
				t.Errorf("%d MiB were allocated for it", mib)
			}
		})
	}
}

func variablesOf(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "y%d=$x;", i)
	}
	return b.String()
}

// TestACommandIsNotReadPastItsTime: a hook has half a second.
func TestACommandIsNotReadPastItsTime(t *testing.T) {
	k := newTalk(t)
	k.tool("Bash", object{"command": "echo > /m/memory/x.md"}, false)
	ctx := &ends{Context: t.Context(), after: 2}
	if turns, err := extract.ReadTurns(ctx, k.file, "", "/m/memory"); !errors.Is(err, context.Canceled) {
		t.Errorf("wrote %v, %v", turns.Wrote, err)
	}
}

// ends is a context that ends when it was asked so often.
type ends struct {
	context.Context
	after int
}

func (e *ends) Err() error {
	if e.after--; e.after < 0 {
		return context.Canceled
	}
	return nil
}
