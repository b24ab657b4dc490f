package kvstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// rescue makes new files of what can be read of a store. First it takes over all entries
// whose checksums hold (this file); then it compares the records of each namespace with
// their buckets, and what they add up to with the head, and makes them agree (mend.go).
type rescue struct {
	dir     string
	engine  kv.Engine
	options Options
	disk    diskGuard
	closed  bool // the store was closed in order
	known   map[dbadapter.NamespaceID]dbadapter.Hasher
	note    func(*dbadapter.Salvaged) error

	numbers   map[uint32]*rescued
	erased    map[uint32]bool // they are being erased
	head      head
	headKnown bool
	gaps      []kv.Gap // by their beginnings
	// older: a file could not be read at all, or not to its end, and any record may be
	// one from before, as in a copy.
	older  bool
	damage []string // places that no gap names
	out    kv.Loader
}

// rescued is what is known of a namespace.
type rescued struct {
	id     dbadapter.NamespaceID
	hasher dbadapter.Hasher // nil: its records cannot be checked
	meta   meta
	sure   bool // meta is that of the last commit
	blank  bool // meta is lost, and what it counted is not known
}

func newRescue(dir string, engine kv.Engine, o Options) *rescue {
	return &rescue{
		dir: dir, engine: engine, options: o, disk: diskGuard{dir: dir, min: o.MinFree},
		known: map[dbadapter.NamespaceID]dbadapter.Hasher{}, note: func(*dbadapter.Salvaged) error { return nil }, numbers: map[uint32]*rescued{}, erased: map[uint32]bool{}, head: head{next: 1},
	}
}

// run makes the new files and puts them in the place of the old ones.
func (r *rescue) run(ctx context.Context) (_ *dbadapter.Salvaged, err error) {
	folder := filepath.Join(r.dir, salvageNew)
	done := &dbadapter.Salvaged{Lost: map[dbadapter.NamespaceID]dbadapter.Loss{}}
	if err := r.build(ctx, folder, done); err != nil {
		return nil, errors.Join(err, finishSalvage(r.dir)) // removes what was made
	}
	// What was written is read again before the old files go.
	if err := r.engine.Probe(folder, true); err != nil {
		return nil, errors.Join(err, finishSalvage(r.dir))
	}
	for i := range r.gaps {
		r.damage = append(r.damage, r.gaps[i].Where)
	}
	slices.Sort(r.damage)
	done.Damage = slices.Compact(r.damage)
	done.Damage = done.Damage[:min(len(done.Damage), dbadapter.MaxNamed)]
	done.Older = r.older
	if err := r.note(done); err != nil {
		return nil, errors.Join(err, finishSalvage(r.dir))
	}
	if err := rename(r.dir, salvageNew, salvageWhole); err != nil {
		return nil, err
	}
	return done, finishSalvage(r.dir)
}

// build makes the new files in a folder, closed in order.
func (r *rescue) build(ctx context.Context, folder string, done *dbadapter.Salvaged) (err error) {
	if err := finishSalvage(r.dir); err != nil {
		return err
	}
	if err := r.disk.opening(r.engine); err != nil {
		return err
	}
	db, err := r.engine.Open(folder)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, db.Close()); err == nil {
			err = markClean(folder, r.head.commits)
		}
	}()
	if err := r.take(ctx, db); err != nil {
		return err
	}
	r.missing()
	for number, n := range r.numbers {
		if n.hasher == nil {
			continue
		}
		m := mender{rescue: r, db: db, namespace: &namespace{number: number, hasher: n.hasher}, of: n}
		loss, err := m.run(ctx)
		if err != nil {
			return err
		}
		if loss.Any() {
			done.Lost[n.id] = loss
		}
	}
	return r.finish(db)
}

// errNames ends the first look, which is for the names.
var errNames = errors.New("all names have been read")

// take takes over all entries that are sound. The names of the namespaces come first:
// with them the records can be checked.
func (r *rescue) take(ctx context.Context, db kv.DB) error {
	_, err := r.engine.Salvage(ctx, r.dir, kv.Salvage{Sound: r.sound, Closed: r.closed, Entry: func(key, value []byte) error {
		if len(key) >= prefixSize && binary.BigEndian.Uint32(key) > 0 {
			return errNames
		}
		return r.entry(key, value)
	}})
	if err != nil && !errors.Is(err, errNames) {
		return err
	}
	r.gaps = nil // they will be found again
	r.out = r.disk.load(db)
	defer r.out.Cancel()
	gaps, err := r.engine.Salvage(ctx, r.dir, kv.Salvage{Sound: r.sound, Entry: r.entry, Closed: r.closed})
	if err != nil {
		return err
	}
	for _, g := range gaps {
		if g.Whole() {
			r.older = true
			r.damage = append(r.damage, g.Where)
		} else {
			r.gaps = append(r.gaps, g)
		}
	}
	slices.SortFunc(r.gaps, func(a, b kv.Gap) int { return bytes.Compare(a.From, b.From) })
	return r.out.Flush()
}

// doubtful reports whether an entry may not be the newest of its key.
func (r *rescue) doubtful(key []byte) bool {
	for i := range r.gaps { // a few, unless much is damaged
		if bytes.Compare(r.gaps[i].From, key) > 0 {
			return false
		}
		if r.gaps[i].Has(key) {
			return true
		}
	}
	return false
}

// touches reports whether entries of a kind may have been lost.
func (r *rescue) touches(number uint32, kinds string) bool {
	if r.older {
		return true
	}
	for i := range r.gaps {
		g := &r.gaps[i]
		for _, kind := range []byte(kinds) {
			prefix := appendPrefix(nil, number, kind)
			if (g.To == nil || bytes.Compare(prefix, g.To) < 0) && bytes.Compare(g.From, appendPrefix(nil, number, kind+1)) < 0 {
				return true
			}
		}
	}
	return false
}

