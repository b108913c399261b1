package agent

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/workspace"
	"github.com/memsvc/memsvc/internal/memory"
)

// localTexts reads the files of a link's directory. It makes nothing.
func (c *command) localTexts(ctx context.Context, l Link) (map[memory.Path][]byte, error) {
	ws, err := workspace.New(l.Dir, workspace.Options{Now: c.Now})
	if err != nil {
		return nil, err
	}
	snap, err := ws.Scan(ctx)
	if err != nil {
		return nil, err
	}
	if snap.Root != syncer.RootOK {
		return nil, fmt.Errorf("%s: %s", l.Dir, snap.Detail)
	}
	out := map[memory.Path][]byte{}
	for p := range snap.Files {
		text, err := ws.Read(ctx, p)
		if err != nil {
			return nil, err
		}
		out[p] = text
	}
	return out, nil
}

// diffContext is how many equal lines surround a change, as everywhere.
const diffContext = 3

// maxDiffCells bounds the table of a comparison; beyond it the whole middle counts as
// replaced. Memories are small: two files of 2,000 lines fit.
const maxDiffCells = 4 << 20

// unified prints the change from old to new in the unified form.
func unified(w io.Writer, path, oldName, newName string, old, new []byte, hasOld, hasNew bool) {
	from, to := path+" ("+oldName+")", path+" ("+newName+")"
	if !hasOld {
		from = "/dev/null"
	}
	if !hasNew {
		to = "/dev/null"
	}
	fmt.Fprintf(w, "--- %s\n+++ %s\n", from, to)
	ops := diffLines(splitLines(old), splitLines(new))
	for i := 0; i < len(ops); {
		if ops[i].kind == ' ' {
			i++
			continue
		}
		// A hunk goes on while fewer than twice the context separates changes.
		start, end := max(0, i-diffContext), i
		for j := i; j < len(ops) && j <= end+2*diffContext; j++ {
			if ops[j].kind != ' ' {
				end = j
			}
		}
		stop := min(len(ops), end+diffContext+1)
		printHunk(w, ops, start, stop)
		i = stop
	}
}

func printHunk(w io.Writer, ops []lineOp, start, stop int) {
	oldAt, newAt, oldN, newN := 1, 1, 0, 0
	for i, op := range ops[:stop] {
		o, n := op.kind != '+', op.kind != '-'
		switch {
		case i < start && o && n:
			oldAt, newAt = oldAt+1, newAt+1
		case i < start && o:
			oldAt++
		case i < start:
			newAt++
		default:
			if o {
				oldN++
			}
			if n {
				newN++
			}
		}
	}
	if oldN == 0 {
		oldAt--
	}
	if newN == 0 {
		newAt--
	}
	fmt.Fprintf(w, "@@ -%d,%d +%d,%d @@\n", oldAt, oldN, newAt, newN)
	for _, op := range ops[start:stop] {
		fmt.Fprintf(w, "%c%s", op.kind, op.text)
		if !bytes.HasSuffix(op.text, []byte("\n")) {
			fmt.Fprint(w, "\n\\ No newline at end of file\n")
		}
	}
}

func splitLines(b []byte) [][]byte {
	lines := bytes.SplitAfter(b, []byte("\n"))
	if n := len(lines); len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	return lines
}

type lineOp struct {
	kind byte // ' ', '-' or '+'
	text []byte
}

// diffLines returns a shortest way from a to b by the table of common subsequences.
func diffLines(a, b [][]byte) []lineOp {
	var ops []lineOp
	add := func(kind byte, lines ...[]byte) {
		for _, l := range lines {
			ops = append(ops, lineOp{kind, l})
		}
	}
	pre := 0
	for pre < len(a) && pre < len(b) && bytes.Equal(a[pre], b[pre]) {
		pre++
	}
	post := 0
	for post < len(a)-pre && post < len(b)-pre && bytes.Equal(a[len(a)-1-post], b[len(b)-1-post]) {
		post++
	}
	add(' ', a[:pre]...)
	tail := a[len(a)-post:]
	a, b = a[pre:len(a)-post], b[pre:len(b)-post]
	if len(a)*len(b) > maxDiffCells {
		add('-', a...)
		add('+', b...)
	} else {
		width := len(b) + 1
		lcs := make([]int32, (len(a)+1)*width)
		for i := len(a) - 1; i >= 0; i-- {
			for j := len(b) - 1; j >= 0; j-- {
				if bytes.Equal(a[i], b[j]) {
					lcs[i*width+j] = lcs[(i+1)*width+j+1] + 1
				} else {
					lcs[i*width+j] = max(lcs[(i+1)*width+j], lcs[i*width+j+1])
				}
			}
		}
		i, j := 0, 0
		for i < len(a) || j < len(b) {
			switch {
			case i < len(a) && j < len(b) && bytes.Equal(a[i], b[j]):
				add(' ', a[i])
				i, j = i+1, j+1
			case j == len(b) || i < len(a) && lcs[(i+1)*width+j] >= lcs[i*width+j+1]:
				add('-', a[i])
				i++
			default:
				add('+', b[j])
				j++
			}
		}
	}
	add(' ', tail...)
	return ops
}
