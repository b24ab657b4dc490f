//go:build unix

package ondisk_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/dgraph-io/badger/v4"

	"github.com/syncd-io/syncd/dbadapter"
)

// entries makes of each batch what a store writes of it, without hashing or deciding
// anything: a record with its head, a bucket under a random index, and its part of an
// entry of the change log, in the order of their keys.
func entries() func([]dbadapter.Write) [][2][]byte {
	random := rand.New(rand.NewPCG(1, 1))
	seq := uint64(0)
	return func(writes []dbadapter.Write) [][2][]byte {
		// Keys and values, without the keys of the import: see dbadapter/internal/kvstore.
		const prefix, head, index, bucket, change, inLog = 5, 33, 11, 15, 53, 850
		all := make([][2][]byte, 0, 2*len(writes)+8)
		for i := range writes {
			r := &writes[i].Record
			key := append(make([]byte, prefix, prefix+len(r.Key)), r.Key...)
			key[0] = 'r'
			all = append(all, [2][]byte{key, append(make([]byte, head, head+len(r.Value)), r.Value...)})
			place := make([]byte, index)
			place[0] = 'i'
			binary.BigEndian.PutUint64(place[1:], random.Uint64())
			all = append(all, [2][]byte{place, append(make([]byte, bucket, bucket+len(r.Key)), r.Key...)})
		}
		for some := range slices.Chunk(writes, inLog) {
			seq += uint64(len(some))
			all = append(all, [2][]byte{binary.BigEndian.AppendUint64([]byte("log  "), seq), make([]byte, len(some)*(change+len(some[0].Record.Key)))})
		}
		slices.SortFunc(all, func(a, b [2][]byte) int { return bytes.Compare(a[0], b[0]) })
		return all
	}
}

// badgerAlone writes the entries that make says into transactions of Badger.
func badgerAlone(db *badger.DB, make func([]dbadapter.Write) [][2][]byte) func([]dbadapter.Write) error {
	return func(writes []dbadapter.Write) error {
		txn := db.NewTransaction(true)
		defer txn.Discard()
		for _, e := range make(writes) {
			if err := txn.Set(e[0], e[1]); err != nil {
				return err
			}
		}
		return txn.Commit()
	}
}

// pebbleAlone does the same in batches of Pebble.
func pebbleAlone(b *testing.B, make func([]dbadapter.Write) [][2][]byte) (write func([]dbadapter.Write) error, closeAll func() error) {
	o := &pebble.Options{MemTableSize: 32 << 20, MemTableStopWritesThreshold: 3}
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	db, err := pebble.Open(b.TempDir(), o)
	if err != nil {
		b.Fatal(err)
	}
	return func(writes []dbadapter.Write) error {
		batch := db.NewBatch()
		for _, e := range make(writes) {
			if err := batch.Set(e[0], e[1], nil); err != nil {
				return err
			}
		}
		return batch.Commit(pebble.Sync)
	}, db.Close
}
