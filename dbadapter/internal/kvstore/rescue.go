package kvstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// Rescued says what a new store has of a damaged one.
type Rescued struct {
	// Why is the error with which the damaged database did not open; nil: it was read.
	Why error
	// Missing is by how many records each namespace has fewer than its head says; -1: that
	// is not known.
	Missing map[dbadapter.NamespaceID]int64
	// Strange are namespaces in the damaged store that are not known, and stay there.
	Strange []dbadapter.NamespaceID
}

// Rescue makes a new store in a folder, with what the database of a damaged store, which is
// not open, still reads: the records that are as their buckets say, and the kept logs. If the
// database does not open, that is nothing. engine is that of both.
//
// known returns the hashers of the namespaces; it is called when the damaged store is locked.
// done is called when the new store is complete and closed, under the same lock.
func Rescue(ctx context.Context, dir, to string, engine kv.Engine, o Options,
	known func() (map[dbadapter.NamespaceID]dbadapter.Hasher, error), done func(Rescued) error,
) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("rescue store %s: %w", dir, err)
		}
	}()
	lock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer lock.release()
	if err := checkFormat(dir, engine); errors.Is(err, dbadapter.ErrFormat) { // a damaged stamp says nothing
		return err
	}
	hashers, err := known()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil { // of a rescue that was cut short
		return err
	}
	fresh, err := Open(to, engine, o)
	if err != nil {
		return err
	}
	r, err := fresh.fill(ctx, dir, hashers)
	if err = errors.Join(err, fresh.Close()); err == nil {
		err = done(r)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(to))
	}
	return nil
}

// fill makes the namespaces in a new store, with what a damaged one gives.
func (s *Store) fill(ctx context.Context, dir string, hashers map[dbadapter.NamespaceID]dbadapter.Hasher) (r Rescued, err error) {
	db, older, err := openDamaged(dir, s.engine)
	switch {
	case err == nil:
		defer func() { err = errors.Join(err, refusal(db.Close())) }()
	case refusal(err) != nil:
		return r, err
	default:
		r.Why = err
	}
	if db != nil {
		if r.Strange, err = strange(db, hashers); err != nil {
			return r, err
		}
	}
	r.Missing = map[dbadapter.NamespaceID]int64{}
	for id, hasher := range hashers {
		n, err := s.Namespace(ctx, id, hasher, nil)
		if err != nil {
			return r, err
		}
		r.Missing[id] = -1
		if db != nil {
			r.Missing[id], err = n.(*namespace).carry(ctx, db)
		}
		if err = errors.Join(err, n.Close()); err != nil {
			return r, err
		}
		if older {
			r.Missing[id] = -1
		}
	}
	return r, nil
}

// openDamaged opens a database for reading. Badger ends the process over some kinds of
// damage, so that the files are looked at first. older: it holds fewer commits than when it was
// closed, or how many is not known.
func openDamaged(dir string, e kv.Engine) (db kv.DB, older bool, err error) {
	clean, bad := readClean(dir)
	if err := e.Probe(dir, clean.there || errors.Is(bad, dbadapter.ErrCorrupt), false); err != nil {
		return nil, false, err
	}
	if db, err = e.OpenReadOnly(dir); err != nil {
		return nil, false, err
	}
	h, err := (&Store{db: db}).readHead()
	return db, err != nil || clean.check(h.commits) != nil, nil
}

// strange lists the namespaces of a database that are not known, as far as it can be read.
func strange(db kv.DB, known map[dbadapter.NamespaceID]dbadapter.Hasher) (ids []dbadapter.NamespaceID, err error) {
	view := db.View()
	defer view.Close()
	names := appendPrefix(nil, 0, kindName)
	unread, err := readEntries(view, names, names, func(key, _ []byte) error {
		if len(key) == prefixSize+len(dbadapter.NamespaceID{}) {
			if id := dbadapter.NamespaceID(key[prefixSize:]); known[id] == nil {
				ids = append(ids, id)
			}
		}
		return nil
	})
	return ids, cmp.Or(err, refusal(unread))
}

// refusal is the error, unless it speaks of damage: a file is missing, or holds something else.
func refusal(err error) error {
	if errors.Is(err, dbadapter.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) || damage.Is(err) {
		return nil
	}
	return err
}

// carry takes a namespace over. It returns how many fewer records there are than its head
// says; -1: that is not known.
func (n *namespace) carry(ctx context.Context, db kv.DB) (missing int64, err error) {
	view := db.View()
	defer view.Close()
	b, err := kv.Get(view, nameKey(n.ID))
	if err != nil || b == nil {
		return -1, refusal(err)
	}
	from := &namespace{}
	from.ID, from.Hasher = n.ID, n.Hasher
	if from.Number, err = decodeName(n.ID, b); err != nil {
		return -1, nil
	}
	b, err = kv.Get(view, metaKey(from.Number))
	if err == nil {
		err = from.Meta.Decode(b, from.Number)
	}
	headless := err != nil
	if err := refusal(err); err != nil {
		return -1, err
	}
	if err := from.carryKept(ctx, view, n); err != nil {
		return -1, err
	}
	carried, err := from.carryRecords(ctx, view, n)
	if err == nil {
		err = n.Raise(ctx, from.Meta.Ceiling())
	}
	if headless || err != nil {
		return -1, err
	}
	return int64(from.Meta.Records) - carried, nil
}

