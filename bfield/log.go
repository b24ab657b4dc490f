package bfield

import (
	"errors"
	"iter"
)

// Op is what a Record says.
type Op uint8

const (
	// Inserted: the key has the value. A later record of the key replaces it.
	Inserted Op = 1 + iota
	// Changed: the key, which was inserted before, has this value now.
	Changed
	// Removed: the key is gone.
	Removed
)

// Record is an insertion, change or removal in a Log. The key is its 128-bit
// hash under the field's seed: of long keys nothing else need be kept.
type Record struct {
	Op    Op
	Key   [2]uint64
	Value uint64
}

// Log keeps what was done to a Mutable field, in order. FileLog is one in a
// file; others can put the records into a store. A Mutable calls Append and
// Replace from one goroutine at a time, and Records from several.
type Log interface {
	// Append adds records. When it returns without an error they are durable;
	// after an error any first few of them may be.
	Append(records []Record) error
	// Records yields the records from number from on, counted from 0, in order:
	// at least those appended before. An error, which ends it, means that some
	// are lost.
	Records(from uint64) iter.Seq2[Record, error]
	// Seed returns the seed under which the keys of the records are hashed. It is
	// that of the one field whose log it is.
	Seed() uint64
	// Len returns the number of records.
	Len() uint64
	// Replace puts other records in place of all. Either all of the old ones
	// or all of the new ones survive a crash. The sequence may read Records. If
	// it yields an error, Replace returns that and changes nothing.
	Replace(records iter.Seq2[Record, error]) error
}

// ErrLog is returned for a log that is damaged, or belongs to another field.
var ErrLog = errors.New("bfield: damaged log")

// ErrLocked is returned for a log that is open already.
var ErrLocked = errors.New("bfield: the log is open already, in this program or another")

const (
	// maxRecords is the most records that are written, and checked, as one frame.
	maxRecords = 4096
	// maxFrames is the most frames that a FileLog writes and syncs at once: 26 MB of
	// memory.
	maxFrames = 256
)
