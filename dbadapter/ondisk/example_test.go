package ondisk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
)

// What was written is there when the store is opened again.
func Example() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(write(dir), read(dir)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// city/Athens
	// city/Berlin
	// city/Cairo
}

var secret = dbadapter.Secret{1, 2, 3}

func write(dir string) error {
	ctx := context.Background()
	store, err := ondisk.Open(dir, ondisk.Badger, ondisk.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	hasher := dbadapter.NewHasher(secret)
	namespace, err := store.Namespace(ctx, dbadapter.NamespaceIDOf(secret, nil), hasher, nil)
	if err != nil {
		return err
	}
	var writes []dbadapter.Write
	for _, city := range []string{"Berlin", "Athens", "Cairo"} {
		version := dbadapter.Version{Clock: dbadapter.TimestampAt(time.Now()), Writer: 1}
		record, err := dbadapter.Hash(hasher, dbadapter.Record{Key: []byte("city/" + city), Version: version})
		if err != nil {
			return err
		}
		writes = append(writes, dbadapter.Write{Record: record})
	}
	_, err = namespace.Apply(ctx, writes)
	return err
}

func read(dir string) error {
	ctx := context.Background()
	store, err := ondisk.Open(dir, ondisk.Badger, ondisk.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	namespace, err := store.Namespace(ctx, dbadapter.NamespaceIDOf(secret, nil), dbadapter.NewHasher(secret), nil)
	if err != nil {
		return err
	}
	snapshot, err := namespace.Snapshot()
	if err != nil {
		return err
	}
	defer snapshot.Close()
	for record, err := range snapshot.Scan(ctx, []byte("city/"), nil) {
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", record.Key)
	}
	return nil
}
