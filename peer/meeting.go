package peer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// What becomes of first writes of one key that were made apart from one another
// (docs/decisions/0052): the hosts of a shard look for records of which the directory says that
// they are elsewhere, and carry out what package directory says of them.

const (
	// meetingsEvery is how often all records are looked through; a shard out of which a host of
	// the directory says that a key has gone is looked through at once, and again after
	// meetingsSoon while something of it is not decided.
	meetingsEvery = 10 * time.Minute
	meetingsSoon  = 10 * time.Second
	// absentFor is for how long the record of an entry must not be there until its author counts
	// as ended: its record follows within entryPatience, and is on its way for routePatience.
	absentFor = 2 * time.Minute
	// meetingsAtOnce are remembered of a shard in one look, by their keys: 64 KiB at most each.
	meetingsAtOnce = 1024
)

// meetings are the first writes that may have met.
type meetings struct {
	mu    sync.Mutex // guards what follows
	due   map[placement.Shard]time.Duration
	every time.Duration // when all shards are due
	// absent is since when the record of an entry is known not to be there, by key.
	absent map[string]absence
}

type absence struct {
	entry dbadapter.Version
	since time.Duration
}

// met notes that a first write may have lost in a shard.
func (m *meetings) met(s placement.Shard, at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.due == nil {
		m.due = map[placement.Shard]time.Duration{}
	}
	if old, ok := m.due[s]; !ok || at < old {
		m.due[s] = at
	}
}

// take are the shards that are due.
func (m *meetings) take(now time.Duration) (all bool, some map[placement.Shard]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if all = now >= m.every; all {
		m.every = now + meetingsEvery
		clear(m.due)
		return true, nil
	}
	some = map[placement.Shard]bool{}
	maps.DeleteFunc(m.due, func(s placement.Shard, at time.Duration) bool {
		some[s] = some[s] || at <= now
		return at <= now
	})
	return false, some
}

// absentSince notes that the record of a key's entry is not there, and says since when.
func (m *meetings) absentSince(key []byte, entry dbadapter.Version, now time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.absent == nil || len(m.absent) >= meetingsAtOnce {
		m.absent = map[string]absence{}
	}
	a, ok := m.absent[string(key)]
	if !ok || a.entry != entry {
		a = absence{entry, now}
		m.absent[string(key)] = a
	}
	return a.since
}

// meet looks through the shards that are due, as one of their hosts.
func (ns *Namespace) meet(ctx context.Context) {
	f := ns.follows
	all, some := f.meetings.take(f.now())
	for _, sh := range ns.records() {
		if number := sh.set.Shard(); all || some[number] {
			if again, err := sh.meet(ctx); again || err != nil {
				f.meetings.met(number, f.now()+meetingsSoon)
			}
		}
	}
}

// meet looks through the records of a shard. again: something of it is not decided.
func (sh *shard) meet(ctx context.Context) (again bool, err error) {
	var lost [][]byte
	for r, err := range sh.scan(ctx, nil, &scan{}) {
		if err != nil {
			return true, err
		}
		if again = len(lost) >= meetingsAtOnce; again {
			break
		}
		if sh.elsewhere(r.Key) {
			lost = append(lost, bytes.Clone(r.Key))
		}
	}
	for _, key := range lost {
		if ctx.Err() != nil {
			return true, context.Cause(ctx)
		}
		decided, err := sh.decide(ctx, key)
		again = again || !decided
		if err != nil {
			sh.ns.node.refusals.write(sh.ns.node.log, slog.LevelDebug, "what becomes of a record that the directory places elsewhere could not be decided, and is tried again", logNamespace(sh.ns), logError(err))
		}
	}
	return again, nil
}

// elsewhere reports whether the locator places a key, of which the shard has a record, elsewhere.
func (sh *shard) elsewhere(key []byte) bool {
	switch a := sh.ns.whereIs(key); a.Where {
	case directory.In, directory.Here:
		return a.Shard != sh.set.Shard()
	case directory.OneOf:
		return a.Shard != sh.set.Shard() || len(a.Others) > 0
	case directory.Nowhere:
		return true // an entry that is on its way, or a deletion that was not carried to its end
	}
	return false
}

