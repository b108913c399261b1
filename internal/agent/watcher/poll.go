package watcher

import (
	"encoding/binary"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// printer computes a number of a tree's names and stats that changes when the tree
// does. It opens directories only, never a file.
type printer struct{ seed maphash.Seed }

func newPrinter() printer { return printer{maphash.MakeSeed()} }

// tree returns the print of the tree below root. What cannot be read counts as
// such, so that becoming readable is a change.
func (p printer) tree(root string) uint64 {
	var sum uint64
	for todo := []string{root}; len(todo) > 0; {
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		entries, err := readDir(dir)
		if err != nil {
			sum += p.entry(dir+"\x00unreadable", nil)
			continue
		}
		for _, e := range entries {
			name := e.Name()
			path := filepath.Join(dir, name)
			if name != ignoreFile && isNoise(name) {
				continue
			}
			if e.IsDir() {
				sum += p.entry(path, nil)
				todo = append(todo, path)
				continue
			}
			if name != ignoreFile && !strings.HasSuffix(name, ".md") {
				continue
			}
			fi, err := os.Lstat(path)
			if err != nil {
				continue // gone since it was listed
			}
			sum += p.entry(path, fi)
		}
	}
	return sum
}

// entry returns the print of one name. Prints are added up, so that the order in
// which a directory is listed does not count.
func (p printer) entry(path string, fi fs.FileInfo) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	h.WriteString(path)
	if fi != nil {
		inode, ctime := inodeAndCtime(fi)
		var b [40]byte
		binary.LittleEndian.PutUint64(b[0:], uint64(fi.Size()))
		binary.LittleEndian.PutUint64(b[8:], uint64(fi.ModTime().UnixNano()))
		binary.LittleEndian.PutUint64(b[16:], uint64(fi.Mode()))
		binary.LittleEndian.PutUint64(b[24:], inode)
		binary.LittleEndian.PutUint64(b[32:], uint64(ctime))
		h.Write(b[:])
	}
	return h.Sum64()
}
