package kvstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// Why not the backup of an engine (Badger's): it reads at as many moments as it has goroutines,
// leaves out an entry that it cannot read, and its increments lose a deletion
// whose marker a compaction has dropped (docs/decisions/0014-backups.md).

// copyTo writes the section of a namespace.
func (s *snapshot) copyTo(ctx context.Context, out *copyWriter, before *mark) (dbadapter.CopiedNamespace, error) {
	m, err := s.meta("copy")
	if err != nil {
		return dbadapter.CopiedNamespace{}, err
	}
	copied := dbadapter.CopiedNamespace{ID: s.namespace.ID, Records: m.Records, Seq: s.seq}
	var kept uint64
	if before != nil {
		if b, ok := before.of(s.namespace); ok && b.seq+1 >= m.First && b.seq <= s.seq {
			copied.Since, kept = b.seq, b.kept
		}
	}
	if err := out.section(s.namespace, copied.Since); err != nil {
		return copied, err
	}
	if copied.Since > 0 {
		err = s.copyChanged(ctx, out, copied.Since)
	} else {
		err = s.copyAll(ctx, out, &m)
	}
	if err == nil {
		err = s.copyOthers(ctx, out, &m, kept)
	}
	if err != nil {
		return copied, err
	}
	m.First = m.Seq + 1 // a copy holds neither the log nor the summary
	return copied, out.frame(framePut, []byte{layout.KindMeta}, m.Encode(s.namespace.Number))
}

// copyAll writes all buckets and records, and fails if they are not what the
// commits have added up to.
func (s *snapshot) copyAll(ctx context.Context, out *copyWriter, m *layout.Meta) error {
	number := s.namespace.Number
	var named, count uint64
	err := s.copyKind(ctx, out, layout.KindIndex, func(key, value []byte) error {
		if len(key) != layout.NumberSize {
			return damage.Corrupt("an index entry", "its key has %d bytes", len(key))
		}
		_, err := eachKey(value, number, dbadapter.Index(layout.Read48(key)), func([]byte) error { named++; return nil })
		return err
	})
	if err != nil {
		return err
	}
	var sum dbadapter.Digest
	err = s.copyKind(ctx, out, kindRecord, func(key, value []byte) error {
		r, err := s.namespace.decode(s.read.txn, key, slices.Clone(value)) // decode may append
		sum, count = sum.Add(r.Digest), count+1
		return err
	})
	if err == nil {
		err = s.copyKind(ctx, out, kindTail, nil) // read with its record
	}
	if err == nil && (count != m.Records || named != m.Records || sum != m.Digest) {
		err = damage.Corrupt("the records", "%d are there and %d in the buckets, %d were written", count, named, m.Records)
	}
	return err
}

// copyAhead bounds how many entries are read under one hold of the lock, and
// between two waits for commits.
const copyAhead = 256

// giveWay lets a commit that runs end first.
func (s *snapshot) giveWay(ctx context.Context) { s.namespace.store.committer.underway.giveWay(ctx) }

// copyEach goes over all entries with a prefix: each takes the one that the iterator stands
// on, while the snapshot's lock is held, and moves on.
func (s *snapshot) copyEach(ctx context.Context, prefix []byte, each func(it kv.Iterator) error) error {
	return s.iterate(ctx, "copy", prefix, prefix, func(it kv.Iterator) error {
		for n := 0; it.Valid() && n < copyAhead; n++ {
			if err := each(it); err != nil {
				return err
			}
		}
		return nil
	}, func() bool {
		s.giveWay(ctx)
		return true
	})
}

// copyKind writes all entries of a kind; check is called with each, its key
// without number and kind.
func (s *snapshot) copyKind(ctx context.Context, out *copyWriter, kind byte, check func(key, value []byte) error) error {
	return s.copyEach(ctx, appendPrefix(nil, s.namespace.Number, kind), func(it kv.Iterator) error {
		err := it.Value(func(value []byte) error {
			if check != nil {
				if err := check(it.Key()[prefixSize:], value); err != nil {
					return err
				}
			}
			return out.frame(framePut, it.Key()[prefixSize-1:], value)
		})
		it.Next()
		return err
	})
}

