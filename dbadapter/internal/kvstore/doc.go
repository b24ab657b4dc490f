// Package kvstore makes a store (dbadapter.Store, dbadapter.Backuper) of an ordered
// key-value database (dbadapter/internal/kv). What it adds to one:
//
//   - Writes of many callers share one transaction and one write to the disk
//     (committer.go), and are on the disk before Apply returns.
//   - Every entry carries a checksum that is verified when it is read
//     (dbadapter/internal/layout), and a record is compared with its bucket, so that an older
//     envelope is not taken for the newest (verify.go, scan.go).
//   - A lock, a format stamp, a note of a clean close and a look at the files
//     before the engine opens them make damage a named error (format.go, cleanclose.go).
//   - A dropped namespace is gone with one small transaction; the eraser frees its
//     space in the background (drop.go).
//   - A checkpoint copies all open namespaces as of one moment, a second time only
//     what has changed, and Restore makes a store of such copies (checkpoint.go,
//     copying.go, restore.go), whatever the engine of either. A copy gives way to
//     commits (committer.go).
//   - Records that leave the set for the kept log do so in one transaction
//     (stage.go, kept.go); Compact frees the space of what was overwritten and
//     removed, and a store at rest does so by itself (autocompact.go).
//
// Its tests run over each engine.
package kvstore
