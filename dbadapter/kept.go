package dbadapter

import "time"

// Kept is an entry of a namespace's kept log: a record that has left the set and
// that a person may want back. The log is durable and is never replicated. An
// entry is written in the transaction that takes its record out of the set, and
// goes with Forget, or with the namespace. The oldest conflicts go when there are
// more than MaxConflicts, or than MaxConflictBytes of them; what is set aside stays.
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
	// KeptConflict: a record of other content took its place by Put, which does not
	// supersede it, and it was not past (Write.Past). Dated records neither win in this sense, since they name
	// nothing, nor lose.
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
