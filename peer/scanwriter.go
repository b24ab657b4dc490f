package peer

import (
	"bytes"
	"context"
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
)

// oneOfKey yields one record of each key, of a sequence by key with tombstones: by placement writer two
// shards have one each where two first writes have met, until the one that has lost is taken out.
func (ns *Namespace) oneOfKey(ctx context.Context, all iter.Seq2[dbadapter.Hashed, error]) iter.Seq2[dbadapter.Hashed, error] {
	return func(yield func(dbadapter.Hashed, error) bool) {
		var key ofKey
		for r, err := range all {
			switch {
			case err != nil: // another shard may have a later record of the key: the next scan gives it
				yield(r, err)
				return
			case putOff(&r.Record):
				continue
			case key.some() && !bytes.Equal(r.Key, key.name()):
				if !yield(ns.stands(ctx, &key), nil) {
					return
				}
				key = ofKey{}
			}
			key.add(r)
		}
		if key.some() {
			yield(ns.stands(ctx, &key), nil)
		}
	}
}

// ofKey is the latest record of a key, and its latest tombstone, of all shards; no version: none.
type ofKey struct{ record, tombstone dbadapter.Hashed }

func (k *ofKey) add(r dbadapter.Hashed) {
	to := &k.record
	if r.Deleted {
		to = &k.tombstone
	}
	if putOff(&to.Record) || r.Version.Compare(to.Version) > 0 {
		*to = r.Clone()
	}
}

func (k *ofKey) some() bool { return !putOff(&k.record.Record) || !putOff(&k.tombstone.Record) }

func (k *ofKey) name() []byte {
	if putOff(&k.record.Record) {
		return k.tombstone.Key
	}
	return k.record.Key
}

// stands is the one of a key that stands. A record that is later than the tombstone does. An earlier one
// may be what the tombstone's own record has won over before it was deleted; or the tombstone is that of
// what has lost, and is later than the winner, as it is later than all that its host has promised to hold.
// A read tells the two apart; where it is not sure, the record is given.
func (ns *Namespace) stands(ctx context.Context, k *ofKey) dbadapter.Hashed {
	switch {
	case putOff(&k.record.Record):
		return k.tombstone
	case putOff(&k.tombstone.Record), k.record.Version.Compare(k.tombstone.Version) > 0:
		return k.record
	}
	found, err := ns.lookUp(ctx, k.record.Key, false)
	if err == nil && found.Sure && (found.Record == nil || found.Record.Deleted) {
		return k.tombstone
	}
	return k.record
}
