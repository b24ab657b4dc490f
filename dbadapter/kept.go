package dbadapter

import "time"

// Kept is an entry of a namespace's kept log: a record that has left the set and
// that a person may want back. The log is durable and is never replicated. An
// entry is written in the transaction that takes its record out of the set, and
// goes with Forget, or with the namespace.
type Kept struct {
	// Seq numbers the entries of a namespace; a number is not used twice.
	Seq uint64
	// Why says how the record left the set.
	Why Why
	// Record is the record, as it was held.
	Record Record
	// By is the version that took the record's place; zero if it was set aside.
	By Version
	// At is when that happened, by this machine's clock, in milliseconds.
	At time.Time
}

// Why says how a record left the set.
type Why uint8

const (
	// KeptConflict: a greater record took its place, whose writer had not seen it.
	KeptConflict Why = iota + 1
	// KeptSetAside: SetAside removed it.
	KeptSetAside
)

// String is the kind in words.
func (w Why) String() string {
	switch w {
	case KeptConflict:
		return "conflict"
	case KeptSetAside:
		return "set aside"
	}
	return "unknown"
}
