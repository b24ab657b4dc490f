package dbadapter

import (
	"context"
	"iter"
)

// NamespaceID names a namespace in a store and on the wire: a hash of its
// secret and its creator.
type NamespaceID [16]byte

// Store is a node's database: any number of namespaces. All methods may be
// called from several goroutines.
type Store interface {
	// Namespace opens the namespace with that id, empty if it is new. The hasher must
	// be the same each time. observe, if not nil, is called after each commit with its
	// changes, in commit order, before Apply returns. It is called in one step with
	// Snapshot: a snapshot holds a commit exactly if observe has been called for it. It
	// must be quick and must not call the store. It may take a lock under which others
	// read and close snapshots, but not one under which they open them or write.
	Namespace(ctx context.Context, id NamespaceID, hasher Hasher, observe func([]Change)) (Namespace, error)
	// Drop deletes a namespace, which must not be open. When it returns without an
	// error the namespace is gone for good, and its id may be used anew. A store may
	// free the space of its records later, in the background.
	Drop(ctx context.Context, id NamespaceID) error
	// Compact frees the space that overwritten and removed records took, now. A
	// store does so by itself too, in its own time: once it is at rest, and much of
	// it is stale. It may read and write all that the store holds. Commits go on
	// meanwhile, Close may wait.
	Compact(ctx context.Context) error
	// Close waits for running commits and closes the database. Idempotent.
	Close() error
}

// Namespace is one set of records in a store.
type Namespace interface {
	// Apply commits the writes in one atomic, durable transaction: when it returns
	// without an error they survive a power cut. Each write is decided alone: a record
	// that does not dominate the one held is left out, and says so in its Outcome. A
	// write whose condition fails leaves out the whole batch, with ErrConflict. So does
	// one that Must, and is left out. The outcomes say which. More than MaxBatch
	// writes, or a Weight of more than MaxBatchBytes in all, is ErrLimit. The records'
	// slices may be reused after the call.
	Apply(ctx context.Context, writes []Write) ([]Outcome, error)
	// Snapshot opens the namespace as of its last commit. It must be closed.
	Snapshot() (Snapshot, error)
	// Changes yields the log after the given sequence number up to the
	// present, in order. A log trimmed beyond it yields ErrTrimmed.
	Changes(ctx context.Context, after uint64) iter.Seq2[Change, error]
	// Log is the id of the change log, to which all its sequence numbers belong.
	Log() LogID
	// SaveSummary keeps, durably, what the caller has made of all changes up to seq, in
	// place of the summary that was kept. The log holds these changes, or has held
	// them. A crash meanwhile leaves the one or the other. It is at most MaxSummary
	// bytes, else ErrLimit, and may be reused after the call. The log keeps what
	// follows the summary, until that is LogReach times as many changes as the store
	// keeps at least. Commits go on meanwhile.
	SaveSummary(ctx context.Context, seq uint64, summary []byte) error
	// Summary is the summary kept last, with its sequence number. ErrNotFound: no
	// summary is kept. ErrCorrupt: it is damaged, or a part of it is lost.
	Summary(ctx context.Context) (seq uint64, summary []byte, err error)
	// Latest is the greatest clock ever committed here. Only Lower brings it down.
	Latest() Timestamp
	// Ceiling is the durable mark that a restarted clock goes on from: the greatest
	// clock ever committed here, or given to Raise. Only Lower brings it down.
	Ceiling() Timestamp
	// Raise brings Ceiling up to the given clock, durably; where Ceiling is not
	// less, it does nothing. A clock that goes on from Ceiling then makes no
	// version up to that clock, also after a restart.
	Raise(ctx context.Context, to Timestamp) error
	// Lower brings Latest and Ceiling down to the given clock, durably, once writes
	// that Replace have taken away what was greater. Where neither is greater, it does
	// nothing. The caller vouches that no record with a greater clock is held, and lets
	// no write run meanwhile: the store does not look. A caller whose versions might
	// then repeat one that it made before makes them under a new incarnation.
	Lower(ctx context.Context, to Timestamp) error
	// Kept yields the kept log as of now: the conflicts, then what was set aside,
	// each from the oldest on.
	Kept(ctx context.Context) iter.Seq2[Kept, error]
	// KeptCount is the number of entries of a kind in the kept log.
	KeptCount(why Why) int
	// Forget takes the entries with these numbers out of the kept log, durably. A
	// number that is not there is no error.
	Forget(ctx context.Context, seqs ...uint64) error
	// Close waits for running writes and releases the namespace; the store
	// stays open. It closes the snapshots that are open, so that a scan that is
	// paused holds nothing up and ends with ErrClosed. Idempotent.
	Close() error
}