// entry takes one entry over, if it is sound.
func (r *rescue) entry(key, value []byte) error {
	if len(key) < prefixSize {
		return nil // it is not one of ours
	}
	number, kind := binary.BigEndian.Uint32(key), key[prefixSize-1]
	if number == 0 {
		return r.own(kind, key, value)
	}
	if r.erased[number] {
		return nil
	}
	r.head.next = max(r.head.next, number+1)
	if r.numbers[number] == nil && kind == kindRecord {
		r.name(number, key[prefixSize:], value)
	}
	if !r.sound(key, value) && !r.halved(kind, value) && r.checks(number) {
		r.gaps = append(r.gaps, kv.Gap{Where: "the entry " + damage.Quote(key), From: key, To: kv.After(key)})
		return nil
	}
	return r.out.Set(key, value)
}

// name finds the namespace of a number whose name is lost, by a record of it.
func (r *rescue) name(number uint32, key, value []byte) {
	named := map[dbadapter.NamespaceID]bool{}
	for _, n := range r.numbers {
		named[n.id] = true
	}
	for id, h := range r.known {
		if named[id] {
			continue
		}
		if _, err := readEnvelope(value, key, h); err == nil {
			r.numbers[number] = &rescued{id: id, hasher: h}
			return
		}
	}
}

// missing takes up the known namespaces of which nothing was found, where their names may
// have been lost with all else.
func (r *rescue) missing() {
	if !r.touches(0, string(rune(kindName))) {
		return
	}
	found := map[dbadapter.NamespaceID]bool{}
	for _, n := range r.numbers {
		found[n.id] = true
	}
	for id, h := range r.known {
		if !found[id] {
			r.numbers[r.head.next] = &rescued{id: id, hasher: h}
			r.head.next++
		}
	}
}

// checks reports whether the entries of a number can be checked.
func (r *rescue) checks(number uint32) bool {
	n := r.numbers[number]
	return n != nil && n.hasher != nil
}

// halved reports whether an entry is a half of one that was too long, which has no
// checksum alone.
func (r *rescue) halved(kind byte, value []byte) bool {
	switch kind {
	case kindTail, kindMore:
		return true
	case kindRecord:
		return len(value) > 0 && value[0]&flagLong != 0
	case layout.KindKept:
		return len(value) > 0 && value[0] == 1
	}
	return false
}

// own takes over an entry of the store itself. The lines of copies end here: a copy
// that follows would not show what is missing.
func (r *rescue) own(kind byte, key, value []byte) error {
	switch kind {
	case kindName:
		if len(key) != prefixSize+len(dbadapter.NamespaceID{}) {
			return nil
		}
		id := dbadapter.NamespaceID(key[prefixSize:])
		number, err := decodeName(id, value)
		if err != nil {
			r.gaps = append(r.gaps, kv.Gap{Where: "the name of a namespace", From: key, To: kv.After(key)})
			return nil
		}
		if r.numbers[number] == nil {
			r.numbers[number] = &rescued{id: id, hasher: r.known[id]}
		}
	case kindDrop:
		if len(key) == prefixSize+4 {
			r.erased[binary.BigEndian.Uint32(key[prefixSize:])] = true
		}
	case layout.KindMeta:
		var h head
		if !r.headKnown && h.decode(value) == nil {
			r.head, r.headKnown = h, true
		}
	}
	return nil
}

// finish writes what the store knows of itself.
func (r *rescue) finish(db kv.DB) error {
	txn := db.Begin()
	defer txn.Discard()
	for number, n := range r.numbers {
		r.head.next = max(r.head.next, number+1)
		if err := txn.Set(nameKey(n.id), encodeName(n.id, number)); err != nil {
			return err
		}
	}
	if err := txn.Set(metaKey(0), r.head.encode()); err != nil {
		return err
	}
	return txn.Commit()
}

// sound reports whether an entry has a checksum that holds.
func (r *rescue) sound(key, value []byte) bool {
	if len(key) < prefixSize {
		return false
	}
	number, kind, rest := binary.BigEndian.Uint32(key), key[prefixSize-1], key[prefixSize:]
	var err error
	switch {
	case number == 0 && kind == kindName && len(rest) == len(dbadapter.NamespaceID{}):
		_, err = decodeName(dbadapter.NamespaceID(rest), value)
	case number == 0 && kind == layout.KindMeta && len(rest) == 0:
		err = new(head).decode(value)
	case number == 0 || r.halved(kind, value):
		return false
	case kind == kindRecord && r.checks(number):
		_, err = readEnvelope(value, rest, r.numbers[number].hasher)
	case kind == layout.KindIndex && len(rest) == layout.NumberSize:
		_, err = readBucket(value, number, dbadapter.Index(layout.Read48(rest)))
	case kind == layout.KindLog && len(rest) == 8:
		_, err = layout.ReadLogEntry(value, number, binary.BigEndian.Uint64(rest))
	case kind == layout.KindKept && len(key) == keptKeySize && r.checks(number):
		_, err = readKept(value, number, dbadapter.Why(rest[0]), binary.BigEndian.Uint64(rest[1:]), r.numbers[number].hasher)
	case kind == kindKeeps && len(rest) == 0:
		err = new(keeps).decode(value, number)
	case kind == kindPart && len(rest) == 8+4:
		_, err = layout.Unseal(value, partSeed(number, binary.BigEndian.Uint64(rest), binary.BigEndian.Uint32(rest[8:])), "")
	case kind == layout.KindMeta && len(rest) == 0:
		err = new(meta).decode(value, number)
	default:
		return false
	}
	return err == nil
}
