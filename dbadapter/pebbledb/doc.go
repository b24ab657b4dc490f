// Package pebbledb is a store on disk, over the Pebble key-value database.
//
//	store, err := pebbledb.Open("/var/lib/syncd/store", pebbledb.Options{})
//	namespace, err := store.Namespace(ctx, id, hasher, nil)
//	outcomes, err := namespace.Apply(ctx, []dbadapter.Write{{Record: record}})
//
// It keeps the same entries as dbadapter/badgerdb, and reads its copies. Both are
// dbadapter/internal/kvstore over an engine; here that is dbadapter/internal/pebblekv.
// Pebble takes less memory, since it maps no files, and less time to write.
//
// What is not promised: if the disk acknowledges what it has not stored, a power
// cut loses it. Damage to a table is found when the damaged block is read. Where the
// list of tables cannot be written, the process ends.
package pebbledb