// carryRecords writes the records under each bucket that can be read into another namespace.
func (n *namespace) carryRecords(ctx context.Context, view kv.View, to *namespace) (carried int64, err error) {
	var writes []dbadapter.Write
	apply := func() error {
		for len(writes) > 0 {
			some := dbadapter.OneBatch(writes)
			if _, err := to.Apply(ctx, writes[:some]); err != nil {
				return err
			}
			carried, writes = carried+int64(some), writes[some:]
		}
		return nil
	}
	weight := 0
	err = n.eachIndex(view, func(index dbadapter.Index) error {
		held, err := n.held(view, index)
		if err != nil {
			return refusal(err)
		}
		for i := range held {
			weight += held[i].Record.Weight()
			writes = append(writes, dbadapter.Write{Record: held[i].Record})
		}
		if len(writes) < dbadapter.MaxBatch && weight < dbadapter.MaxBatchBytes {
			return nil
		}
		weight = 0
		return apply()
	})
	if err == nil {
		err = apply()
	}
	return carried, err
}

// eachIndex calls do with each index that can be read. Where a read fails it goes on behind
// that, in steps that double until a read does not.
func (n *namespace) eachIndex(view kv.View, do func(dbadapter.Index) error) error {
	const least = 1 << 16 // some indices of a large namespace
	from := uint64(0)
	for step := uint64(least); from <= maxIndex; step *= 2 {
		place := appendIndexKey(nil, n.Number, dbadapter.Index(from))
		unread, err := readEntries(view, place[:prefixSize], place, func(key, _ []byte) error {
			if len(key) != prefixSize+layout.NumberSize {
				return nil
			}
			index := layout.Read48(key[prefixSize:])
			from, step = index+1, least
			return do(dbadapter.Index(index))
		})
		if err = cmp.Or(err, refusal(unread)); err != nil || unread == nil {
			return err
		}
		from += step
	}
	return nil
}

// readEntries calls do with the entries that have a prefix, from a key on; the slices are the
// callee's. unread is why those behind could not be read, and err what do returns.
func readEntries(view kv.View, prefix, from []byte, do func(key, value []byte) error) (unread, err error) {
	it := view.Iterate(prefix)
	defer it.Close()
	read := func(read func() error) (err error) {
		defer damage.Recovered("database", &err)
		return cmp.Or(read(), it.Err())
	}
	unread = read(func() error { it.Seek(from); return nil })
	for unread == nil && it.Valid() {
		key, value := append([]byte{}, it.Key()...), []byte{}
		unread = read(func() error {
			return it.Value(func(v []byte) error { value = append(value, v...); return nil })
		})
		if unread == nil {
			if err := do(key, value); err != nil {
				return nil, err
			}
			unread = read(func() error { it.Next(); return nil })
		}
	}
	return unread, nil
}

// carryKept writes the entries of the kept log that can be read into that of another
// namespace, which is new, under their numbers.
func (n *namespace) carryKept(ctx context.Context, view kv.View, to *namespace) error {
	out := to.store.disk.load(to.store.db)
	defer out.Cancel()
	kept := layout.Kept{Seq: n.Meta.Kept.Seq}
	prefix := appendPrefix(nil, n.Number, layout.KindKept)
	unread, err := readEntries(view, prefix, prefix, func(key, entry []byte) error {
		k, err := n.keptEntry(view, key, entry)
		if err != nil {
			return refusal(err)
		}
		if ahead := n.Meta.Own; ahead != 0 && k.Seq >= ahead {
			return nil // the commit that it was written ahead of did not follow
		}
		r, err := dbadapter.Hash(n.Hasher, k.Record)
		if err != nil {
			return nil
		}
		kept.Seq = max(kept.Seq, k.Seq)
		kept.CountRecord(k.Why, &k.Record, 1)
		b := appendKept(nil, to.Number, k.Seq, k.At, &commit.Leaver{Why: k.Why, Record: r, By: k.By})
		if b[0] == 1 {
			err, b = out.Set(keptKey(to.Number, kindMore, k.Why, k.Seq), b[cut:]), b[:cut]
		}
		return errors.Join(err, out.Set(keptKey(to.Number, layout.KindKept, k.Why, k.Seq), b))
	})
	if err = cmp.Or(err, refusal(unread)); err == nil {
		err = out.Flush()
	}
	if err != nil {
		return err
	}
	return to.Set(ctx, "carry the kept log over", func(m *layout.Meta) { m.Kept = kept })
}
