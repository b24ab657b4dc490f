package replica_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/replica"
)

// A snapshot answers as of the moment when it was opened; the live sketch goes
// on with each commit.
func Example() {
	ctx := context.Background()
	keys := reconcile.DeriveKeys(dbadapter.Secret{1, 2, 3}, nil)
	live := replica.New(keys)
	store := memdb.New(memdb.Options{})
	defer store.Close()
	ns, err := store.Namespace(ctx, keys.ID, keys.Hasher, live.Observe)
	if err != nil {
		log.Fatal(err)
	}
	put := func(key string) {
		version := dbadapter.Version{Clock: dbadapter.TimestampAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), Writer: 1}
		r, err := dbadapter.Hash(keys.Hasher, dbadapter.Record{Key: []byte(key), Version: version})
		if err != nil {
			log.Fatal(err)
		}
		if _, err := ns.Apply(ctx, []dbadapter.Write{{Record: r}}); err != nil {
			log.Fatal(err)
		}
	}
	put("a")
	put("b")
	snap, err := live.Snapshot(ctx, ns, nil) // to be handed to reconcile.Initiate, say
	if err != nil {
		log.Fatal(err)
	}
	defer snap.Close()
	put("c")

	digest, records, _ := live.State()
	fmt.Println("snapshot:", snap.Sum().Records, "records")
	fmt.Println("live:    ", records, "records")
	fmt.Println("equal:   ", digest == snap.Sum().Digest)
	// Output:
	// snapshot: 2 records
	// live:     3 records
	// equal:    false
}
