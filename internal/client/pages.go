package client

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// The bounds of a list. A hub that means well stays far below them; one that does not
// would keep a client asking, and filling its memory, for ever.
const (
	// MaxListItems bounds the entries of one list: twenty times the living memories
	// that a project may have, for its tombstones.
	MaxListItems = 20 * memory.MaxProjectFiles
	// MaxListPages bounds the pages of one list.
	MaxListPages = 10_000
	// maxEmptyPages bounds the pages in a row that hold nothing and promise more: a
	// hub may look through much before it finds something it may show.
	maxEmptyPages = 100
	// maxPageToken bounds a token, in bytes.
	maxPageToken = 4 << 10
	// maxListBytes bounds the pages of a list of memories without their contents
	// together, as they came over the wire: a kilobyte and more for each of MaxListItems.
	maxListBytes = memory.MaxProjectBytes
	// maxContentBytes is maxListBytes with the contents: four times what a project may have.
	maxContentBytes = 4 * memory.MaxProjectBytes
)

// Pages follows the pages of one list and refuses those that lead nowhere. The zero
// value is at the first page.
type Pages struct {
	pages, empty, items int
	bytes               int64
	seen                map[[sha256.Size]byte]struct{}
}

// Next takes note of a page with its number of entries and the token it came with, and
// returns what to ask the next page with; "" is the end. A token that was there before,
// and more than a list can have, is an ErrInternal.
func (p *Pages) Next(token string, items int) (string, error) {
	p.pages++
	p.items += items
	p.empty++
	if items > 0 {
		p.empty = 0
	}
	if p.items > MaxListItems {
		return "", senseless("a list of more than %d entries", MaxListItems)
	}
	if token == "" {
		return "", nil
	}
	sum := sha256.Sum256([]byte(token))
	_, again := p.seen[sum]
	switch {
	case again:
		return "", senseless("the token of page %d was there before, the list has no end", p.pages)
	case len(token) > maxPageToken:
		return "", senseless("a page token of %d bytes", len(token))
	case p.pages >= MaxListPages:
		return "", senseless("a list of more than %d pages", MaxListPages)
	case p.empty >= maxEmptyPages:
		return "", senseless("%d empty pages in a row", p.empty)
	}
	if p.seen == nil {
		p.seen = map[[sha256.Size]byte]struct{}{}
	}
	p.seen[sum] = struct{}{}
	return token, nil
}

// listAll asks for the pages of one list until its end. token is where the request
// that ask sends holds the page's token; entries are those of a page, and convert
// makes a domain value of each.
func listAll[Res interface{ GetNextPageToken() string }, P, T any](
	ctx context.Context, c *Client, timeout time.Duration, token *string,
	ask func(context.Context) (Res, error), entries func(Res) []P, convert func(P) (T, error),
) ([]T, error) {
	var out []T
	var pages Pages
	for {
		var res Res
		err := c.call(ctx, timeout, func(ctx context.Context) (err error) {
			res, err = ask(ctx)
			return err
		})
		if err != nil {
			return nil, err
		}
		page := entries(res)
		for _, p := range page {
			v, err := convert(p)
			if errors.Is(err, memory.ErrInvalidPath) {
				continue // about a path that this program cannot hold; the others count
			}
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		if *token, err = pages.Next(res.GetNextPageToken(), len(page)); err != nil {
			return nil, err
		}
		if *token == "" {
			return out, nil
		}
	}
}

// weigh takes note of a page's size in bytes and refuses what makes the list larger
// than limit.
func (p *Pages) weigh(size int, limit int64) error {
	if p.bytes += int64(size); p.bytes > limit {
		return senseless("a list of more than %d bytes", limit)
	}
	return nil
}

func senseless(format string, args ...any) error {
	return &memory.Error{Reason: memory.ReasonInternal, Message: "the hub's answer makes no sense: " + fmt.Sprintf(format, args...)}
}
