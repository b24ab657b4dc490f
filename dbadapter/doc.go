// Package dbadapter is the vocabulary of the store: what a record is, how
// versions are ordered, and what a database must do to hold records that are
// kept equal across machines.
//
// A namespace is a set of records. Each record has a key, a value, a Version
// and perhaps a signature; a deleted record stays as a tombstone. Besides the
// records a store keeps, in the same transaction, what reconciliation needs:
//
//	key   → record                    the data
//	index → keys and their checksum   the pair that stands for them in a sketch
//	seq   → index, old and new        the change log
//
// An index is a bucket: two keys may share one (about 18 pairs do among 10^8
// records), and then the checksum is that of the sorted list of the records.
//
// A record is hashed once, under the secret of its namespace, and then written;
// the greater version wins, in whatever order the two arrive:
//
//	hasher := dbadapter.NewHasher(secret)
//	namespace, err := store.Namespace(ctx, dbadapter.NamespaceIDOf(secret), hasher, nil)
//	record, err := dbadapter.Hash(hasher, dbadapter.Record{Key: key, Value: value, Version: version})
//	outcomes, err := namespace.Apply(ctx, []dbadapter.Write{{Record: record}})
//	snapshot, err := namespace.Snapshot()
//
// Two stores come with the module, dbadapter/badgerdb (on disk) and
// dbadapter/memdb (in memory). Both pass dbadapter/storetest, and so must any
// other.
//
// What is not promised: a store orders the writes of one namespace, never
// those of two, and knows nothing of members, rights or signatures.
package dbadapter
