package memdb_test

import (
	"context"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
)

// A snapshot stays as it is while writes go on.
func Example() {
	ctx := context.Background()
	secret := dbadapter.Secret{1, 2, 3}
	hasher := dbadapter.NewHasher(secret)
	store := memdb.New(memdb.Options{})
	defer store.Close()
	namespace, err := store.Namespace(ctx, dbadapter.NamespaceIDOf(secret, nil), hasher, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	put := func(value string, at time.Time) {
		version := dbadapter.Version{Clock: dbadapter.TimestampAt(at), Writer: 1}
		record, err := dbadapter.Hash(hasher, dbadapter.Record{Key: []byte("greeting"), Value: []byte(value), Version: version})
		if err != nil {
			fmt.Println(err)
			return
		}
		if _, err := namespace.Apply(ctx, []dbadapter.Write{{Record: record}}); err != nil {
			fmt.Println(err)
		}
	}
	monday := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	put("hello", monday)
	before, err := namespace.Snapshot()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer before.Close()
	put("good day", monday.Add(time.Hour))
	put("an older write does not win", monday.Add(-time.Hour))
	now, err := namespace.Snapshot()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer now.Close()
	for _, snapshot := range []dbadapter.Snapshot{before, now} {
		record, err := snapshot.Get([]byte("greeting"))
		fmt.Printf("as of change %d: %s, %v\n", snapshot.Seq(), record.Value, err)
	}
	// Output:
	// as of change 1: hello, <nil>
	// as of change 2: good day, <nil>
}
