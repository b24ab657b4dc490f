package directory

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

// ErrEntry is returned for a record that is no entry of the directory.
var ErrEntry = errors.New("no entry of the directory")

// entryVersion is the first byte of an entry's value, and entrySize its length.
const (
	entryVersion = 1
	entrySize    = 3
)

// SetNumber is the number of the set of the directory that holds the entries of a shard
// of keys, among the sets of a namespace: its shards come first.
func SetNumber(shards int, home placement.Shard) int { return shards + int(home) }

// EntryFor is the entry of a record that is, or is to be, in a shard. Its author signs it
// as it signs the record, for another set; what signed the record is left out. The entry of
// a tombstone is a tombstone, and that of a record that expires expires with it.
func EntryFor(r *dbadapter.Record, shard placement.Shard) dbadapter.Record {
	e := r.Clone()
	e.Value, e.Signature, e.Signer = nil, nil, 0
	if !r.Deleted {
		e.Value = binary.BigEndian.AppendUint16([]byte{entryVersion}, uint16(shard))
	}
	return e
}

// ShardOf is the shard that an entry names, in a namespace of so many shards. ErrEntry: the
// record is a tombstone, or its value has another form.
func ShardOf(e *dbadapter.Record, shards int) (placement.Shard, error) {
	if e.Deleted {
		return 0, fmt.Errorf("%w: %q is deleted", ErrEntry, e.Key)
	}
	if len(e.Value) != entrySize || e.Value[0] != entryVersion {
		return 0, fmt.Errorf("%w: %q has a value of %d bytes: want version %d and a shard", ErrEntry, e.Key, len(e.Value), entryVersion)
	}
	s := binary.BigEndian.Uint16(e.Value[1:])
	if int(s) >= shards {
		return 0, fmt.Errorf("%w: %q is in shard %d of %d", ErrEntry, e.Key, s, shards)
	}
	return placement.Shard(s), nil
}

// CheckEntry says what makes a record unfit for a set of the directory: an admission
// declines it.
func CheckEntry(e *dbadapter.Record, shards int) error {
	if e.Deleted {
		return nil
	}
	_, err := ShardOf(e, shards)
	return err
}
