// Package badgerdb is a store on disk, over the Badger key-value database.
//
//	store, err := badgerdb.Open("/var/lib/syncd/store", badgerdb.Options{})
//	namespace, err := store.Namespace(ctx, id, hasher, nil)
//	outcomes, err := namespace.Apply(ctx, []dbadapter.Write{{Record: record}})
//
// Package dbadapter/internal/kvstore makes the store of a key-value database. Package
// dbadapter/internal/badgerkv is that database. It says how Badger is opened, what must be
// looked at in its files before, and how it is made to free space.
//
// What is not promised: if the disk acknowledges what it has not stored, a power
// cut loses it. Damage to the files while the store is open is found when the
// damaged entry is read.
package badgerdb
