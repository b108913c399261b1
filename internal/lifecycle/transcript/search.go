package transcript

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/lexical"
)

// Query says what to look for in conversations, and how much to return.
type Query struct {
	Text     string // words that a piece of a message must all hold, whatever their case
	Limit    int    // hits; 0 = 20
	MaxBytes int    // of all excerpts together; 0 = 8 KiB
	Excerpt  int    // characters of one; 0 = 240
	// Progress, if set, hears how many of how many bytes have been looked through.
	Progress func(done, total int64)
}

// Hit is a place in a conversation.
type Hit struct {
	File    string
	Session string
	Time    time.Time // zero if the line has none
	Role    string    // "user", "assistant", "tool", "client"
	Excerpt string    // on one line
	Offset  int64     // of the line in the file
}

// Found is what a search brought.
type Found struct {
	Hits  []Hit // the newest first
	Files int   // looked through
	Cut   bool  // there may be more: a bound was reached
	// Skipped names files that could not be read, with the reason.
	Skipped []error
}

// The bounds of a search, unless the query says otherwise.
const (
	defaultLimit    = 20
	defaultMaxBytes = 8 << 10
	defaultExcerpt  = 240
)

// heldBytes bounds the line that a search holds; pieceBytes the piece of a longer one, and
// overlapBytes what two pieces have in common, so that a hit on their border is whole.
const (
	heldBytes    = 2 << 20
	pieceBytes   = 1 << 20
	overlapBytes = 16 << 10
	frameBytes   = 4 << 10 // of either end: where a longer line says whose it is
)

// Search looks through the transcripts (*.jsonl) below the directories, the file that
// changed last first and each from its end, and stops at the bounds. It holds one line
// at a time, or a piece of it: of a line over heldBytes, such as one with pictures, all
// words must stand in one piece, and it is a hit once. A directory that is not there has
// no transcripts.
func Search(ctx context.Context, dirs []string, q Query) (Found, error) {
	words := strings.Fields(strings.ToLower(q.Text))
	if len(words) == 0 {
		return Found{}, errors.New("search transcripts: no word to look for; give one")
	}
	q.Limit = cmp.Or(q.Limit, defaultLimit)
	q.MaxBytes = cmp.Or(q.MaxBytes, defaultMaxBytes)
	q.Excerpt = cmp.Or(q.Excerpt, defaultExcerpt)
	files, total, err := list(dirs)
	if err != nil {
		return Found{}, err
	}
	s := search{q: q, words: words, total: total}
	for _, f := range files {
		if s.full() {
			s.found.Cut = true
			break
		}
		if err := s.file(ctx, f); err != nil {
			if ctx.Err() != nil {
				return s.found, ctx.Err()
			}
			s.found.Skipped = append(s.found.Skipped, err)
		}
		s.done += f.size
		s.found.Files++
		s.progress(0)
	}
	return s.found, nil
}

type file struct {
	name string
	size int64
	mod  time.Time
}

// list returns the transcripts below dirs, each once, the newest first.
func list(dirs []string) (files []file, total int64, err error) {
	seen := map[string]bool{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case !e.Type().IsRegular() || !strings.HasSuffix(name, ".jsonl") || seen[name]:
				return nil
			}
			fi, err := e.Info()
			if err != nil {
				return nil // gone meanwhile
			}
			seen[name] = true
			files = append(files, file{name, fi.Size(), fi.ModTime()})
			total += fi.Size()
			return nil
		})
		if err != nil {
			return nil, 0, fmt.Errorf("search transcripts: %w", err)
		}
	}
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(b.mod.Compare(a.mod), strings.Compare(a.name, b.name))
	})
	return files, total, nil
}

type search struct {
	q           Query
	words       []string
	found       Found
	bytes       int // of excerpts so far
	done, total int64
	lower       []byte // reused, as are the pieces
	piece       []byte
	plain       []byte
}

func (s *search) full() bool {
	return len(s.found.Hits) >= s.q.Limit || s.bytes >= s.q.MaxBytes
}

func (s *search) progress(within int64) {
	if s.q.Progress != nil {
		s.q.Progress(s.done+within, s.total)
	}
}

func (s *search) file(ctx context.Context, f file) error {
	r, _, err := Open(f.name)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // only read
	told := f.size
	for l, err := range backwardWithin(r, f.size, heldBytes) {
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if told-l.Offset > 8<<20 {
			told = l.Offset
			s.progress(f.size - told)
		}
		if l.Text == nil {
			if s.full() {
				s.found.Cut = true
				return nil
			}
			if err := s.long(ctx, f.name, r, l); err != nil {
				return err
			}
			continue
		}
		if !s.mayHold(l.Text) {
			continue
		}
		line, ok := Parse(l.Text)
		if !ok {
			continue
		}
		for _, b := range slices.Backward(line.Blocks) {
			if s.full() {
				s.found.Cut = true
				return nil
			}
			s.block(f.name, l.Offset, &line, b)
		}
	}
	return nil
}

