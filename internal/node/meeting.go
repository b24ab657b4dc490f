package node

import (
	"context"
	"errors"
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
	w.placeCame(held)
	guesses := &guesses{w: w}
	for _, number := range w.meetings.due(slices.Sorted(maps.Keys(held)), w.do.Steady()) {
		set := held[number]
		guesses.held = number
		err := w.meetings.look(ctx, number, &lookThrough{
			keys: func(after []byte) iter.Seq2[[]byte, error] { return set.keys(ctx, after) }, now: w.do.Steady,
			elsewhere: guesses.elsewhere,
			decide:    func(key []byte) (verdict, error) { return w.decide(ctx, set, key) },
			failed:    func(err error) { w.do.Met(Undecided, number, err) },
		})
		if err != nil && ctx.Err() == nil {
			w.do.Met(Unlooked, number, err)
		}
	}
	guesses.verify()
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

// guesses are the keys of records that the locator places in their shard, perhaps by chance, or since
// another key has the same index: a record whose entry was lost would be found by this node alone, or
// by no reader for sure. Those of all shards that are due are verified at once: that reads all that
// the locator has on disk.
type guesses struct {
	w    *ByWriter
	held placement.Shard // that is looked at
	of   directory.Guesses
	in   []placement.Shard // the shards that they are of
}

// elsewhere reports whether the locator places a key, of which the shard has a record, elsewhere, or
// cannot tell where it is however much it hears. known is false where it may tell later; where it is to be verified, what this node
// has written counts until the next look.
func (g *guesses) elsewhere(key []byte, verify bool) (elsewhere, known bool) {
	switch a := g.w.told(key); a.Where {
	case directory.In, directory.Here:
		if verify && a.Shard == g.held {
			g.add(key)
		}
		return a.Shard != g.held, true
	case directory.OneOf:
		elsewhere = a.Shard != g.held || len(a.Others) > 0
		return elsewhere, elsewhere || verify // not all hosts say that it is here, or but this node, which has written it
	case directory.Nowhere:
		return true, true // an entry that is on its way or lost, or the tombstone of another first write's
	case directory.Unknown:
		return a.Shared, a.Shared // its entry is to be asked for: no feed tells of it
	}
	return false, true
}

func (g *guesses) add(key []byte) {
	if len(g.in) == 0 || g.in[len(g.in)-1] != g.held {
		g.in = append(g.in, g.held)
	}
	g.of.Add(g.w.ns.ToldAs(key))
	if g.of.Len() >= directory.MaxGuesses {
		g.verify()
	}
}

// verify has the locator look them up; where some are wrong, their shards are looked at once more.
func (g *guesses) verify() {
	n, err := g.w.do.Locator().Verify(&g.of)
	for _, s := range g.in {
		if n > 0 {
			g.w.meetings.met(s)
		}
		if err != nil {
			g.w.do.Met(Unlooked, s, err)
		}
	}
	g.of, g.in = directory.Guesses{}, nil
}

// decide does what becomes of a record that the directory places in another shard, or in none.
func (w *ByWriter) decide(ctx context.Context, set *Set, key []byte) (verdict, error) {
	number := set.shard
	own := w.ns.RemoteIn(key, number)
	held, err := set.Held(key)
	switch {
	case err != nil:
		return undecided, err
	case held == nil:
		return decided, nil
	}
	// What a former member wrote the other hosts do not take: it is for this one to decide, and they are
	// not equal with it until then.
	former := w.ns.Members().former(held)
	switch {
	case former && !w.ns.Members().Has(w.ns.node.ID, RoleWrite):
		return deferred, nil
	case former, w.meetings.lostAs(number, key) == held.Version: // the host that others prefer may not know that it has
	case !own.Settles(w.do.Connected):
		return deferred, nil
	}
	found, err := w.found(ctx, held, number)
	if err != nil {
		return undecided, err
	}
	// Another host may hold a later record, which this one has not heard of: then all of this is
	// not about what stands.
	at, err := w.do.LookUpIn(ctx, number, key, false)
	if err != nil {
		return undecided, err
	}
	held, err = set.Held(key)
	switch {
	case err != nil:
		return undecided, err
	case held == nil:
		return decided, nil
	}
	former = w.ns.Members().former(held)
	if e := found.Entry; e != nil && !held.Deleted && e.Version.Compare(held.Version) < 0 {
		found.Sure = w.lasted(&found, number, key, e.Version) // its own entry is on the way, or was lost
	}
	fate := directory.FateOf(held, number, w.ns.rule.Shards, found.Found)
	if fate == directory.Recede {
		w.meetings.hasLost(number, key, held.Version)
	}
	if !holds(&at, held, former) {
		return undecided, nil
	}
	if w.meetings.lostAs(number, key) == held.Version {
		fate = directory.Recede // what it has lost against may be deleted since, and collected
	}
	switch fate {
	case directory.Recede:
		return w.recede(ctx, set, held, found.Entry)
	case directory.Restore:
		return decided, w.restore(ctx, set, held, found.Entry)
	}
	return found.verdict, nil
}

// holds reports whether a record is what the hosts of its shard hold, for sure. A former member's they do not
// take: it is enough that they hold no later one, also where this node is a host of the shard no more.
func holds(at *LookedUp, held *dbadapter.Record, former bool) bool {
	if former {
		return at.Record == nil || at.Record.Version.Compare(held.Version) <= 0
	}
	return at.Sure && at.Record != nil && at.Record.Version == held.Version
}

// foundOf is what was found of a key, and what that is for its record if it stays.
type foundOf struct {
	directory.Found
	verdict verdict
}

// found asks the directory and the shard that it names about a record that is held in a shard.
func (w *ByWriter) found(ctx context.Context, record *dbadapter.Record, held placement.Shard) (f foundOf, err error) {
	key := record.Key
	f.verdict = undecided
	entry, err := w.do.LookUpIn(ctx, w.ns.Entries(key), key, false)
	if err != nil {
		return f, err
	}
	switch {
	case !entry.Sure:
		return f, nil // another host of the directory may know of a later entry
	case entry.Record == nil:
		f.Sure = w.lasted(&f, held, key, dbadapter.Version{})
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
	// An earlier record is not the entry's: if that never comes, the entry hides this one.
	if r := f.There; r != nil && (!r.Deleted && beyond(r, record) || cutShort(f.Entry, r)) {
		f.verdict = decided
		return f, nil
	}
	if there.Sure {
		f.Sure = w.lasted(&f, held, key, f.Entry.Version)
	}
	return f, nil
}

// lasted reports whether this node has known for AbsentFor that the key's entry has this version, or that
// the key has no entry (the zero version), and that it leads to no record as late; if not, lasted sets
// the verdict. It goes by a clock that never runs fast: a step of the machine's would end the wait.
func (w *ByWriter) lasted(f *foundOf, held placement.Shard, key []byte, entry dbadapter.Version) bool {
	now := w.do.Steady()
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

// recede takes a record out of a shard that has lost, and has each host of it list it: a dated one if the entry before which it
// recedes is of an item that is dated before it.
func (w *ByWriter) recede(ctx context.Context, set *Set, held, entry *dbadapter.Record) (verdict, error) {
	date := dbadapter.Timestamp(0)
	if entry != nil && held.Version.Writer == 0 {
		date = w.ns.lateDate(entry)
	}
	if receded, err := set.Recede(ctx, held, date); err != nil || !receded {
		return undecided, err // it holds a later record since just now
	}
	w.do.Met(Receded, set.shard, nil)
	return decided, nil
}

// restore writes a record anew that the directory hides: by an entry that leads nowhere, or, if
// that is nil, by none. It has the least version that takes the place of both, so that what was written meanwhile
// stands; where hosts have promised to hold all up to that, it has one of now.
func (w *ByWriter) restore(ctx context.Context, set *Set, held, entry *dbadapter.Record) error {
	latest, what := held, RestoredLost
	if entry != nil && entry.Version.Compare(held.Version) > 0 { // or else it is not what hid the record: its own was lost
		latest, what = entry, RestoredHidden
	}
	version, err := set.leastBehind(latest)
	if err != nil {
		return err
	}
	if err = w.rewrite(ctx, set, version, held, entry); errors.Is(err, ErrLate) {
		if w.ns.awaited.count(held.Key) > 0 || w.ns.committing.count(held.Key) > 0 {
			return errWrittenBeside
		}
		if version, err = w.ns.nextVersion(); err == nil {
			version.Incarnation = w.ns.node.Random(ForIncarnation)
			err = w.rewrite(ctx, set, version, held, entry)
		}
	}
	if err == nil {
		w.do.Met(what, set.shard, nil)
	}
	return err
}

// rewrite is restore with a version.
func (w *ByWriter) rewrite(ctx context.Context, set *Set, version dbadapter.Version, held, entry *dbadapter.Record) error {
	own, entries := w.ns.RemoteIn(held.Key, set.shard), w.ns.RemoteIn(held.Key, w.ns.Entries(held.Key))
	record, err := own.signed(dbadapter.Record{Key: held.Key, Value: held.Value, Expires: held.Expires, Version: version}, held, entry)
	if err != nil {
		return err
	}
	anew, err := entries.Entry(record, set.shard)
	if err != nil {
		return err
	}
	for _, to := range []struct {
		hosts  *Remote
		record *dbadapter.Record
	}{{entries, anew}, {own, record}} {
		written, err := w.HandOver(ctx, to.hosts, to.record, 1)
		switch {
		case err != nil && late(&written):
			return ErrLate
		case err != nil:
			return err
		}
	}
	return nil
}
