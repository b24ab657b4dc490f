package node

import (
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
)

// Kept is how many entries the set's kept log has: conflicts, and what was set aside. They
// are on this node alone.
func (set *Set) Kept() int {
	return set.Store.KeptCount(dbadapter.KeptConflict) + set.Store.KeptCount(dbadapter.KeptSetAside)
}

// Restore prepares to write again what stands in the kept log, with a version of
// now: a put, or a deletion. The driver forgets the entry once that is durable.
// ErrExpired: its time has passed. ErrDeleted, ErrNotFound: it is a deletion, and
// the key holds no record.
func (set *Set) Restore(k *dbadapter.Kept) (*Attempt, error) {
	r := &k.Record
	if r.Deleted {
		return set.Delete(r.Key)
	}
	if err := set.Absent(r); err != nil {
		return nil, fmt.Errorf("what was kept: %w", err)
	}
	return set.Write(Restored(k))
}

// Restored is what Restore writes.
func Restored(k *dbadapter.Kept) Draft {
	r := &k.Record
	return Draft{Record: dbadapter.Record{Key: r.Key, Value: r.Value, Expires: r.Expires, Deleted: r.Deleted}}
}

// IsSo reports whether an error of a Restore says that the key holds already what
// it would write.
func IsSo(k *dbadapter.Kept, err error) bool {
	return k.Record.Deleted && (errors.Is(err, dbadapter.ErrNotFound) || errors.Is(err, dbadapter.ErrDeleted) || errors.Is(err, dbadapter.ErrExpired))
}
