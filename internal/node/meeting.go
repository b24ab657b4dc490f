package node

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
)

// What becomes of first writes of one key that were made apart from one another
// (docs/decisions/0052): the hosts of a shard look for records of which the directory says that
// they are elsewhere, and carry out what package directory says of them.

// Meet looks through the shards that are due, as one of their hosts.
func (w *ByWriter) Meet(ctx context.Context) {
	held := map[placement.Shard]*Set{}
	for _, set := range w.ns.Sets() {
		if !set.Directory() {
			held[set.shard] = set
		}
	}
	for _, number := range w.meetings.due(slices.Sorted(maps.Keys(held)), w.do.Steady()) {
		set := held[number]
		err := w.meetings.look(ctx, number, &lookThrough{
			keys: func(after []byte) iter.Seq2[[]byte, error] { return set.keys(ctx, after) }, now: w.do.Steady,
			elsewhere: func(key []byte) (bool, bool) { return w.elsewhere(number, key) },
			decide:    func(key []byte) (verdict, error) { return w.decide(ctx, set, key) },
			failed:    func(err error) { w.do.Met(Undecided, number, err) },
		})
		if err != nil && ctx.Err() == nil {
			w.do.Met(Unlooked, number, err)
		}
	}
}

// keys are those of the set's records behind one, without what was deleted or has expired.
func (set *Set) keys(ctx context.Context, after []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		snap, err := set.Store.Snapshot()
		if err != nil {
			yield(nil, err)
			return
		}
		defer snap.Close()
		for r, err := range snap.Scan(ctx, nil, after) {
			if (err != nil || set.Present(&r.Record)) && !yield(r.Key, err) {
				return
			}
		}
	}
}

// elsewhere reports whether the locator places a key, of which the shard has a record, elsewhere, or
// cannot tell where it is however much it hears. known is false where it may tell later.
func (w *ByWriter) elsewhere(held placement.Shard, key []byte) (elsewhere, known bool) {
	switch a := w.WhereIs(key); a.Where {
	case directory.In, directory.Here:
		return a.Shard != held, true
	case directory.OneOf:
		return a.Shard != held || len(a.Others) > 0, true
	case directory.Nowhere:
		return true, true // an entry that is on its way or lost, or the tombstone of another first write's
	case directory.Unknown:
		return a.Shared, a.Shared // its entry is to be asked for: no feed tells of it
	}
	return false, true
}

// decide does what becomes of a record that the directory places in another shard, or in none.
func (w *ByWriter) decide(ctx context.Context, set *Set, key []byte) (verdict, error) {
	number := set.shard
	own := w.ns.RemoteIn(key, number)
	if !own.Settles(w.do.Connected) {
		return deferred, nil
	}
	found, err := w.found(ctx, key, number)
	if err != nil {
		return undecided, err
	}
	// Another host may hold a later record, which this one has not heard of: then all of this is
	// not about what stands.
	at, err := w.do.LookUpIn(ctx, number, key, false)
	if err != nil {
		return undecided, err
	}
	held, err := set.Held(key)
	switch {
	case err != nil:
		return undecided, err
	case held == nil:
		return decided, nil
	}
	fate := directory.FateOf(held, number, w.ns.rule.Shards, found.Found)
	if fate == directory.Recede {
		w.meetings.hasLost(number, key, held.Version)
	}
	if !at.Sure || at.Record == nil || at.Record.Version != held.Version {
		return undecided, nil
	}
	if w.meetings.lostAs(number, key) == held.Version {
		fate = directory.Recede // what it has lost against may be deleted since, and collected
	}
	switch fate {
	case directory.Recede:
		return w.recede(ctx, set, held)
	case directory.Restore:
		return decided, w.restore(ctx, own, held, found.Entry)
	}
	return found.verdict, nil
}

// foundOf is what was found of a key, and what that is for its record if it stays.
type foundOf struct {
	directory.Found
	verdict verdict
}

// found asks the directory and the shard that it names about a key that is held in a shard.
func (w *ByWriter) found(ctx context.Context, key []byte, held placement.Shard) (f foundOf, err error) {
	f.verdict = undecided
	entry, err := w.do.LookUpIn(ctx, w.ns.Entries(key), key, false)
	if err != nil {
		return f, err
	}
	// By a clock that never runs fast: a step of the machine's would end the wait.
	now := w.do.Steady()
	lasted := func(entry dbadapter.Version) bool {
		since, noted := w.meetings.absentSince(held, key, entry, now)
		over := noted && now-since >= AbsentFor
		switch {
		case !noted:
			f.verdict = noRoom
		case !over:
			f.verdict = awaited
		}
		return over
	}
	switch {
	case !entry.Sure:
		return f, nil // another host of the directory may know of a later entry
	case entry.Record == nil:
		f.Sure = lasted(dbadapter.Version{})
		return f, nil
	case entry.Record.Deleted: // a deletion of this record has written its tombstone before that
		f.Entry, f.verdict = entry.Record, decided
		return f, nil
	}
	f.Entry = entry.Record
	named, err := directory.ShardOf(f.Entry, w.ns.rule.Shards)
	if err != nil || named == held {
		f.verdict = decided
		return f, err
	}
	there, err := w.do.LookUpIn(ctx, named, key, false)
	if err != nil {
		return f, err
	}
	f.There = there.Record
	if r := f.There; r != nil && (!r.Deleted || cutShort(f.Entry, r)) {
		f.verdict = decided
		return f, nil
	}
	if there.Sure {
		f.Sure = lasted(f.Entry.Version)
	}
	return f, nil
}

// recede takes a record out of a shard that has lost, and has each host of it list it.
func (w *ByWriter) recede(ctx context.Context, set *Set, held *dbadapter.Record) (verdict, error) {
	if receded, err := set.Recede(ctx, held); err != nil || !receded {
		return undecided, err // it holds a later record since just now
	}
	w.do.Met(Receded, set.shard, nil)
	return decided, nil
}

// restore writes a record anew that the directory hides: by an entry that leads nowhere, or, if
// that is nil, by none.
func (w *ByWriter) restore(ctx context.Context, own *Remote, held, entry *dbadapter.Record) error {
	seen := []*dbadapter.Record{held}
	what := RestoredLost
	if entry != nil {
		seen = append(seen, entry)
		what = RestoredHidden
	}
	record, err := own.Make(Draft{Record: dbadapter.Record{Key: held.Key, Value: held.Value, Expires: held.Expires}, Seen: seen})
	if err != nil {
		return err
	}
	entries := w.ns.RemoteIn(held.Key, w.ns.Entries(held.Key))
	anew, err := entries.Entry(record, own.Shard())
	if err != nil {
		return err
	}
	if _, err := w.HandOver(ctx, entries, anew, 1); err != nil {
		return err
	}
	if _, err := w.HandOver(ctx, own, record, 1); err != nil {
		return err
	}
	w.do.Met(what, own.shard, nil)
	return nil
}
