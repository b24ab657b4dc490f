package directory

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/golden"
	"github.com/syncd-io/syncd/internal/placement"
)

func record(clock uint64) *dbadapter.Record {
	return &dbadapter.Record{
		Key: []byte("a key"), Value: []byte("a value"), Version: dbadapter.Version{Clock: dbadapter.Timestamp(clock), Writer: 7, Incarnation: 9},
		Expires: 1 << 16, Replaces: []dbadapter.Replaced{{Writer: 3, Clock: 1}}, Signature: bytes.Repeat([]byte{1}, 64),
	}
}

func TestGoldenEntries(t *testing.T) {
	var b strings.Builder
	fmt.Fprintln(&b, "# the shard of an entry, and its value; docs/PROTOCOL.md, \"The directory\"")
	for _, s := range []placement.Shard{0, 1, 258, placement.MaxShards - 1} {
		e := EntryFor(record(5), s)
		fmt.Fprintf(&b, "entry %d: %x\n", s, e.Value)
	}
	golden.Compare(t, "testdata/entries.txt", b.String())
}

// An entry is what its record is, but for the value and the signature.
func TestEntryFollowsItsRecord(t *testing.T) {
	r := record(5)
	e := EntryFor(r, 300)
	if s, err := ShardOf(&e, 512); err != nil || s != 300 {
		t.Errorf("shard %d, %v", s, err)
	}
	if !bytes.Equal(e.Key, r.Key) || e.Version != r.Version || e.Expires != r.Expires || len(e.Replaces) != 1 || len(e.Signature) != 0 {
		t.Errorf("%+v", e)
	}
	if err := e.Validate(); err != nil {
		t.Error(err)
	}
	r.Value, r.Deleted, r.Expires = nil, true, 0
	e = EntryFor(r, 300)
	if _, err := ShardOf(&e, 512); !e.Deleted || len(e.Value) != 0 || !errors.Is(err, ErrEntry) || CheckEntry(&e, 512) != nil {
		t.Errorf("of a tombstone: %+v, %v", e, err)
	}
}

func FuzzEntry(f *testing.F) {
	for _, s := range []string{"", "\x01\x00\x05", "\x02\x00\x05", "\x01\x02\x00", "\x01\x00\x05\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		e := dbadapter.Record{Key: []byte("k"), Value: value}
		s, err := ShardOf(&e, 512)
		if (err == nil) != (CheckEntry(&e, 512) == nil) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		if again := EntryFor(&e, s); s >= 512 || !bytes.Equal(again.Value, value) {
			t.Errorf("shard %d of %x is written as %x", s, value, again.Value)
		}
	})
}

// All cases of two first writes that met, with a version below, at and above the held one.
func TestFate(t *testing.T) {
	held := record(5)
	other, same, deleted := EntryFor(record(6), 2), EntryFor(record(6), 1), EntryFor(record(6), 2)
	deleted.Deleted, deleted.Value, deleted.Expires = true, nil, 0
	older, oldDeleted := EntryFor(record(4), 2), deleted
	oldDeleted.Version.Clock = 4
	wrong := EntryFor(record(6), 9)
	// gone is a tombstone that its writer has made over another record; seen, over the held one, too.
	gone := func(clock dbadapter.Timestamp, seen bool) *dbadapter.Record {
		r := record(6)
		r.Deleted, r.Value, r.Expires = true, nil, 0
		r.Version.Clock, r.Version.Incarnation = clock, held.Version.Incarnation+1
		if seen {
			r.Replaces = []dbadapter.Replaced{{Writer: held.Version.Writer, Clock: held.Version.Clock}}
		}
		return r
	}
	twin := EntryFor(held, 2)
	dangling := EntryFor(record(9), 2)
	for _, c := range []struct {
		name string
		f    Found
		want Fate
	}{
		{"a tombstone is there that is before the entry", Found{Entry: &dangling, There: gone(7, false)}, Stay},
		{"the same, for good", Found{Entry: &dangling, There: gone(7, false), Sure: true}, Restore},
		{"one that had seen the record", Found{Entry: &dangling, There: gone(7, true), Sure: true}, Recede},
		{"one that is behind the entry", Found{Entry: &dangling, There: gone(10, false)}, Recede},
		{"the directory is not settled", Found{}, Stay},
		{"there is no entry, for good", Found{Sure: true}, Restore},
		{"the entry names this shard", Found{Entry: &same, Sure: true}, Stay},
		{"the entry names no shard", Found{Entry: &wrong, Sure: true}, Stay},
		{"an older entry: this record's is on the way", Found{Entry: &older, There: record(4)}, Stay},
		{"an older entry: this record's was lost", Found{Entry: &older, There: record(4), Sure: true}, Restore},
		{"an entry of the same version", Found{Entry: &twin, Sure: true}, Stay},
		{"the winner is there", Found{Entry: &other, There: record(6)}, Recede},
		{"the winner's record is overwritten", Found{Entry: &other, There: record(7)}, Recede},
		{"there is an older record, perhaps for now", Found{Entry: &other, There: record(4)}, Stay},
		{"there is an older record, for good", Found{Entry: &other, There: record(4), Sure: true}, Restore},
		{"nothing is there, perhaps for now", Found{Entry: &other}, Stay},
		{"nothing is there, for good", Found{Entry: &other, Sure: true}, Restore},
		{"deleted later", Found{Entry: &deleted}, Recede},
		{"deleted before: this record's entry is on the way", Found{Entry: &oldDeleted}, Stay},
		{"deleted before: this record's entry was lost", Found{Entry: &oldDeleted, Sure: true}, Restore},
	} {
		if got := FateOf(held, 1, 4, c.f); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	tombstone := record(5)
	tombstone.Deleted, tombstone.Value, tombstone.Expires = true, nil, 0
	if FateOf(tombstone, 1, 4, Found{Entry: &other, There: record(6)}) != Stay || FateOf(tombstone, 1, 4, Found{Sure: true}) != Stay {
		t.Error("a tombstone gives way")
	}
}
