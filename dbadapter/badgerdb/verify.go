package badgerdb

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
)

// A record is read together with its bucket: the seal of an envelope finds one
// that was damaged, and the bucket's checksum finds a sound one that is not the
// newest of its key, as a table that is lost would leave behind. Of 2^22 such
// records within 64 seconds of the newest, one goes unseen.

// held reads and verifies the records under an index, by key.
func (n *namespace) held(txn *badger.Txn, index dbadapter.Index) ([]commit.Held, error) {
	entry, err := get(txn, appendIndexKey(nil, n.number, index))
	if entry == nil || err != nil {
		return nil, err
	}
	b, err := readBucket(entry, n.number, index)
	if err != nil {
		return nil, err
	}
	var held []commit.Held
	for {
		key, ok, err := b.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		r, err := n.record(txn, key)
		if err != nil {
			return nil, err
		}
		if r == nil {
			return nil, errMissing(key)
		}
		held = append(held, commit.Held{Record: *r})
	}
	if len(held) == 0 {
		return nil, corrupt("an index entry", "it names no key")
	}
	if sum := commit.Checksum(n.hasher, held); sum != b.sum {
		return nil, errStale(held[0].Record.Key)
	}
	return held, nil
}

// record reads the record under a key, nil if it is not there, and verifies its
// seal. It refers to key.
func (n *namespace) record(txn *badger.Txn, key []byte) (*dbadapter.Hashed, error) {
	b, err := get(txn, append(appendPrefix(make([]byte, 0, 64), n.number, kindRecord), key...))
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
func (n *namespace) decode(txn *badger.Txn, key, envelope []byte) (r dbadapter.Hashed, err error) {
	if len(envelope) > 0 && envelope[0]&flagLong != 0 {
		tail, err := get(txn, tailKey(n.number, key))
		if err != nil {
			return r, err
		}
		envelope = append(envelope, tail...)
	}
	return readEnvelope(envelope, key, n.hasher)
}

// check compares what was read under a key, nil if nothing was, with the bucket
// of its index.
func (n *namespace) check(txn *badger.Txn, index dbadapter.Index, key []byte, r *dbadapter.Hashed) error {
	var place [prefixSize + numberSize]byte
	item, err := txn.Get(appendIndexKey(place[:0], n.number, index))
	switch {
	case errors.Is(err, badger.ErrKeyNotFound) && r == nil:
		return nil
	case errors.Is(err, badger.ErrKeyNotFound):
		return errStale(key)
	case err != nil:
		return fmt.Errorf("look up an index: %w", err)
	}
	alone := false // the record is all that the bucket holds
	err = item.Value(func(entry []byte) error {
		b, err := readBucket(entry, n.number, index)
		if err != nil {
			return err
		}
		first, _, err := b.next()
		alone = err == nil && r != nil && len(b.rest) == 0 && bytes.Equal(first, key) &&
			dbadapter.PairOf(n.hasher, r).Checksum == b.sum
		return err
	})
	if alone || err != nil {
		return err
	}
	held, err := n.held(txn, index)
	if err != nil {
		return err
	}
	known := slices.ContainsFunc(held, func(h commit.Held) bool { return bytes.Equal(h.Record.Key, key) })
	if r != nil && !known {
		return errStale(key)
	}
	return nil
}

func errMissing(key []byte) error {
	return corrupt("the record "+quote(key), "its bucket knows it, but it is not there")
}

func errStale(key []byte) error {
	return corrupt("the record "+quote(key), "it is not the one that its bucket was written with")
}
