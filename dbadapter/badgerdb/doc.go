// Package badgerdb is a store on disk, over the Badger key-value database.
//
// What it adds to Badger: writes of many callers share one transaction and one
// write to the disk (committer.go); every entry carries a checksum that is
// verified when it is read (layout.go, envelope.go); the change log (changes.go);
// a lock, a format stamp, a note of a clean close and a look at the files before
// Badger opens them, so that damage is a named error rather than a wrong answer.
//
//	store, err := badgerdb.Open("/var/lib/syncd/store", badgerdb.Options{})
//	namespace, err := store.Namespace(ctx, id, dbadapter.NewHasher(secret), nil)
//	record, err := dbadapter.Hash(hasher, dbadapter.Record{Key: key, Value: value, Version: version})
//	outcomes, err := namespace.Apply(ctx, []dbadapter.Write{{Record: record}})
//
// What is not promised: a disk that acknowledges what it has not stored, or that
// changes bytes while the store is open, is beyond it.
package badgerdb
