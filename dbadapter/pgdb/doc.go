// Package pgdb is a store in PostgreSQL, or in an engine that speaks its protocol.
// A namespace that is larger than one disk then lives on an engine that is spread
// over many.
//
//	store, err := pgdb.Open(ctx, "postgres://syncd@db.example/syncd", pgdb.Options{})
//	namespace, err := store.Namespace(ctx, id, hasher, nil)
//	outcomes, err := namespace.Apply(ctx, []dbadapter.Write{{Record: record}})
//
// The store is a schema of a database (schema.go), which belongs to one process at a time. An
// advisory lock keeps a second one out, and each commit proves that the schema has not
// changed hands (owner.go).
//
// Keys and values can be read with SQL. What is written with SQL is damage: a changed row is
// found when it is read, one that is gone by a scan of all.
//
// Writes of many callers share one transaction (commit.go): one query that reads all records
// held, one exchange that writes, one COMMIT. A COMMIT whose answer is lost is looked up once
// the server is back. If that fails, the outcome is unknown, and the store takes no more
// writes (owner.go).
//
// Snapshots are REPEATABLE READ transactions, each on a connection of its own (view.go). Those
// that are opened between two commits share one.
//
// Each record carries a checksum that is verified when it is read
// (dbadapter/internal/layout).
//
// A schema that was restored from a dump gets other ids of its change logs, so that no cursor
// of a watch lies (dumped.go). So does one on a server that was recovered to a point in time.
//
// A dropped namespace is gone with one small transaction; the eraser frees its space in the
// background (erase.go).
//
// # What is not promised
//
// What the server acknowledges and has not stored is lost with it. Open refuses a server that
// runs with fsync = off. Whether a commit waits for a standby is the server's own setting
// (synchronous_standby_names). A pool between this package and the server must keep a session
// on one connection.
//
// The store is no dbadapter.Backuper: the server has means of its own. It is copied neither
// from a store on disk nor to one, since its numbers of changes and of kept entries are its
// own. A node with another store joins, and a sync fills it (README, Records in PostgreSQL).
package pgdb