// copyChanged writes the buckets with a change after a sequence number.
func (s *snapshot) copyChanged(ctx context.Context, out *copyWriter, since uint64) error {
	var touched []dbadapter.Index
	err := s.changes(ctx, since, func(c dbadapter.Change) bool {
		touched = append(touched, c.Index)
		return true
	})
	if err != nil {
		return err
	}
	// In the order of the indices, neighbours are found in the same blocks.
	slices.Sort(touched)
	for i, index := range slices.Compact(touched) {
		if i%copyAhead == copyAhead-1 {
			s.giveWay(ctx)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.copyBucket(out, index); err != nil {
			return err
		}
	}
	return nil
}

// copyBucket writes a bucket and its records, verified.
func (s *snapshot) copyBucket(out *copyWriter, index dbadapter.Index) error {
	if err := s.locked("copy"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	n, txn := s.namespace, s.read.txn
	key := appendIndexKey(nil, n.Number, index)
	entry, err := kv.Get(txn, key)
	if err != nil {
		return err
	}
	if entry == nil {
		return out.frame(frameEmpty, key[prefixSize-1:], nil)
	}
	if err := out.frame(framePut, key[prefixSize-1:], entry); err != nil {
		return err
	}
	held, err := n.held(txn, index)
	for i := range held {
		if err = s.copyRecord(out, held[i]); err != nil {
			break
		}
	}
	return err
}

// copyRecord writes the entries of a record that was verified.
func (s *snapshot) copyRecord(out *copyWriter, held commit.Held) error {
	key := held.Record.Key
	envelope, err := kv.Get(s.read.txn, append(appendPrefix(nil, s.namespace.Number, kindRecord), key...))
	if err != nil {
		return err
	}
	if err := out.frame(framePut, append([]byte{kindRecord}, key...), envelope); err != nil || !isLong(&held.Record.Record) {
		return err
	}
	tail, err := kv.Get(s.read.txn, tailKey(s.namespace.Number, key))
	if err != nil {
		return err
	}
	return out.frame(framePut, append([]byte{kindTail}, key...), tail)
}

// copyOthers writes the entries of all other kinds, which are those of the kept log:
// the ones after a number, and the keys of the others, which never change.
func (s *snapshot) copyOthers(ctx context.Context, out *copyWriter, m *layout.Meta, after uint64) error {
	var kept uint64
	err := s.copyEach(ctx, binary.BigEndian.AppendUint32(nil, s.namespace.Number), func(it kv.Iterator) error {
		key := it.Key()
		if len(key) < prefixSize {
			return damage.Corrupt("an entry", "its key has %d bytes", len(key))
		}
		if own := bytes.IndexByte(copiedApart, key[prefixSize-1]) >= 0; own {
			it.Seek(appendPrefix(nil, s.namespace.Number, key[prefixSize-1]+1))
			return nil
		}
		seq, err := keptSeq(key)
		if err != nil {
			return err
		}
		if key[prefixSize-1] == layout.KindKept {
			kept++
		}
		kind := byte(framePut)
		if seq <= after {
			kind = frameSame
		}
		err = it.Value(func(value []byte) error { return out.frame(kind, key[prefixSize-1:], value) })
		it.Next()
		return err
	})
	if written := m.Kept.SetAside + m.Kept.Conflicts; err == nil && kept != written {
		err = damage.Corrupt("the kept log", "%d entries are there, %d were written", kept, written)
	}
	return err
}

// keptSeq is the number in the key of an entry of the kept log, or of its tail.
func keptSeq(key []byte) (uint64, error) {
	kind := key[prefixSize-1]
	if kind != layout.KindKept && kind != kindMore || len(key) != keptKeySize {
		return 0, damage.Corrupt("an entry", "no namespace has a key like its own, %x", key)
	}
	return binary.BigEndian.Uint64(key[prefixSize+1:]), nil
}

// copiedApart are the kinds that are not among the others.
var copiedApart = []byte{kindRecord, kindTail, layout.KindIndex, layout.KindLog, kindKeeps, kindPart, layout.KindMeta}
