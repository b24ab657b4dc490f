package kvstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// Restore makes a store in a folder that is empty, or not there, of copies that
// Checkpoint.Copy wrote: a whole one and those that follow it, oldest first. Each
// is read to its end before the next one is asked for. The records are verified
// when the store is opened and scanned; a copy's framing is verified here. After
// an error the folder holds a part of a store, and is of no use.
func Restore(ctx context.Context, dir string, engine kv.Engine, o Options, copies iter.Seq2[io.Reader, error]) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("restore the store %s: %w", dir, err)
		}
	}()
	db, disk, release, err := openNew(dir, engine, &o)
	if err != nil {
		return err
	}
	defer release()
	defer func() { err = errors.Join(err, db.Close()) }()
	r := &restorer{ctx: ctx, db: db, disk: disk, present: map[uint32]dbadapter.NamespaceID{}}
	for c, err := range copies {
		if err != nil {
			return err
		}
		if err := r.load(c); err != nil {
			return err
		}
	}
	return r.finish()
}

// restorer applies copies to a database.
type restorer struct {
	ctx     context.Context
	db      kv.DB
	disk    *diskGuard
	batch   *loader
	before  kv.View                          // as of the copy before; what this one replaces is looked up in it
	present map[uint32]dbadapter.NamespaceID // the numbers that have entries
	named   map[uint32]layout.Meta           // those that the last copy has, and their heads
	head    head

	// Of the section that is being read.
	number uint32
	whole  bool
	others kv.Iterator // over before, for the kinds that copyOthers writes
}

// load applies one copy.
func (r *restorer) load(from io.Reader) (err error) {
	defer damage.Recovered("database", &err)
	in, err := newCopyReader(from)
	if err != nil {
		return err
	}
	r.named = map[uint32]layout.Meta{}
	r.begin()
	defer func() { r.drop() }()
	for i := 0; ; i++ {
		if i%4096 == 0 {
			if err := r.ctx.Err(); err != nil {
				return err
			}
		}
		f, err := in.next()
		if err != nil {
			return err
		}
		switch f.kind {
		case frameEnd:
			r.head = f.head
			return errors.Join(r.endSection(), r.batch.Flush())
		case frameNamespace:
			err = r.endSection()
			if err == nil {
				err = r.section(&f)
			}
		default:
			err = r.entry(&f)
		}
		if err != nil {
			return err
		}
	}
}

func (r *restorer) begin() {
	r.before, r.batch = r.db.View(), r.disk.load(r.db)
}

// drop gives up what begin made; what was flushed stays.
func (r *restorer) drop() {
	r.closeOthers()
	r.batch.Cancel()
	r.before.Close()
}

func (r *restorer) section(f *copyFrame) error {
	r.number, r.whole = f.number, f.since == 0
	id, known := r.present[f.number]
	_, twice := r.named[f.number]
	switch {
	case twice:
		return damage.Corrupt("the copy", "namespace %x is there twice", f.id)
	case !r.whole && (!known || id != f.id):
		return damage.Corrupt("the copy", "it goes on from change %d of namespace %x, which the copies before it do not hold", f.since, f.id)
	}
	r.present[f.number] = f.id
	if r.whole && known {
		return r.clear(f.number)
	}
	if !r.whole {
		prefix := binary.BigEndian.AppendUint32(nil, f.number)
		r.others = r.before.Iterate(prefix)
		r.others.Seek(prefix)
	}
	return nil
}

// clear removes all entries of a number.
func (r *restorer) clear(number uint32) error {
	if err := r.batch.Flush(); err != nil {
		return err
	}
	r.drop()
	err := r.db.DropPrefix(binary.BigEndian.AppendUint32(nil, number))
	r.begin()
	return err
}

// endSection ends what section began.
func (r *restorer) endSection() error {
	if r.number == 0 {
		return nil
	}
	if _, ok := r.named[r.number]; !ok {
		return damage.Corrupt("the copy", "a namespace has no head")
	}
	if r.others != nil {
		if err := r.skipOthers(nil); err != nil {
			return err
		}
	}
	r.closeOthers()
	r.number = 0
	return nil
}

func (r *restorer) closeOthers() {
	if r.others != nil {
		r.others.Close()
		r.others = nil
	}
}

