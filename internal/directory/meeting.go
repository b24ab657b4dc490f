package directory

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

// Fate is what the hosts of a shard do with a record whose key the directory may place in
// another one.
type Fate uint8

const (
	// Stay: the record is in its place, or too little is known.
	Stay Fate = iota
	// Recede: another first write of the key has won. A host writes a tombstone over the
	// record that does not name it as replaced, so that each host of the shard lists it as a
	// conflict (dbadapter.KeptConflict). The tombstone has no entry.
	Recede
	// Restore: the entry that has won leads to no record, or to none as great, and never
	// will: its author ended between the entry and the record. A host writes the record
	// anew, with a version of its own and an entry that names this shard. So does it where no
	// entry is left as late as the record. Then it was lost, or it was the tombstone of another first
	// write, which had won and was deleted, and was collected. Nothing tells the two apart, and what was acknowledged must
	// not be lost: so it comes back over a deletion of the other one that had seen it, if the hosts of
	// its shard were away, or could not know of it, until that was collected.
	Restore
)

// Found is what is known of a key for which the directory names another shard, or none.
type Found struct {
	// Entry is what a host of the directory that is settled in the key's set holds, or nil.
	Entry *dbadapter.Record
	// There is the record that hosts of the shard that the entry names hold, a tombstone too, or nil.
	There *dbadapter.Record
	// Sure: the hosts of that shard that were asked are settled in it, and have answered
	// later than a write that the entry belongs to can have been under way. Without an entry, or with
	// one that is earlier than the record: the directory's hosts are sure that they hold no later one,
	// as late, and the hosts of the record's shard that it is what they hold.
	Sure bool
}

// FateOf decides upon a record that is held in a shard. An acknowledged record recedes
// only before one that is held durably: an entry is written before its record, and one
// whose author has failed in between must not take the place of a record that is there.
func FateOf(held *dbadapter.Record, shard placement.Shard, shards int, f Found) Fate {
	if held.Deleted {
		return Stay
	}
	if f.Entry == nil {
		return restoreIf(f.Sure)
	}
	order := f.Entry.Version.Compare(held.Version)
	if f.Entry.Deleted {
		// The key was deleted where an entry that had won led to: a deletion of this record would
		// have written its tombstone before that of the entry.
		if f.Entry.Compare(held) > 0 {
			return Recede
		}
		return restoreIf(f.Sure && order < 0)
	}
	named, err := ShardOf(f.Entry, shards)
	switch {
	case err != nil || named == shard || order == 0:
		return Stay
	case order < 0: // it is not this record's: that is on the way, or was lost
		return restoreIf(f.Sure)
	case f.There != nil && f.There.Version.Compare(held.Version) > 0 && stands(f.There, f.Entry, held):
		return Recede
	}
	return restoreIf(f.Sure)
}

func restoreIf(sure bool) Fate {
	if sure {
		return Restore
	}
	return Stay
}

// stands reports whether what the hosts hold where an entry leads to, and which is later than a record
// that is held elsewhere, is a reason for that to recede. A tombstone that is earlier than the entry may
// be none: it is of an earlier record, or of one that receded itself, unless its writer had seen the
// record. One that is later is of a deletion that ended before it came to the entry.
func stands(there, entry, held *dbadapter.Record) bool {
	return !there.Deleted || there.Version.Compare(entry.Version) > 0 || there.Supersedes(held.Version)
}
