package dbadapter_test

import (
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Two nodes that hold the same record compute the same pair and the same digest,
// if they share the namespace's secret.
func ExampleHash() {
	hasher := dbadapter.NewHasher(dbadapter.Secret{1, 2, 3})
	record := dbadapter.Record{
		Key:     []byte("hello"),
		Value:   []byte("world"),
		Version: dbadapter.Version{Clock: dbadapter.TimestampAt(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), Writer: 7},
	}
	here, err := dbadapter.Hash(hasher, record)
	if err != nil {
		fmt.Println(err)
		return
	}
	changed := record
	changed.Value = []byte("moon")
	changed.Version.Clock++
	there, err := dbadapter.Hash(hasher, changed)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the same index:", here.Index == there.Index)
	fmt.Println("the same checksum:", dbadapter.PairOf(hasher, &here) == dbadapter.PairOf(hasher, &there))
	fmt.Println("the changed record wins:", there.Compare(&here.Record) > 0)
	// Output:
	// the same index: true
	// the same checksum: false
	// the changed record wins: true
}

// The greater version wins on every node: clock, then writer, then incarnation.
func ExampleRecord_Compare() {
	noon := dbadapter.TimestampAt(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	ours := dbadapter.Record{Key: []byte("k"), Value: []byte("ours"), Version: dbadapter.Version{Clock: noon, Writer: 1}}
	theirs := dbadapter.Record{Key: []byte("k"), Value: []byte("theirs"), Version: dbadapter.Version{Clock: noon, Writer: 2}}
	fmt.Println(ours.Compare(&theirs))
	later := ours
	later.Version.Clock++
	fmt.Println(later.Compare(&theirs))
	// Output:
	// -1
	// 1
}

// Two keys that share an index stand in the sketch as one pair.
func ExampleBucket() {
	hasher := dbadapter.NewHasher(dbadapter.Secret{})
	var bucket dbadapter.Bucket
	for _, key := range []string{"a", "b"} { // by key
		record, err := dbadapter.Hash(hasher, dbadapter.Record{Key: []byte(key)})
		if err != nil {
			fmt.Println(err)
			return
		}
		record.Index = 42 // as chance may have it
		bucket.Add(&record)
	}
	fmt.Println(bucket.Records, bucket.Pair(hasher).Index)
	// Output: 2 42
}