// decide does what becomes of a record that the directory places in another shard.
func (sh *shard) decide(ctx context.Context, key []byte) (decided bool, err error) {
	ns, number := sh.ns, sh.set.Shard()
	own := ns.core.RemoteIn(key, number)
	if !own.Settles(func(id node.ID) bool { return ns.node.connected(ID(id)) }) {
		return true, nil // another host does
	}
	found, err := ns.found(ctx, key, number)
	if err != nil {
		return false, err
	}
	held, err := sh.set.Held(key)
	if err != nil || held == nil {
		return true, err
	}
	switch directory.FateOf(held, number, ns.core.Rule().Shards, found.Found) {
	case directory.Recede:
		err := ns.recede(ctx, own, held)
		return err == nil, err
	case directory.Restore:
		err := ns.restoreMet(ctx, own, held, found.Entry)
		return err == nil, err
	}
	return found.whole, nil
}

// foundOf is what was found of a key; whole: nothing of it is unknown.
type foundOf struct {
	directory.Found
	whole bool
}

// found asks the directory and the shard that it names about a key that is held in a shard.
func (ns *Namespace) found(ctx context.Context, key []byte, held placement.Shard) (f foundOf, err error) {
	entry, err := ns.lookUpIn(ctx, ns.core.Entries(key), key, false)
	if err != nil || entry.Record == nil {
		f.whole = entry.Sure
		return f, err
	}
	// By a clock that never runs fast: a step of the machine's would end the wait.
	now := ns.follows.steady()
	if entry.Record.Deleted {
		if now-ns.follows.meetings.absentSince(key, entry.Record.Version, now) < absentFor {
			return f, nil // the tombstone of the record is on its way
		}
		f.Entry, f.whole = entry.Record, true
		return f, nil
	}
	f.Entry = entry.Record
	named, err := directory.ShardOf(f.Entry, ns.core.Rule().Shards)
	if err != nil || named == held {
		f.whole = true
		return f, err
	}
	there, err := ns.lookUpIn(ctx, named, key, false)
	if err != nil {
		return f, err
	}
	// A tombstone behind an entry that leads to a record is no reason to recede: it is of an
	// earlier record, or of one that receded itself. A key that is deleted has an entry that says so.
	if r := there.Record; r != nil && !r.Deleted {
		f.There, f.whole = r, true
		return f, nil
	}
	f.Sure = there.Sure && now-ns.follows.meetings.absentSince(key, f.Entry.Version, now) >= absentFor
	return f, nil
}

// recede takes a record out of a shard that has lost, and has each host of it list it.
func (ns *Namespace) recede(ctx context.Context, own *node.Remote, held *dbadapter.Record) error {
	tombstone, err := own.Recede(held)
	if err != nil {
		return err
	}
	outcome, err := own.HoldHere(ctx, tombstone, false)
	if err = errors.Join(err, outcome.Declined); err != nil || !outcome.Held {
		return err // it holds a later record since just now
	}
	ns.node.metrics.met.WithLabelValues(ns.Name(), "receded").Inc()
	ns.node.refusals.write(ns.node.log, slog.LevelWarn, "a key was first written by two nodes that had not heard of one another: one record stands, and the other one is in the list of conflicts of this shard's hosts (syncd conflicts)", logNamespace(ns), slog.Int("shard", int(own.Shard())))
	return nil
}

// restoreMet writes a record anew that an entry of the directory hides which leads nowhere.
func (ns *Namespace) restoreMet(ctx context.Context, own *node.Remote, held, entry *dbadapter.Record) error {
	record, err := own.Make(node.Draft{Record: dbadapter.Record{Key: held.Key, Value: held.Value, Expires: held.Expires}, Seen: []*dbadapter.Record{held, entry}})
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
	ns.node.refusals.write(ns.node.log, slog.LevelWarn, "a record was written anew: the entry of the directory that had hidden it leads to none, since its author has ended before the record was written, or that was lost", logNamespace(ns), slog.Int("shard", int(own.Shard())))
	return nil
}
