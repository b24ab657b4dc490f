package badgerdb

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
)

// Why not Badger's own backup: it reads at as many moments as it has goroutines,
// leaves out an entry that it cannot read, and its increments lose a deletion
// whose marker a compaction has dropped (docs/decisions/0014-backups.md).

// copyTo writes the section of a namespace.
func (s *snapshot) copyTo(ctx context.Context, out *copyWriter, before *mark) (dbadapter.CopiedNamespace, error) {
	m, err := s.meta("copy")
	if err != nil {
		return dbadapter.CopiedNamespace{}, err
	}
	copied := dbadapter.CopiedNamespace{ID: s.namespace.id, Records: m.records, Seq: s.seq}
	var time uint64
	if before != nil {
		if seq, ok := before.seq(s.namespace); ok && seq+1 >= m.first && seq <= s.seq {
			copied.Since, time = seq, before.time
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
		err = s.copyOthers(ctx, out, &m, time)
	}
	if err != nil {
		return copied, err
	}
	m.first = m.seq + 1 // a copy holds neither the log nor the summary
	return copied, out.frame(framePut, []byte{kindMeta}, m.encode(s.namespace.number))
}

// copyAll writes all buckets and records, and fails if they are not what the
// commits have added up to.
func (s *snapshot) copyAll(ctx context.Context, out *copyWriter, m *meta) error {
	number := s.namespace.number
	var named, count uint64
	err := s.copyKind(ctx, out, kindIndex, func(key, value []byte) error {
		if len(key) != numberSize {
			return corrupt("an index entry", "its key has %d bytes", len(key))
		}
		b, err := readBucket(value, number, dbadapter.Index(read48(key)))
		for more := err == nil; more && err == nil; {
			if _, more, err = b.next(); more {
				named++
			}
		}
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
	if err == nil && (count != m.records || named != m.records || sum != m.digest) {
		err = corrupt("the records", "%d are there and %d in the buckets, %d were written", count, named, m.records)
	}
	return err
}

// copyAhead bounds how many entries are read under one hold of the lock, and
// between two waits for commits.
const copyAhead = 256

// giveWay lets a commit that runs end first.
func (s *snapshot) giveWay(ctx context.Context) { s.namespace.store.committer.underway.giveWay(ctx) }

// copyKind writes all entries of a kind; check is called with each, its key
// without number and kind, while the snapshot's lock is held.
func (s *snapshot) copyKind(ctx context.Context, out *copyWriter, kind byte, check func(key, value []byte) error) error {
	prefix := appendPrefix(nil, s.namespace.number, kind)
	return s.iterate(ctx, "copy", prefix, prefix, func(it *badger.Iterator) (n int, err error) {
		for ; it.Valid() && n < copyAhead; n++ {
			item := it.Item()
			err = item.Value(func(value []byte) error {
				if check != nil {
					if err := check(item.Key()[prefixSize:], value); err != nil {
						return err
					}
				}
				return out.frame(framePut, item.Key()[prefixSize-1:], value)
			})
			if err != nil {
				return n, err
			}
			it.Next()
		}
		return n, nil
	}, func() bool {
		s.giveWay(ctx)
		return true
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
	key := appendIndexKey(nil, n.number, index)
	entry, err := get(txn, key)
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
	envelope, err := get(s.read.txn, append(appendPrefix(nil, s.namespace.number, kindRecord), key...))
	if err != nil {
		return err
	}
	if err := out.frame(framePut, append([]byte{kindRecord}, key...), envelope); err != nil || !isLong(&held.Record.Record) {
		return err
	}
	tail, err := get(s.read.txn, tailKey(s.namespace.number, key))
	if err != nil {
		return err
	}
	return out.frame(framePut, append([]byte{kindTail}, key...), tail)
}

// copyOthers writes the entries of all other kinds: those that Badger was given
// after a time of its own, and the keys of the others.
func (s *snapshot) copyOthers(ctx context.Context, out *copyWriter, m *meta, after uint64) error {
	prefix := binary.BigEndian.AppendUint32(nil, s.namespace.number)
	var kept uint64
	err := s.iterate(ctx, "copy", prefix, prefix, func(it *badger.Iterator) (n int, err error) {
		for ; it.Valid() && n < copyAhead; n++ {
			item := it.Item()
			key := item.Key()
			if len(key) < prefixSize {
				return n, corrupt("an entry", "its key has %d bytes", len(key))
			}
			if own := bytes.IndexByte(copiedApart, key[prefixSize-1]) >= 0; own {
				it.Seek(appendPrefix(nil, s.namespace.number, key[prefixSize-1]+1))
				continue
			}
			if key[prefixSize-1] == kindKept {
				kept++
			}
			kind := byte(framePut)
			if item.Version() <= after {
				kind = frameSame
			}
			if err := item.Value(func(value []byte) error { return out.frame(kind, key[prefixSize-1:], value) }); err != nil {
				return n, err
			}
			it.Next()
		}
		return n, nil
	}, func() bool {
		s.giveWay(ctx)
		return true
	})
	if written := m.kept.setAside + m.kept.conflicts; err == nil && kept != written {
		err = corrupt("the kept log", "%d entries are there, %d were written", kept, written)
	}
	return err
}

// copiedApart are the kinds that are not among the others.
var copiedApart = []byte{kindRecord, kindTail, kindIndex, kindLog, kindKeeps, kindPart, kindMeta}
