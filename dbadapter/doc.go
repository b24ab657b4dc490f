// Package dbadapter is the vocabulary of the store. It says what a record is and how
// versions are ordered. It says what a database must do to hold records that are kept equal
// across machines.
//
// # Records
//
// A namespace is a set of records under one [Secret]. Each [Record] has a key, a
// value, a [Version] and perhaps a signature; a deleted record stays as a
// tombstone. Of two records of one key the one with the greater Version wins,
// everywhere alike ([Record.Compare]).
//
// A record stands in a sketch as a [Pair]: an [Index], which is a keyed hash of the
// key, and a [Checksum] of version and content. An index is a bucket: two keys may
// share one (about 18 pairs of keys do among 10^8 records). The checksum is then that
// of the bucket's records in the order of their keys ([Bucket]). The [Digest] of a set
// is the sum of its records' digests; it proves a sync. [Hash] validates a record and
// makes its index and digest, once.
//
// # Stores
//
// A [Store] holds namespaces. Besides the records it keeps, in the same
// transaction, what reconciliation needs:
//
//	key   → record                    the data
//	index → keys and their checksum   the pair that stands for them in a sketch
//	seq   → index, old and new, key   the change log
//	seq   → record                    the kept log: what has left the set
//
// To write is to apply a batch:
//
//	hasher := dbadapter.NewHasher(secret)
//	ns, err := store.Namespace(ctx, dbadapter.NamespaceIDOf(secret, creator), hasher, observe)
//	record, err := dbadapter.Hash(hasher, dbadapter.Record{Key: key, Value: value, Version: version})
//	outcomes, err := ns.Apply(ctx, []dbadapter.Write{{Record: record}})
//
// A [Write] puts a record, or removes one (see [Action]). A removal is a change like
// others, and what is set aside stays in the kept log ([Kept]).
//
// To read is to open a [Snapshot], which must be closed.
//
// What a reader has made of all records can be kept as a summary (Namespace.SaveSummary).
// The change log reaches back to it, so that it is brought up to date without a scan.
//
// A store that is a [Backuper] can be copied while it is written to.
//
// Three stores are part of the module: dbadapter/ondisk (over Badger or Pebble),
// dbadapter/pgdb (in PostgreSQL) and dbadapter/memdb (in memory). All pass
// dbadapter/storetest, and so must any other.
//
// # Limits, and what is not promised
//
// [MaxKey], [MaxValue], [MaxBatch] and [MaxBatchBytes] bound what a store takes.
//
// A store orders the writes of one namespace, never those of two. It knows nothing of
// members, rights or signatures. It trusts the hashes of a [Hashed]: a record that was
// changed after Hash made it is stored under wrong ones.
package dbadapter
