package syncer

import (
	"context"
	"strings"

	"github.com/memsvc/memsvc/internal/memory"
)

// credit is who put a text at a path of the hub, as far as this cycle has heard.
type credit struct {
	etag memory.ETag // of the text
	name string      // "" = it is not to be shown
}

// maxAuthorBytes bounds what is kept of an author's name. The contract lets a principal
// have as many characters; what is longer comes from no hub of ours.
const maxAuthorBytes = 256

// credited notes who put a text at a path of the hub. Later calls for a path are of later
// changes.
func (c *cycle) credited(ctx context.Context, p memory.Path, e memory.ETag, author memory.Author) {
	if e != "" && author.Principal != "" {
		c.authors[p] = credit{e, c.fitName(ctx, author.Principal)}
	}
}

// authorPath is what the guard is told that it judges, when it judges a name.
const authorPath memory.Path = "author.md"

// fitName returns an author's name as it may be kept, in one line; "" if the guard finds a
// secret in it, or has no verdict.
func (c *cycle) fitName(ctx context.Context, name string) string {
	if fit, known := c.names[name]; known {
		return fit
	}
	fit := strings.Join(strings.Fields(strings.ToValidUTF8(name, "")), " ")
	if len(fit) > maxAuthorBytes {
		fit = strings.ToValidUTF8(fit[:maxAuthorBytes], "")
	}
	if v, err := c.s.ports.Guard.Check(ctx, authorPath, []byte(fit+"\n")); err != nil || len(v.Violations) > 0 {
		fit = ""
	}
	c.names[name] = fit
	return fit
}

// authorOf returns who put a text at a path of the hub; "" where that is not known.
func (c *cycle) authorOf(p memory.Path, e memory.ETag) string {
	if a, heard := c.authors[p]; heard && a.etag == e {
		return a.name
	}
	if b := c.base[p]; b.Hub == e {
		return b.Author
	}
	return ""
}

// creditBase notes the authors that this cycle heard of for texts that were agreed before:
// a state that was lost, or that an older agent wrote, knows none.
func (c *cycle) creditBase() {
	for p, a := range c.authors {
		b, agreed := c.base[p]
		if !agreed || b.Hub != a.etag || b.Author == a.name {
			continue
		}
		b.Author = a.name
		c.base[p] = b
		if c.todo.PutBaseline == nil {
			c.todo.PutBaseline = map[memory.Path]BaseEntry{}
		}
		c.todo.PutBaseline[p] = b
	}
}
