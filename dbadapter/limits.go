package dbadapter

import "fmt"

// Limits and sizes. A record or a batch beyond a limit is refused with ErrLimit
// before anything is written.
const (
	// MaxKey keeps an index bucket, a change and a directory entry small
	// enough to be read whole.
	MaxKey = 1 << 10
	// MaxValue is what one frame, one transaction and one peer's memory
	// budget can carry without cutting the value into chunks.
	MaxValue = 1 << 20
	// MaxBatch and MaxBatchBytes bound the writes of one Apply, and their weight
	// (Record.Weight). Badger's transaction holds 15 % of a memtable.
	MaxBatch      = 4096
	MaxBatchBytes = 1<<20 + 1<<19
	// MaxBucket is how many records that are not tombstones may share an index. Four
	// keys do in one of 2·10^7 namespaces of 10^8 records (n⁴/24p³). But a member that
	// knows the secret can find as many as it likes, and a bucket is read whole.
	MaxBucket = 64
	// MaxBucketKeys is how many keys may share an index, tombstones included: what is
	// deleted because an index was full needs room until it is collected. A
	// tombstone takes at most its key and its signature.
	MaxBucketKeys = 4 * MaxBucket
	// MaxReplaces is how many writers a record names as replaced. More than so
	// many seldom write one key, and 8 take no more room than two signatures.
	MaxReplaces = 8
	// MaxConflicts and MaxConflictBytes bound the conflicts in the kept log, and
	// their keys and values: the oldest go first. They are for a person to look
	// at, and must not fill the disk.
	MaxConflicts     = 10_000
	MaxConflictBytes = 64 << 20
	// MaxSummary is the most bytes of a summary. It is twice what a replica needs for
	// the largest sketch that it keeps, and no more than a node may hold twice in
	// memory.
	MaxSummary = 8 << 20
	// LogReach is how many times as long as it must be a log may grow for the sake of
	// the changes that follow the summary. To replay more than that would take longer
	// than to scan the records.
	LogReach = 16

	// SignatureSize is the length of an Ed25519 signature.
	SignatureSize = 64
	// VersionSize and DigestSize are the lengths of the binary forms.
	VersionSize = 24
	DigestSize  = 32
)

// CheckSummary refuses a summary that is too long to be kept.
func CheckSummary(summary []byte) error {
	if len(summary) > MaxSummary {
		return fmt.Errorf("save a summary of %d bytes: %w: it has at most %d", len(summary), ErrLimit, MaxSummary)
	}
	return nil
}
