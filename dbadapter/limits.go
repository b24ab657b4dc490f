package dbadapter

// Limits and sizes. A record or a batch beyond a limit is refused with ErrLimit
// before anything is written.
const (
	// MaxKey keeps an index bucket, a change and a directory entry small
	// enough to be read whole.
	MaxKey = 1 << 10
	// MaxValue is what one frame, one transaction and one peer's memory
	// budget can carry without cutting the value into chunks.
	MaxValue = 1 << 20
	// MaxBatch and MaxBatchBytes bound the writes of one Apply, and their keys
	// and values. Badger's transaction holds 15 % of a memtable.
	MaxBatch      = 4096
	MaxBatchBytes = 1<<20 + 1<<19
	// MaxReplaces is how many writers a record names as replaced. More than so
	// many seldom write one key, and 8 take no more room than two signatures.
	MaxReplaces = 8
	// MaxConflicts and MaxConflictBytes bound the conflicts in the kept log, and
	// their keys and values: the oldest go first. They are for a person to look
	// at, and must not fill the disk.
	MaxConflicts     = 10_000
	MaxConflictBytes = 64 << 20

	// SignatureSize is the length of an Ed25519 signature.
	SignatureSize = 64
	// VersionSize and DigestSize are the lengths of the binary forms.
	VersionSize = 24
	DigestSize  = 32
)
