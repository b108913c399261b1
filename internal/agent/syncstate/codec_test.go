package syncstate

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/syncer"
)

// fillValue puts something other than zero into every exported field below v.
func fillValue(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString("text" + string(rune('a'+*n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint64, reflect.Uint32:
		v.SetUint(uint64(*n % 200))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillValue(v.Index(0), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillValue(key, n)
		fillValue(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if t, ok := reflect.TypeAssert[interface{ IsZero() bool }](v); ok && t.IsZero() {
			u, _ := full()
			v.Set(reflect.ValueOf(u.PutConflicts[0].Time))
			return
		}
		for i := range v.NumField() {
			fillValue(v.Field(i), n)
		}
	default:
		panic("no value for " + v.Type().String())
	}
}

// Every field of an Update survives, those that somebody will add to it too.
func TestEveryFieldOfAnUpdateSurvives(t *testing.T) {
	var u syncer.Update
	n := 0
	fillValue(reflect.ValueOf(&u).Elem(), &n)
	u.Texts, u.Relaxed = nil, false // the record's, not the meta's
	b, err := encode(u, true, nil)
	must(t, err)
	got, fresh, _, err := newDecoder().decode(b)
	must(t, err)
	if diff := cmp.Diff(u, got); diff != "" || !fresh {
		t.Errorf("a field is lost on the way to the disk; add it to rest and to encode and decode: %s", diff)
	}
}

// So does every field of a state through a snapshot.
func TestEveryFieldOfAStateSurvives(t *testing.T) {
	s := syncer.NewLinkState()
	var u syncer.Update
	n := 0
	fillValue(reflect.ValueOf(&u).Elem(), &n)
	u.ClearHalt, u.ClearRecovery = false, false
	s.Apply(u)
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "Fresh" {
			t.Fatalf("the test leaves LinkState.%s empty", name)
		}
	}
	dir := t.TempDir()
	d := mustOpen(t, dir)
	mustApply(t, d, u)
	must(t, d.rewrite())
	must(t, d.Close())
	d, err := Open(dir, link, Options{})
	must(t, err)
	defer d.Close()
	if diff := cmp.Diff(s, load(t, d)); diff != "" {
		t.Errorf("a field is lost in a snapshot; add it to snapshotOf: %s", diff)
	}
}

// The bytes on disk are a promise to later versions: a journal of the first one is
// still read. When this fails, a new codecVersion is due, with a reader for the old.
func TestJournalOfVersionOne(t *testing.T) {
	u, texts := full()
	u.PutMarks, u.PutResolved = nil, nil // younger than that journal
	for p, e := range u.PutBaseline {
		e.Author = ""
		u.PutBaseline[p] = e
	}
	u.PutAhead[0].Author = ""
	golden := filepath.Join("testdata", "journal-v1")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		dir := t.TempDir()
		s := mustOpen(t, dir)
		mustApply(t, s, u)
		must(t, os.WriteFile(golden, readJournal(t, dir), 0o644))
	}
	b, err := os.ReadFile(golden)
	must(t, err)
	s := mustOpen(t, withJournal(t, t.TempDir(), b))
	want := syncer.NewLinkState()
	want.Apply(u)
	got := load(t, s)
	for id, trash := range want.Trash { // trash is young in every run but the first
		trash.Time = got.Trash[id].Time
		want.Trash[id] = trash
	}
	if len(got.Trash) == 0 {
		want.Trash = got.Trash
	}
	check(t, s, want, texts)
	if !bytes.Contains(b, []byte(`"PutConflicts":[{"ID":"1","Path":"c.md"`)) {
		t.Error("the names in the JSON are not what they were")
	}
}
