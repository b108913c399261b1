package reconcile

import "bytes"

var bom = []byte("\ufeff")

// shape is what a text is written in, apart from its words. It is merged by itself,
// so that an editor which turns LF into CRLF does not touch every line.
type shape struct {
	bom  bool // begins with a byte order mark
	crlf bool // every line ends in CRLF
	open bool // the last line has no end
}

// plain takes the shapes off three texts and returns them with LF, closed last lines
// and no mark, and the shape that the merged text must have. Line ends stay as they
// are when one of the texts mixes them. Without a base, the usual shape wins.
func plain(base []byte, hasBase bool, local, remote []byte) (b, l, r []byte, merged shape) {
	sl, sr := shapeOf(local), shapeOf(remote)
	sb := shapeOf(base)
	if !hasBase {
		sb = shape{bom: true, crlf: true, open: true}
	}
	mixed := mixesLineEnds(base) || mixesLineEnds(local) || mixesLineEnds(remote)
	// A text of one line without an end has no say on how lines end.
	switch noEnds := func(t []byte) bool { return bytes.IndexByte(t, '\n') < 0 }; {
	case noEnds(local):
		sl.crlf = sr.crlf
	case noEnds(remote):
		sr.crlf = sl.crlf
	}
	merged = shape{
		bom:  pick(sb.bom, sl.bom, sr.bom),
		crlf: !mixed && pick(sb.crlf, sl.crlf, sr.crlf),
		open: pick(sb.open, sl.open, sr.open),
	}
	return strip(base, mixed), strip(local, mixed), strip(remote, mixed), merged
}

func shapeOf(t []byte) shape {
	n := bytes.Count(t, []byte("\n"))
	return shape{
		bom:  bytes.HasPrefix(t, bom),
		crlf: n > 0 && n == bytes.Count(t, []byte("\r\n")),
		open: len(t) > 0 && t[len(t)-1] != '\n',
	}
}

func mixesLineEnds(t []byte) bool {
	n := bytes.Count(t, []byte("\r\n"))
	return n > 0 && n != bytes.Count(t, []byte("\n"))
}

// pick is the three-way merge of two-valued things: whoever changed it wins, and two
// who changed it agree.
func pick(base, local, remote bool) bool {
	if local == base {
		return remote
	}
	return local
}

func strip(t []byte, mixed bool) []byte {
	t = bytes.TrimPrefix(t, bom)
	if !mixed {
		t = bytes.ReplaceAll(t, []byte("\r\n"), []byte("\n"))
	}
	if len(t) > 0 && t[len(t)-1] != '\n' {
		t = append(t[:len(t):len(t)], '\n')
	}
	return t
}

func (s shape) put(t []byte) []byte {
	if s.open {
		t = bytes.TrimSuffix(t, []byte("\n"))
	}
	if s.crlf {
		t = bytes.ReplaceAll(t, []byte("\n"), []byte("\r\n"))
	}
	if s.bom {
		t = append(append([]byte(nil), bom...), t...)
	}
	return t
}