// entry applies one entry.
func (r *restorer) entry(f *copyFrame) error {
	if r.number == 0 {
		return damage.Corrupt("the copy", "an entry belongs to no namespace")
	}
	key := append(binary.BigEndian.AppendUint32(nil, r.number), f.key...)
	kind, rest := f.key[0], f.key[1:]
	if !r.whole {
		var err error
		switch kind {
		case layout.KindIndex:
			err = r.replaceBucket(rest, f)
		case kindRecord:
			err = r.replaceTail(rest, f)
		case kindTail, layout.KindMeta:
		default:
			err = r.skipOthers(key)
			if err == nil && f.kind == frameSame {
				err = r.same(key)
			}
		}
		if err != nil {
			return err
		}
	}
	if kind == layout.KindMeta {
		var m layout.Meta
		if err := m.Decode(f.value, r.number); err != nil {
			return err
		}
		r.named[r.number] = m
	}
	if f.kind != framePut {
		if r.whole {
			return damage.Corrupt("the copy", "it holds all records, and names one of a copy before")
		}
		return nil
	}
	return r.batch.Set(key, f.value)
}

// replaceBucket removes a bucket and the records that it names, but for those
// that the new one names.
func (r *restorer) replaceBucket(place []byte, f *copyFrame) error {
	if len(place) != layout.NumberSize {
		return damage.Corrupt("an index entry", "its key has %d bytes", len(place))
	}
	index := dbadapter.Index(layout.Read48(place))
	kept := map[string]bool{}
	if f.kind == framePut {
		if _, err := eachKey(f.value, r.number, index, func(key []byte) error { kept[string(key)] = true; return nil }); err != nil {
			return err
		}
	}
	bucketKey := appendIndexKey(nil, r.number, index)
	old, err := kv.Get(r.before, bucketKey)
	if err != nil || old == nil {
		return err
	}
	_, err = eachKey(old, r.number, index, func(key []byte) error {
		if kept[string(key)] {
			return nil
		}
		return errors.Join(r.remove(append(appendPrefix(nil, r.number, kindRecord), key...)), r.remove(tailKey(r.number, key)))
	})
	if err == nil && f.kind == frameEmpty {
		err = r.remove(bucketKey)
	}
	return err
}

// replaceTail removes the tail of a long record that a short one replaces. The
// tail of a long one comes with it.
func (r *restorer) replaceTail(key []byte, f *copyFrame) error {
	if len(f.value) > 0 && f.value[0]&flagLong != 0 {
		return nil
	}
	return r.remove(tailKey(r.number, key))
}

// remove deletes an entry, if the copies before hold it.
func (r *restorer) remove(key []byte) error {
	held, err := kv.Get(r.before, key)
	if held == nil || err != nil {
		return err
	}
	return r.batch.Delete(key)
}

// skipOthers removes the entries of the other kinds that are less than a key, nil
// for all: the copy does not name them. It moves on behind that key.
func (r *restorer) skipOthers(key []byte) error {
	it := r.others
	for it.Valid() {
		at := bytes.Clone(it.Key())
		if kind := at[prefixSize-1]; bytes.IndexByte(copiedApart, kind) >= 0 {
			it.Seek(appendPrefix(nil, r.number, kind+1))
			continue
		}
		switch order := bytes.Compare(at, key); {
		case key != nil && order > 0:
			return nil
		case key != nil && order == 0:
			it.Next()
			return nil
		}
		if err := r.batch.Delete(at); err != nil {
			return err
		}
		it.Next()
	}
	return it.Err()
}

// same checks that the copies before hold an entry.
func (r *restorer) same(key []byte) error {
	held, err := kv.Get(r.before, key)
	if err == nil && held == nil {
		err = damage.Corrupt("the copy", "it names an entry that the copies before it do not hold")
	}
	return err
}

// finish names the namespaces of the last copy, and removes the others.
func (r *restorer) finish() (err error) {
	defer damage.Recovered("database", &err)
	if r.named == nil {
		return fmt.Errorf("%w: there is no copy", dbadapter.ErrNotFound)
	}
	for number := range r.present {
		if _, ok := r.named[number]; ok {
			continue
		}
		if err := r.db.DropPrefix(binary.BigEndian.AppendUint32(nil, number)); err != nil {
			return err
		}
	}
	txn := r.db.Begin()
	defer txn.Discard()
	for number, m := range r.named {
		if number >= r.head.next {
			return damage.Corrupt("the copy", "a namespace has the number %d, which is not given yet", number)
		}
		// The log gets another id: the numbers that follow the copy have been given before,
		// in the store that was copied.
		id := r.present[number]
		m.Log = dbadapter.NewLogID()
		if err := errors.Join(txn.Set(metaKey(number), m.Encode(number)), txn.Set(nameKey(id), encodeName(id, number))); err != nil {
			return err
		}
	}
	if err := txn.Set(metaKey(0), r.head.encode()); err != nil {
		return err
	}
	return txn.Commit()
}
