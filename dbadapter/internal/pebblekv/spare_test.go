package pebblekv

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// Once much has been written, and all of it flushed and read, the cache holds no more
// blocks than it was given: what the tables in memory take meanwhile is not filled.
func TestCacheAtRest(t *testing.T) {
	const size = 8 << 20
	opened, err := Engine{NoSync: true, Cache: size}.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := opened.(*db)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	const entries, each = 1200, 64 << 10 // some tables in memory
	for i := range entries {
		txn := d.Begin()
		if err := txn.Set(binary.BigEndian.AppendUint32(nil, uint32(i)), bytes.Repeat([]byte{byte(i)}, each)); err != nil {
			t.Fatal(err)
		}
		if err := txn.Commit(); err != nil {
			t.Fatal(err)
		}
		txn.Discard()
	}
	if err := d.pebble.Flush(); err != nil {
		t.Fatal(err)
	}
	read := 0
	for range 3 { // blocks are kept once they are read again
		view := d.View()
		it := view.Iterate(nil)
		for it.Seek(nil); it.Valid(); it.Next() {
			if err := it.Value(func([]byte) error { read++; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		it.Close()
		view.Close()
	}
	if read != 3*entries {
		t.Fatalf("%d entries were read", read)
	}
	// The cache is cut into shards, each of which may end in a block.
	if held := d.pebble.Metrics().BlockCache.Size; held > size+size/8 || held < size/2 {
		t.Errorf("at rest the cache holds %d bytes of blocks; it was given %d", held, size)
	}
}
