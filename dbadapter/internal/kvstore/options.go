package kvstore

import (
	"log/slog"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// Options are the settings of a store, whatever its engine. The zero value is good.
type Options struct {
	// Logger gets the failures of work in the background, which no call
	// returns; nil discards them.
	Logger *slog.Logger
	// LogLimit is how many changes of a namespace the log keeps, at least; 0
	// means 1<<16. Of a namespace with more than eight times as many records it keeps
	// an eighth of their number, so that the next copy need not hold all of them. A
	// reader that falls further behind scans the records.
	LogLimit int
	// MinFree is how many bytes of the disk writes leave free, beside what the engine
	// needs; 0 means 64 MiB, less than 0 switches the check off.
	MinFree int64
	// Now tells the time for the kept log; nil means time.Now.
	Now func() time.Time
	// Damaged is told of damage that work in the background meets. nil: it is logged.
	Damaged func(error)
	// Failed is told that the store goes no further; see badgerdb.Options. nil: it is logged.
	Failed func(error)
}

// defaultMinFree is what Options.MinFree says.
const defaultMinFree = 64 << 20

func (o *Options) setDefaults() {
	if o.LogLimit <= 0 {
		o.LogLimit = 1 << 16
	}
	if o.MinFree == 0 {
		o.MinFree = defaultMinFree
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Damaged == nil {
		o.Damaged = func(err error) { o.Logger.Error("the store is damaged", slog.Any("err", err)) }
	}
	if o.Failed == nil {
		o.Failed = func(err error) { o.Logger.Error("the store goes no further", slog.Any("err", err)) }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// What a batch takes in one transaction: each key stands in its record, in its bucket
// and in the change log, which is 3/2 of its weight, and a write adds up to putBytes
// to that (key prefixes, version, seal, signature, optional fields, checksum, log
// entry and kv.EntryBytes for each entry). A batch that sets records aside has each
// key in the kept log, in the removal and in the change log, and up to keepBytes more.
// An entry of the kept log that a conflict makes takes no more than keepBytes, key and
// value.
const (
	putBytes  = 123 + 4*kv.EntryBytes + changeMore + dbadapter.MaxOptional
	keepBytes = 192 + 4*kv.EntryBytes + changeMore + dbadapter.MaxOptional
	// changeMore is what the log says of a change beside its index, its checksums
	// and its key: the digest, and two numbers.
	changeMore = dbadapter.DigestSize + 2 + 2
	// conflictBytes bounds the conflicts that a transaction carries beside its
	// batch.
	conflictBytes = 256 << 10
)

// The bounds fit, or this does not compile.
const (
	_ = uint(kv.MaxTxn - 3*dbadapter.MaxBatchBytes/2 - putBytes*dbadapter.MaxBatch - conflictBytes - 4<<10)
	_ = uint(kv.MaxTxn - 3*dbadapter.MaxBatchBytes/2 - keepBytes*dbadapter.MaxBatch - 4<<10)
)

// inline is the size from which an entry is cut in two; see cut.
const inline = kv.MaxEntry