// long looks through a line that is not held, piece by piece, and takes its first hit.
func (s *search) long(ctx context.Context, name string, r io.ReaderAt, l Raw) error {
	if s.piece == nil {
		s.piece = make([]byte, pieceBytes)
	}
	last := make([]byte, min(frameBytes, l.Size))
	if _, err := r.ReadAt(last, l.Offset+l.Size-int64(len(last))); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var line Line
	for at := int64(0); at < l.Size; at += pieceBytes - overlapBytes {
		if err := ctx.Err(); err != nil {
			return err
		}
		text := s.piece[:min(pieceBytes, l.Size-at)]
		if _, err := r.ReadAt(text, l.Offset+at); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if at == 0 {
			line = frame(text, last)
		}
		if !s.mayHold(text) {
			continue
		}
		s.plain = unescape(s.plain[:0], text)
		n := len(s.found.Hits)
		if s.block(name, l.Offset, &line, Block{Kind: line.Blocks[0].Kind, Text: string(s.plain)}); len(s.found.Hits) > n {
			return nil
		}
	}
	return nil
}

// frame reads what the first and the last bytes of a line tell: the fields before its
// long ones and after them, and whether it holds a tool's result.
func frame(first, last []byte) Line {
	kind := Text
	if mark := []byte(`"tool_result"`); bytes.Contains(first[:min(len(first), frameBytes)], mark) || bytes.Contains(last, mark) {
		kind = ToolResult
	}
	var r raw
	to := map[string]any{"type": &r.Type, "sessionId": &r.SessionID, "timestamp": &r.Timestamp, "isMeta": &r.IsMeta}
	take := func(name string, value json.RawMessage) {
		if to[name] != nil {
			_ = json.Unmarshal(value, to[name]) // another shape says nothing
		}
	}
	// What ends as an object does from one of its commas on, are its last fields.
	for at := 0; at < len(last); {
		i := bytes.Index(last[at:], []byte(`,"`))
		if i < 0 {
			break
		}
		at += i + 1
		var fields map[string]json.RawMessage
		if json.Unmarshal(append([]byte{'{'}, last[at:]...), &fields) == nil {
			for name, value := range fields {
				take(name, value)
			}
			break
		}
	}
	dec := json.NewDecoder(bytes.NewReader(first))
	_, err := dec.Token() // the opening brace
	for err == nil && dec.More() {
		key, kerr := dec.Token()
		name, _ := key.(string)
		var value json.RawMessage
		if err = errors.Join(kerr, dec.Decode(&value)); err == nil {
			take(name, value)
		}
	}
	line := r.line()
	line.Blocks = []Block{{Kind: kind}}
	return line
}

// unescape appends a piece of JSON with its texts as a person reads them.
func unescape(dst, src []byte) []byte {
	for len(src) > 0 {
		i := bytes.IndexByte(src, '\\')
		if i < 0 || i+1 == len(src) {
			return append(dst, src...)
		}
		dst = append(dst, src[:i]...)
		n := 2
		switch c := src[i+1]; c {
		case 'n', 'r', 't', 'b', 'f':
			dst = append(dst, ' ')
		case 'u':
			// Surrogates come in pairs; encoding/json knows them.
			for n = 6; bytes.HasPrefix(src[min(i+n, len(src)):], []byte(`\u`)); n += 6 {
			}
			n = min(n, len(src)-i)
			var text string
			if json.Unmarshal(fmt.Appendf(nil, `"%s"`, src[i:i+n]), &text) == nil {
				dst = append(dst, text...)
			}
		default:
			dst = append(dst, c)
		}
		src = src[i+n:]
	}
	return dst
}

// mayHold looks at the bytes of a line before it is parsed. A text that JSON may have
// spelled otherwise is not judged by its bytes.
func (s *search) mayHold(text []byte) bool {
	if bytes.Contains(text, []byte(`\u`)) {
		return true
	}
	s.lower = s.lower[:0]
	for _, c := range text {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		s.lower = append(s.lower, c)
	}
	for _, w := range s.words {
		if isPlain(w) && !bytes.Contains(s.lower, []byte(w)) {
			return false
		}
	}
	return true
}

// isPlain reports whether a word stands in JSON as it is, and has no case but ASCII's.
func isPlain(w string) bool {
	for _, r := range w {
		if r == '"' || r == '\\' || r == '/' || r < ' ' || r > '~' && !hasNoCase(r) {
			return false
		}
	}
	return true
}

// hasNoCase knows the scripts of China, Japan and Korea, where a byte is a byte.
func hasNoCase(r rune) bool { return r >= 0x2e80 && r <= 0xd7ff }

func (s *search) block(file string, offset int64, line *Line, b Block) {
	text := b.Text
	if b.Kind == ToolUse {
		text = b.Tool + " " + string(b.Input)
	}
	lower := strings.ToLower(text)
	for _, w := range s.words {
		if !strings.Contains(lower, w) {
			return
		}
	}
	h := Hit{File: file, Session: line.SessionID, Time: line.Time, Role: role(line, b), Offset: offset,
		Excerpt: lexical.Snippet(near(text, lower, s.words), s.q.Text, s.q.Excerpt)}
	s.bytes += len(h.Excerpt)
	s.found.Hits = append(s.found.Hits, h)
}

// nearBytes is how much of a long text around its first hit goes into the choice of an
// excerpt.
const nearBytes = 16 << 10

// near cuts a long text around the first word, on the borders of characters.
func near(text, lower string, words []string) string {
	at := strings.Index(lower, words[0])
	if len(text) <= nearBytes || len(lower) != len(text) {
		return text
	}
	from, to := max(at-nearBytes/2, 0), min(at+nearBytes/2, len(text))
	return strings.ToValidUTF8(text[from:to], "")
}

func role(line *Line, b Block) string {
	switch {
	case b.Kind == ToolUse, b.Kind == ToolResult:
		return "tool"
	case line.Kind == Assistant:
		return "assistant"
	case line.Kind == User && !line.Meta:
		return "user"
	}
	return "client"
}
