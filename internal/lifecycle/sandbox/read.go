package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxEntries = 500 // of a listing
	maxAbout   = 300 // characters of a description in one
)

func (r *run) read(ctx context.Context, input []byte) (string, string, error) {
	var in struct {
		Path          string
		Offset, Limit int
	}
	if err := decode(input, &in); err != nil {
		return "", "", err
	}
	p, err := r.placeOf(in.Path)
	if err != nil {
		return "", "", err
	}
	from, err := r.content(ctx, p)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = from.Close() }() // only read
	var b strings.Builder
	budget := maxScanned
	for l, err := range lines(ctx, from, &budget) {
		switch {
		case err != nil:
			return "", "", err
		case l.n < in.Offset:
			continue
		case in.Limit > 0 && l.n >= max(in.Offset, 1)+in.Limit || b.Len() > maxAnswer:
			fmt.Fprintf(&b, "[more from line %d on]\n", l.n)
			return b.String(), p.String(), nil
		}
		if p.in == transcript {
			l.text = r.Secrets.Masked(l.text)
		}
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	if budget < 0 {
		b.WriteString("[the rest is too far to read]\n")
	}
	return b.String(), p.String(), nil
}

func (r *run) listDir(ctx context.Context, input []byte) (string, string, error) {
	var in struct{ Path string }
	if err := decode(input, &in); err != nil {
		return "", "", err
	}
	p, err := r.placeOf(in.Path)
	if err != nil {
		return "", "", err
	}
	switch p.in {
	case inMemory:
		text, err := r.manifest(ctx, p.rel)
		return text, p.String(), err
	case transcript:
		return "", "", said("it is a file; read or grep it")
	}
	text, err := r.entries(p.rel)
	if err != nil {
		return "", "", err
	}
	return text, p.String(), nil
}

// manifest lists the memories below a directory, "." for all.
func (r *run) manifest(ctx context.Context, rel string) (string, error) {
	all, _, err := r.Store.List(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	n := 0
	for _, m := range all {
		if !below(m.Ref, rel) {
			continue
		}
		if n++; n > maxEntries {
			continue
		}
		typ, _ := m.Type()
		fmt.Fprintf(&b, "[%s] memory/%s (%s): %s\n", typ, m.Ref, m.Age().UTC().Format("2006-01-02"), r.Secrets.Line(m.Front.Description, maxAbout))
	}
	if n > maxEntries {
		fmt.Fprintf(&b, "[and %d more]\n", n-maxEntries)
	}
	if n == 0 {
		return "none\n", nil
	}
	return b.String(), nil
}

// entries lists a directory of the project.
func (r *run) entries(rel string) (string, error) {
	d, err := r.project.Open(filepath.FromSlash(rel))
	if err != nil {
		return "", errNone
	}
	defer func() { _ = d.Close() }() // only read
	if fi, err := d.Stat(); err != nil || !fi.IsDir() {
		return "", said("it is not a directory")
	}
	var names []string
	more := false
	for !more {
		some, err := d.ReadDir(256)
		for _, e := range some {
			if hidden(e.Name()) {
				continue
			}
			name := e.Name()
			if e.IsDir() {
				name += "/"
			}
			names = append(names, name)
		}
		more = len(names) > maxEntries
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", said("it cannot be read")
		}
	}
	slices.Sort(names)
	if more {
		names = append(names[:maxEntries], "[and more]")
	}
	return strings.Join(names, "\n") + "\n", nil
}

// hidden knows what is not looked into by itself.
func hidden(name string) bool { return strings.HasPrefix(name, ".") || name == "node_modules" }