// OneBatch is how many of the writes, from the first on, one Apply takes: at
// least one, if there is any.
func OneBatch(writes []Write) int {
	bytes := 0
	for i := range writes {
		bytes += writes[i].Record.Weight()
		if i > 0 && (i == MaxBatch || bytes > MaxBatchBytes) {
			return i
		}
	}
	return len(writes)
}

// Write is one record to be committed, as Hash made it with the hasher that the
// namespace was opened with.
type Write struct {
	Record Hashed
	// If, when not nil, makes the write conditional: the record held must have exactly
	// this version. The zero version demands that no record, not even a tombstone, is
	// held.
	If *Version
	// Must: the whole batch is left out if the record is, since its index is full
	// (ErrLimit), or since a greater one is held (ErrConflict).
	Must bool
	// Action is what the write does: it puts the record, or it removes it.
	Action Action
	// Past is up to when a collection may take what is held. A Put may take the place
	// of a tombstone, or of a record that expires. If neither its version nor its
	// expiry is later than Past, nothing is lost that would have to be kept. The writer
	// of the record may have collected it, and then could not name it.
	Past Timestamp
}

// Action is what a write does.
type Action uint8

const (
	// Put makes the record the one held, if it dominates that one.
	Put Action = iota
	// Replace makes the record the one held even where a greater one is, which If must
	// name. It is for versions that no other member has accepted, such as those of a
	// clock that was wrong. Where a member has, its copy is the greater one still, and
	// comes back with a sync.
	Replace
	// Collect removes the record from the namespace, and nothing of it stays. It
	// does so only if the very record is held (its digest is compared): one that
	// was written meanwhile stays. Latest and Ceiling stay as they are.
	Collect
	// SetAside removes the record as Collect does, and adds it to the kept log in
	// the same transaction.
	SetAside
)

// Removes reports whether the action removes a record.
func (a Action) Removes() bool { return a == Collect || a == SetAside }

// Outcome says what became of one write.
type Outcome struct {
	Result Result
	// Held is the version that the key holds after the call; zero if it holds no
	// record.
	Held Version
}

// Result is what became of one write.
type Result uint8

// The results of a write.
const (
	// Applied: the record is now the one held; or it has been removed.
	Applied Result = iota + 1
	// Same: the very record was held already; or the key to be removed held no
	// record.
	Same
	// Dominated: a greater record is held, and stays; where the write removes, any
	// other record.
	Dominated
	// Conflict: the condition of this write failed; nothing was written.
	Conflict
	// Skipped: nothing was written since another write's condition failed, or another
	// one that Must was left out.
	Skipped
	// Full: nothing was written. The index already holds MaxBucket other records that are
	// not tombstones, and the write would add one. Or it holds MaxBucketKeys other keys,
	// and the key of the write is new.
	Full
)

// Change is an entry of the change log: what one commit did to one bucket.
// One commit makes one change for each index that it touches. A removal is a
// change like others: New is the checksum of what is left in the bucket.
type Change struct {
	// Seq counts the changes of a namespace from 1, without gaps.
	Seq      uint64
	Index    Index
	Old, New Checksum
	// Keys are the keys under this index that the commit has changed, in ascending
	// order. A key that it put and removed again, so that it holds what it held before,
	// is not one of them. They stay valid, and must not be changed.
	Keys [][]byte
	// Shared: after the commit the bucket holds records under other keys, too.
	Shared bool
	// Delta is the digest sum of the bucket after the commit less the one before,
	// modulo 2^256. Records is the change in its number of records.
	Delta   Digest
	Records int
}

// Snapshot is a namespace as of one sequence number, to be read. Its methods may be
// called from one goroutine at a time. Everything returned is the caller's.
type Snapshot interface {
	// Seq is the sequence number of the last change that the snapshot holds.
	Seq() uint64
	// Get returns the record under a key, tombstones included, or
	// ErrNotFound.
	Get(key []byte) (Record, error)
	// Scan yields the records whose keys begin with prefix and are greater
	// than after (nil: from the first), tombstones included, by key.
	Scan(ctx context.Context, prefix, after []byte) iter.Seq2[Hashed, error]
	// Lookup sets sums[i] to the checksum of the bucket at indices[i], or to
	// 0 where the bucket is empty.
	Lookup(indices []Index, sums []Checksum) error
	// Bucket returns the records under an index, by key. An empty bucket is no
	// error.
	Bucket(index Index) ([]Hashed, error)
	// Buckets returns the records under each of the indices, as Bucket does, in fewer
	// steps. The indices ascend, and none comes twice. The records must not be changed:
	// the store may go on using them.
	Buckets(indices []Index) ([][]Hashed, error)
	// Pairs yields each index that is at least from and less than to, with its
	// checksum, in ascending order. Where to is 0, it goes up to the greatest.
	Pairs(ctx context.Context, from, to Index) iter.Seq2[Pair, error]
	// Close releases the snapshot. It waits for no commit. Idempotent.
	Close() error
}
