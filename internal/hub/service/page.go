package service

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// Page says which part of a list is asked for.
type Page struct {
	Size  int    // 0 = the method's default
	Token string // from the previous page; "" = the first
}

func (p Page) size(byDefault, most int) int {
	if p.Size <= 0 {
		return byDefault
	}
	return min(p.Size, most)
}

// listed names what a page token goes on with: the list, what it is of, and what
// narrows it. A token of another list is refused, since its position and head would
// say something false here. It protects from mistakes; whether the caller may see the
// list is asked anew for each page.
type listed string

// listOf returns the list of that name and scope, narrowed as the parts say.
func listOf(name, scope string, narrowed ...any) listed {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", name, scope, fmt.Sprintf("%#v", narrowed)))
	return listed(base64.RawURLEncoding.EncodeToString(sum[:9]))
}

// pageToken is what a token holds.
type pageToken struct {
	Of listed          `json:"of"`
	At json.RawMessage `json:"at"`
}

// decode reads the position in the list from the token into at; without a token at
// stays as it is.
func (p Page) decode(of listed, at any) error {
	if p.Token == "" {
		return nil
	}
	var token pageToken
	text, err := base64.RawURLEncoding.Strict().DecodeString(p.Token)
	if err == nil {
		err = strictly(text, &token)
	}
	if err == nil && token.Of != of {
		return invalid("page token: of another list or another query; start at the first page")
	}
	if err == nil {
		err = strictly(token.At, at)
	}
	if err != nil {
		return invalid("page token: not one of ours; start at the first page")
	}
	return nil
}

func strictly(text []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	return dec.Decode(to)
}

// encodePage returns the token of a position in the list.
func encodePage(of listed, at any) string {
	position, err := json.Marshal(at)
	if err == nil {
		position, err = json.Marshal(pageToken{of, position})
	}
	if err != nil {
		// Positions are plain structs of strings and numbers.
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(position)
}

// pageOf cuts one page out of items, which are in a stable order and named by key;
// a page begins after the name in the token.
func pageOf[T any](of listed, items []T, page Page, name func(T) string) ([]T, string, error) {
	var at struct{ After string }
	if err := page.decode(of, &at); err != nil {
		return nil, "", err
	}
	if at.After != "" {
		i := 0
		for i < len(items) && name(items[i]) <= at.After {
			i++
		}
		items = items[i:]
	}
	n := page.size(100, 1000)
	if len(items) <= n {
		return items, "", nil
	}
	at.After = name(items[n-1])
	return items[:n], encodePage(of, at), nil
}
