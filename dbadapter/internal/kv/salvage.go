package kv

import "bytes"

// Salvage is how what can still be read of a damaged database is taken out of its
// files, which no process has open.
type Salvage struct {
	// Sound reports whether an entry has a checksum of its own, and it holds. An engine
	// asks for each entry that it finds in a damaged block.
	Sound func(key, value []byte) bool
	// Entry takes the newest entry of each key, in the order of the keys, that was
	// found. The slices are the callee's.
	Entry func(key, value []byte) error
	// Closed: the database was closed in order, and no log ends in the midst of an entry.
	Closed bool
}

// SalvageDir is a folder that an engine may make within that of the database during Salvage.
const SalvageDir = "salvage.cut"

// Gap is a damaged part of a file, and the keys that it may have held entries of: from
// From up to To, which is not one of them; nil is the end of all keys. Of such a key an
// entry that was read elsewhere may not be the newest.
type Gap struct {
	// Where is the name of the file, and the place in it.
	Where    string
	From, To []byte
}

// Whole reports whether it has all keys.
func (g *Gap) Whole() bool { return len(g.From) == 0 && g.To == nil }

// Has reports whether a key lies in the gap.
func (g *Gap) Has(key []byte) bool {
	return bytes.Compare(key, g.From) >= 0 && (g.To == nil || bytes.Compare(key, g.To) < 0)
}

// After is the least key that is greater.
func After(key []byte) []byte { return append(bytes.Clone(key), 0) }
