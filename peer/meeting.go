package peer

import (
	"context"
	"iter"
	"log/slog"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// What becomes of first writes of one key that were made apart from one another
// (docs/decisions/0052): the hosts of a shard look for records of which the directory says that
// they are elsewhere, and carry out what package directory says of them.

// meet looks through the shards that are due, as one of their hosts.
func (ns *Namespace) meet(ctx context.Context) {
	f := ns.follows
	held := map[placement.Shard]*shard{}
	for _, sh := range ns.records() {
		held[sh.set.Shard()] = sh
	}
	for _, number := range f.meetings.due(slices.Sorted(maps.Keys(held)), f.steady()) {
		sh := held[number]
		err := f.meetings.look(ctx, number, &lookThrough{
			keys: sh.keys, elsewhere: sh.elsewhere, now: f.steady,
			decide: func(key []byte) (verdict, error) { return sh.decide(ctx, key) },
			failed: func(err error) {
				ns.node.refusals.write(ns.node.log, slog.LevelDebug, "what becomes of a record that the directory places elsewhere could not be decided, and is tried again", logNamespace(ns), logError(err))
			},
		})
		if err != nil && ctx.Err() == nil {
			ns.node.refusals.write(ns.node.log, slog.LevelWarn, "the records of a shard could not be looked through, and it is tried again", logNamespace(ns), slog.Int("shard", int(number)), logError(err))
		}
	}
}

// keys are those of the shard's records behind one.
func (sh *shard) keys(after []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for r, err := range sh.scan(sh.ns.ctx, nil, &scan{after: after}) {
			if !yield(r.Key, err) {
				return
			}
		}
	}
}

// elsewhere reports whether the locator places a key, of which the shard has a record, elsewhere.
func (sh *shard) elsewhere(key []byte) bool {
	switch a := sh.ns.whereIs(key); a.Where {
	case directory.In, directory.Here:
		return a.Shard != sh.set.Shard()
	case directory.OneOf:
		return a.Shard != sh.set.Shard() || len(a.Others) > 0
	case directory.Nowhere:
		return true // an entry that is on its way or lost, or a deletion that was not carried to its end
	}
	return false
}

// decide does what becomes of a record that the directory places in another shard, or in none.
func (sh *shard) decide(ctx context.Context, key []byte) (verdict, error) {
	ns, number := sh.ns, sh.set.Shard()
	own := ns.core.RemoteIn(key, number)
	if !own.Settles(func(id node.ID) bool { return ns.node.connected(ID(id)) }) {
		return decided, nil // another host does
	}
	found, err := ns.found(ctx, key, number)
	if err != nil {
		return undecided, err
	}
	// Another host may hold a later record, which this one has not heard of: then all of this is
	// not about what stands.
	at, err := ns.lookUpIn(ctx, number, key, false)
	if err != nil {
		return undecided, err
	}
	held, err := sh.set.Held(key)
	switch {
	case err != nil:
		return undecided, err
	case held == nil:
		return decided, nil
	case !at.Sure || at.Record == nil || at.Record.Version != held.Version:
		return undecided, nil
	}
	switch directory.FateOf(held, number, ns.core.Rule().Shards, found.Found) {
	case directory.Recede:
		return ns.recede(ctx, sh, held)
	case directory.Restore:
		return decided, ns.restoreMet(ctx, own, held, found.Entry)
	}
	return found.verdict, nil
}

// foundOf is what was found of a key, and what that is for its record if it stays.
type foundOf struct {
	directory.Found
	verdict verdict
}

// found asks the directory and the shard that it names about a key that is held in a shard.
func (ns *Namespace) found(ctx context.Context, key []byte, held placement.Shard) (f foundOf, err error) {
	f.verdict = undecided
	entry, err := ns.lookUpIn(ctx, ns.core.Entries(key), key, false)
	if err != nil {
		return f, err
	}
	// By a clock that never runs fast: a step of the machine's would end the wait.
	now := ns.follows.steady()
	lasted := func(entry dbadapter.Version) bool {
		since, noted := ns.follows.meetings.absentSince(held, key, entry, now)
		over := noted && now-since >= absentFor
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
	case entry.Record.Deleted:
		if lasted(entry.Record.Version) { // else the tombstone of the record is on its way
			f.Entry, f.verdict = entry.Record, decided
		}
		return f, nil
	}
	f.Entry = entry.Record
	named, err := directory.ShardOf(f.Entry, ns.core.Rule().Shards)
	if err != nil || named == held {
		f.verdict = decided
		return f, err
	}
	there, err := ns.lookUpIn(ctx, named, key, false)
	if err != nil {
		return f, err
	}
	// A tombstone behind an entry that leads to a record is no reason to recede: it is of an
	// earlier record, or of one that receded itself. A key that is deleted has an entry that says so.
	if r := there.Record; r != nil && !r.Deleted {
		f.There, f.verdict = r, decided
		return f, nil
	}
	if there.Sure {
		f.Sure = lasted(f.Entry.Version)
	}
	return f, nil
}

// recede takes a record out of a shard that has lost, and has each host of it list it.
func (ns *Namespace) recede(ctx context.Context, sh *shard, held *dbadapter.Record) (verdict, error) {
	if receded, err := sh.set.Recede(ctx, held); err != nil || !receded {
		return undecided, err // it holds a later record since just now
	}
	ns.node.metrics.met.WithLabelValues(ns.Name(), "receded").Inc()
	ns.node.refusals.write(ns.node.log, slog.LevelWarn, "a key was first written by two nodes that had not heard of one another: one record stands, and the other one is in the list of conflicts of this shard's hosts (syncd conflicts)", logNamespace(ns), slog.Int("shard", int(sh.set.Shard())))
	return decided, nil
}

// restoreMet writes a record anew that the directory hides: by an entry that leads nowhere, or, if
// that is nil, by none.
func (ns *Namespace) restoreMet(ctx context.Context, own *node.Remote, held, entry *dbadapter.Record) error {
	seen := []*dbadapter.Record{held}
	why := "no entry of the directory led to it: the entry was lost, or that of a delete which was not acknowledged"
	if entry != nil {
		seen = append(seen, entry)
		why = "the entry of the directory that had hidden it leads to none, since its author has ended before the record was written, or that was lost"
	}
	record, err := own.Make(node.Draft{Record: dbadapter.Record{Key: held.Key, Value: held.Value, Expires: held.Expires}, Seen: seen})
	if err != nil {
		return err
	}
	entries := ns.core.RemoteIn(held.Key, ns.core.Entries(held.Key))
	anew, err := entries.Entry(record, own.Shard())
	if err != nil {
		return err
	}
	if _, err := ns.handOver(ctx, entries, anew, 1); err != nil {
		return err
	}
	if _, err := ns.handOver(ctx, own, record, 1); err != nil {
		return err
	}
	ns.node.metrics.met.WithLabelValues(ns.Name(), "restored").Inc()
	ns.node.refusals.write(ns.node.log, slog.LevelWarn, "a record was written anew: "+why, logNamespace(ns), slog.Int("shard", int(own.Shard())))
	return nil
}
