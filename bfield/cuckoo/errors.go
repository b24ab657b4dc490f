package cuckoo

import (
	"errors"
	"fmt"
)

// What callers may want to tell apart, by errors.Is.
var (
	// ErrConfig means that no table can be made as configured.
	ErrConfig = errors.New("no such table")
	// ErrRange means that a key or value has more bits than its slot.
	ErrRange = errors.New("out of range")
	// ErrCrowded means that a key found no place although the table is not full:
	// too many keys share its buckets. Keys that were not chosen with
	// knowledge of the seed never cause it in practice. The table is as it was;
	// a new one under another seed takes the same keys.
	ErrCrowded = errors.New("too many keys in the same buckets")
	// ErrFull means that the table has all entries that it may have.
	ErrFull = errors.New("the table is full")
	// ErrConflict means that a Table has an entry with another value that it
	// cannot tell from the new key. The entry is of the same key, or of one of
	// the same fingerprint at the same place.
	ErrConflict = errors.New("an entry that looks the same has another value")
	// ErrFormat means that bytes are no saved table.
	ErrFormat = errors.New("cuckoo: not a saved table")
)

func errCrowded(count int) error {
	return fmt.Errorf("cuckoo: insert into a table of %d entries: %w", count, ErrCrowded)
}
