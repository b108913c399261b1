package service

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	"github.com/memsvc/memsvc/internal/memory"
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

// decode reads the token into at; without a token at stays as it is.
func (p Page) decode(at any) error {
	if p.Token == "" {
		return nil
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(p.Token)
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		err = dec.Decode(at)
	}
	if err != nil {
		return &memory.Error{Reason: memory.ReasonInvalidArgument, Message: "page token: not one of ours; start at the first page"}
	}
	return nil
}

func encodePage(at any) string {
	text, err := json.Marshal(at)
	if err != nil {
		// Positions are plain structs of strings and numbers.
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// pageOf cuts one page out of items, which are in a stable order and named by key;
// a page begins after the name in the token.
func pageOf[T any](items []T, page Page, name func(T) string) ([]T, string, error) {
	var at struct{ After string }
	if err := page.decode(&at); err != nil {
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
	return items[:n], encodePage(at), nil
}
