package kvstore

import (
	"bytes"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/grouped"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// A record is read together with its bucket: the seal of an envelope finds one
// that was damaged, and the bucket's checksum finds a sound one that is not the
// newest of its key, as a table that is lost would leave behind. Of 2^22 such
// records within 64 seconds of the newest, one goes unseen.

// held reads and verifies the records under an index, by key.
func (n *namespace) held(txn kv.View, index dbadapter.Index) ([]commit.Held, error) {
	all := n.heldAll(txn, []dbadapter.Index{index})
	return all[0].Held, all[0].Err
}

// heldAll reads and verifies the records under each of the indices, which are
// sorted. It reads the buckets in the order of the indices and then the records in
// the order of their keys: neighbours are found in the same blocks.
func (n *namespace) heldAll(txn kv.View, indices []dbadapter.Index) []commit.Loaded {
	loaded := make([]commit.Loaded, len(indices))
	sums := make([]dbadapter.Checksum, len(indices))
	inParallel(len(indices), func(from, to int) {
		var f kv.Finder // made for the first index that there may be something under
		defer func() {
			if f != nil {
				f.Close()
			}
		}()
		var entry []byte
		var place [prefixSize + layout.NumberSize]byte
		clone := func(b []byte) error {
			entry = bytes.Clone(b)
			return nil
		}
		for i := from; i < to; i++ {
			if !n.written.mayHold(indices[i]) {
				continue
			}
			if f == nil {
				f = txn.Find()
			}
			found, err := f.Get(appendIndexKey(place[:0], n.Number, indices[i]), clone)
			if err == nil && found {
				loaded[i].Held, sums[i], err = n.named(entry, indices[i])
			}
			loaded[i].Err = err
		}
	})
	type place struct{ bucket, at int }
	var places []place
	for i := range loaded {
		for at := range loaded[i].Held {
			places = append(places, place{i, at})
		}
	}
	record := func(p place) *dbadapter.Hashed { return &loaded[p.bucket].Held[p.at].Record }
	slices.SortFunc(places, func(a, b place) int { return bytes.Compare(record(a).Key, record(b).Key) })
	errs := make([]error, len(places))
	inParallel(len(places), func(from, to int) {
		f := txn.Find()
		defer f.Close()
		for i := from; i < to; i++ {
			held := record(places[i])
			r, err := n.record(f, held.Key)
			if r == nil && err == nil {
				err = errMissing(held.Key)
			}
			if errs[i] = err; err == nil {
				*held = *r
			}
		}
	})
	for i, p := range places {
		if l := &loaded[p.bucket]; errs[i] != nil && l.Err == nil {
			l.Err = errs[i]
		}
	}
	grouped.Verify(n.Hasher, loaded, sums)
	return loaded
}

// named decodes the bucket of an index: its checksum, and records of which only the
// keys are set.
func (n *namespace) named(entry []byte, index dbadapter.Index) (held []commit.Held, sum dbadapter.Checksum, err error) {
	sum, err = eachKey(entry, n.Number, index, func(key []byte) error {
		held = append(held, commit.Held{Record: dbadapter.Hashed{Record: dbadapter.Record{Key: key}}})
		return nil
	})
	if err == nil && len(held) == 0 {
		err = damage.Corrupt("an index entry", "it names no key")
	}
	if err != nil {
		return nil, 0, err
	}
	return held, sum, nil
}

// record reads the record under a key, nil if it is not there, and verifies its
// seal. It refers to key.
func (n *namespace) record(txn kv.Reader, key []byte) (*dbadapter.Hashed, error) {
	b, err := kv.Get(txn, append(appendPrefix(make([]byte, 0, 64), n.Number, kindRecord), key...))
	if b == nil || err != nil {
		return nil, err
	}
	r, err := n.decode(txn, key, b)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// decode reads and verifies an envelope, and the tail of one that was cut.
func (n *namespace) decode(txn kv.Reader, key, envelope []byte) (r dbadapter.Hashed, err error) {
	if len(envelope) > 0 && envelope[0]&flagLong != 0 {
		tail, err := kv.Get(txn, tailKey(n.Number, key))
		if err != nil {
			return r, err
		}
		envelope = append(envelope, tail...)
	}
	return readEnvelope(envelope, key, n.Hasher)
}

// check compares what was read under a key, nil if nothing was, with the bucket
// of its index, and reports whether that is empty.
func (n *namespace) check(txn kv.View, index dbadapter.Index, key []byte, r *dbadapter.Hashed) (empty bool, err error) {
	var place [prefixSize + layout.NumberSize]byte
	alone := false // the record is all that the bucket holds
	found, err := txn.Get(appendIndexKey(place[:0], n.Number, index), func(entry []byte) error {
		b, err := readBucket(entry, n.Number, index)
		if err != nil {
			return err
		}
		first, _, err := b.next()
		alone = err == nil && r != nil && len(b.rest) == 0 && bytes.Equal(first, key) &&
			dbadapter.PairOf(n.Hasher, r).Checksum == b.sum
		return err
	})
	switch {
	case alone || err != nil:
		return false, err
	case !found && r == nil:
		return true, nil
	case !found:
		return false, grouped.ErrStale(key)
	}
	held, err := n.held(txn, index)
	if err != nil {
		return false, err
	}
	known := slices.ContainsFunc(held, func(h commit.Held) bool { return bytes.Equal(h.Record.Key, key) })
	if r != nil && !known {
		return false, grouped.ErrStale(key)
	}
	return false, nil
}

func errMissing(key []byte) error {
	return damage.Corrupt("the record "+damage.Quote(key), "its bucket knows it, but it is not there")
}
