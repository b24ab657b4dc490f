// Package badgerdb is a store on disk, over the Badger key-value database.
//
//	store, err := badgerdb.Open("/var/lib/syncd/store", badgerdb.Options{})
//	namespace, err := store.Namespace(ctx, id, hasher, nil)
//	outcomes, err := namespace.Apply(ctx, []dbadapter.Write{{Record: record}})
//
// What it adds to Badger:
//
//   - Writes of many callers share one transaction and one write to the disk
//     (queue.go, committer.go), and are on the disk before Apply returns.
//   - Every entry carries a checksum that is verified when it is read (layout.go,
//     envelope.go), and a record is compared with its bucket, so that an older
//     envelope is not taken for the newest (verify.go, scan.go).
//   - A lock, a format stamp, a note of a clean close and a look at the files
//     before Badger opens them make damage a named error (probe.go, clean.go).
//   - A dropped namespace is gone with one small transaction; the eraser frees its
//     space in the background (erase.go).
//   - A checkpoint copies all open namespaces as of one moment, a second time only
//     what has changed, and Restore makes a store of such copies (checkpoint.go,
//     copying.go, restore.go). A copy gives way to commits (giveway.go).
//   - Records that leave the set for the kept log do so in one transaction
//     (stage.go, kept.go); Compact frees the space of what was removed (compact.go).
//   - The kernel is told how tables are read, and the process holds few of their pages
//     (pages.go).
//
// What is not promised: if the disk acknowledges what it has not stored, a power
// cut loses it. Damage to the files while the store is open is found when the
// damaged entry is read.
package badgerdb
