package badgerdb

import (
	"log/slog"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/syncd-io/syncd/dbadapter"
)

// Options are the settings of a store. The zero value is good.
type Options struct {
	// Logger gets the failures of work in the background, which no call
	// returns; nil discards them.
	Logger *slog.Logger
	// NoSync leaves it to the operating system when to write to the disk. A
	// power cut then loses acknowledged writes, and only tests may want that.
	NoSync bool
	// LogLimit is how many changes of a namespace the log keeps, at least; 0
	// means 1<<16. Of a namespace with more than eight times as many records it keeps
	// an eighth of their number, so that the next copy need not hold all of them. A
	// reader that falls further behind scans the records.
	LogLimit int
	// MinFree is how many bytes must be free on the disk for a write to be
	// taken; 0 means 64 MiB, less than 0 switches the check off. The files are
	// mapped into memory, and a full disk would kill the process.
	MinFree int64
	// TrustFiles skips reading all tables through when the store is opened,
	// which takes about a second for 1 GB. A flipped bit in a table may then
	// make a record disappear, or show an older one, if its bucket does too.
	TrustFiles bool
	// Now tells the time for the kept log; nil means time.Now.
	Now func() time.Time
}

// defaultMinFree is what Options.MinFree says.
const defaultMinFree = 64 << 20

const (
	// memTable must be so large that one transaction, 15 % of it, takes a
	// batch at both bounds with nothing but keys: each key stands in its record,
	// in its bucket and in the change log, which is 3/2 of its weight, and a write
	// adds up to putBytes to that (key prefixes, version, seal, signature, optional
	// fields, checksum, log entry and Badger's own account of 12 bytes an entry). A
	// batch that sets records aside has each key in the kept log, in the removal and
	// in the change log, and up to keepBytes more. An
	// entry of the kept log that a conflict makes takes no more than keepBytes, key
	// and value.
	memTable = 32 << 20
	// inline is the size from which Badger would put values into files of
	// their own; it is the largest that Badger takes. See cut.
	inline = 1 << 20

	putBytes  = 171 + changeMore + dbadapter.MaxOptional
	keepBytes = 240 + changeMore + dbadapter.MaxOptional
	// changeMore is what the log says of a change beside its index, its checksums
	// and its key: the digest, and two numbers.
	changeMore = dbadapter.DigestSize + 2 + 2
	// conflictBytes bounds the conflicts that a transaction carries beside its
	// batch.
	conflictBytes = 256 << 10
)

const txnBytes = memTable * 15 / 100

// The bounds fit, or this does not compile.
const (
	_ = uint(txnBytes - 3*dbadapter.MaxBatchBytes/2 - putBytes*dbadapter.MaxBatch - conflictBytes - 4<<10)
	_ = uint(txnBytes - 3*dbadapter.MaxBatchBytes/2 - keepBytes*dbadapter.MaxBatch - 4<<10)
)

func (o *Options) badger(dir string) badger.Options {
	return badger.DefaultOptions(dir).
		WithSyncWrites(!o.NoSync).
		WithDetectConflicts(false). // there is one writer
		WithMemTableSize(memTable).
		WithNumMemtables(2).
		WithValueThreshold(inline).
		WithValueLogFileSize(64 << 20).
		WithBlockCacheSize(0). // nothing is compressed: the page cache is enough
		WithIndexCacheSize(0). // indices stay mapped
		WithCompression(options.None).
		WithBloomFalsePositive(0.001). // most look-ups for a write find nothing
		WithMetricsEnabled(false).
		WithNumCompactors(2).
		WithLogger(logger{o.Logger})
}
