package kvstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
	"github.com/syncd-io/syncd/dbadapter/internal/seq"
)

// An entry of the kept log is
//
//	cut(1) ms(8) by(24) length(uvarint) key envelope  seal(8)
//
// under its kind and number. One that is too long to stand among the keys is cut
// in two, as a record is, and cut is 1; the seal, at the very end, covers both.

const keptKeySize = prefixSize + 1 + 8

func keptKey(number uint32, kind byte, why dbadapter.Why, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(append(appendPrefix(nil, number, kind), byte(why)), seq)
}

func appendKept(b []byte, number uint32, seq uint64, at time.Time, l *commit.Leaver) []byte {
	start := len(b)
	b = layout.AppendKept(append(b, 0), at, l.By, l.Record.Key)
	b = appendEnvelope(b, &l.Record)
	if len(b)-start+layout.SealSize >= inline {
		b[start] = 1
	}
	return layout.AppendSeal(b, start, layout.KeptSeed(number, l.Why, seq))
}

// readKept decodes an entry, both parts of it.
func readKept(b []byte, number uint32, why dbadapter.Why, seq uint64, h dbadapter.Hasher) (dbadapter.Kept, error) {
	k, key, envelope, err := layout.ReadKept(b, 1, number, why, seq)
	if err != nil {
		return k, err
	}
	r, err := readEnvelope(envelope, key, h)
	k.Record = r.Record
	return k, err
}

// stageKept puts leavers into the transaction.
func (c *committer) stageKept(txn kv.Txn, number uint32, m *layout.Kept, leavers []commit.Leaver) error {
	at := c.store.options.Now()
	for i := range leavers {
		l := &leavers[i]
		m.Seq++
		m.Count(l.Why, l.Size(), 1)
		entry := c.grow(func(a []byte) []byte { return appendKept(a, number, m.Seq, at, l) })
		if entry[0] == 1 {
			if err := txn.Set(keptKey(number, kindMore, l.Why, m.Seq), entry[cut:]); err != nil {
				return err
			}
			entry = entry[:cut]
		}
		if err := txn.Set(keptKey(number, layout.KindKept, l.Why, m.Seq), entry); err != nil {
			return err
		}
	}
	return nil
}

func (n *namespace) Kept(ctx context.Context) iter.Seq2[dbadapter.Kept, error] {
	return seq.Of(func(yield func(dbadapter.Kept) bool) error {
		s, err := n.snapshot()
		if err != nil {
			return err
		}
		defer s.Close()
		var k dbadapter.Kept
		var found layout.Kept
		more := true
		prefix := appendPrefix(nil, n.Number, layout.KindKept)
		err = s.entries(ctx, "read the kept log", prefix, prefix, func(it kv.Iterator) error {
			return it.Value(func(entry []byte) (err error) {
				if k, err = n.keptEntry(s.read.txn, it.Key(), entry); err == nil {
					found.CountRecord(k.Why, &k.Record, 1)
				}
				return err
			})
		}, func() bool {
			more = yield(k)
			return more
		})
		if err == nil && more {
			err = s.checkKept(found)
		}
		return err
	})
}

// checkKept compares all entries of the kept log with what the commits have added
// up to.
func (s *snapshot) checkKept(found layout.Kept) error {
	m, err := s.meta("read the kept log")
	if err == nil && m.Own != 0 {
		err = damage.Corrupt("the kept log", "what was written ahead of no commit is seen")
	}
	return cmp.Or(err, m.Kept.Check(found))
}

// keptEntry reads one entry of the kept log.
func (n *namespace) keptEntry(r kv.Reader, key, entry []byte) (k dbadapter.Kept, err error) {
	if len(key) != keptKeySize {
		return k, damage.Corrupt("an entry of the kept log", "its key has %d bytes", len(key))
	}
	why, seq := dbadapter.Why(key[prefixSize]), binary.BigEndian.Uint64(key[prefixSize+1:])
	entry = bytes.Clone(entry)
	if len(entry) > 0 && entry[0] == 1 {
		tail, err := kv.Get(r, keptKey(n.Number, kindMore, why, seq))
		if err != nil {
			return k, err
		}
		entry = append(entry, tail...)
	}
	return readKept(entry, n.Number, why, seq, n.Hasher)
}

// forgetPiece is how many entries one transaction takes out of the kept log.
const forgetPiece = 1024

func (n *namespace) Forget(ctx context.Context, seqs ...uint64) error {
	for some := range slices.Chunk(slices.Clone(seqs), forgetPiece) {
		if err := n.Between(ctx, "forget entries of the kept log", func() error { return n.forget(some) }); err != nil {
			return err
		}
	}
	return nil
}

// forget runs on the committer's goroutine.
func (n *namespace) forget(seqs []uint64) error {
	slices.Sort(seqs)
	errNone := errors.New("none of them is there")
	view := n.store.db.View()
	defer view.Close()
	err := n.change(func(txn kv.Txn, m *layout.Meta) error {
		for _, seq := range slices.Compact(seqs) {
			if err := n.stageForget(view, txn, &m.Kept, seq, dbadapter.KeptConflict, dbadapter.KeptSetAside); err != nil {
				return err
			}
		}
		if *m == n.Meta { // a full disk takes no commit
			return errNone
		}
		return nil
	})
	if errors.Is(err, errNone) {
		return nil
	}
	return err
}

// stageForget takes an entry of these kinds out of the kept log, if it is there as of the view.
func (n *namespace) stageForget(view kv.Reader, txn kv.Txn, m *layout.Kept, seq uint64, whys ...dbadapter.Why) error {
	for _, why := range whys {
		key := keptKey(n.Number, layout.KindKept, why, seq)
		entry, err := kv.Get(view, key)
		if err != nil {
			return err
		}
		if entry == nil {
			continue
		}
		k, err := n.keptEntry(view, key, entry)
		if err != nil {
			return err
		}
		m.CountRecord(why, &k.Record, -1)
		if err := deleteAll(txn, [][]byte{key, keptKey(n.Number, kindMore, why, seq)}); err != nil {
			return err
		}
	}
	return nil
}
