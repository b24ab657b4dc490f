package node

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// How what this node tells (telling.go) follows what its sets hold. A poll tells what was noted since the
// last one. A set of which is told for the first time, or of which more has changed than is noted, is
// read as a whole: in the poll where that takes no time, else by TellAnew, beside polls, and nothing is
// told of it meanwhile.

const (
	// readAtOnce is how many records of sets a poll reads, for less than a second: the one that has
	// asked waits for 10 s at most, and others for it.
	readAtOnce = 1 << 14

	// untoldRest is for how long a set is not read again that could not be read: polls come all the time,
	// and a large one may be read for long until that shows.
	untoldRest = 10 * time.Second
)

// catchUp tells what the sets say now: nothing of one that is to be read beside polls, or cannot be read,
// and what the others say nevertheless. An error is the asker's end. telling.mu is held.
func (ns *Namespace) catchUp(ctx context.Context) error {
	t := &ns.telling
	t.host.SetLayout(layoutMark(ns.placed.Load()))
	for _, home := range slices.Sorted(maps.Keys(t.open)) { // the log says the same in each run
		if set := t.open[home]; ns.held(set.shard) != set {
			t.close(home)
		}
	}
	room := cmp.Or(ns.node.ReadAtOnce, readAtOnce)
	for _, set := range ns.Sets() {
		if set == t.reading || !ns.rule.Tells(set.shard) || t.rests(set.home(), ns.node.Now()) {
			continue
		}
		if err := set.tell(ctx, t, &room); err != nil {
			if ctx.Err() != nil {
				return err
			}
			set.untold(t, err)
		}
	}
	return nil
}

// home is the set's number in the directory.
func (set *Set) home() placement.Shard { return set.ns.rule.Place(set.shard) }

// records is how many records the set holds.
func (set *Set) records() int {
	_, records, _ := set.Live.State()
	return int(records)
}

// close ends to tell of a set. telling.mu is held.
func (t *telling) close(home placement.Shard) {
	t.host.Close(home)
	delete(t.open, home)
}

// untold ends to tell of a set that could not be read, unless it was dropped meanwhile. telling.mu is held.
func (set *Set) untold(t *telling, err error) {
	if set.ns.held(set.shard) != set {
		return
	}
	t.close(set.home())
	t.unread[set.home()] = set.ns.node.Now()
	if untold := set.ns.node.Untold; untold != nil {
		untold(set, err)
	}
}

// rests reports whether a set could not be read a moment ago, also by a clock that was set back.
func (t *telling) rests(home placement.Shard, now time.Time) bool {
	at, failed := t.unread[home]
	if rest := now.Sub(at); failed && 0 <= rest && rest < untoldRest {
		return true
	}
	delete(t.unread, home)
	return false
}

// tell tells what the set says now, if this node is settled in it: also while it hands the set over as
// a host of before. All that hold it are asked, and what one of them does not tell leaves open where
// the set's keys are. room is how many records may be read yet.
func (set *Set) tell(ctx context.Context, t *telling, room *int) (err error) {
	records := set.records()
	indices, many := set.noted.take(records)
	if !set.settled() {
		t.close(set.home())
		return nil
	}
	if t.open[set.home()] == nil || many {
		if records > *room { // it is to be read beside polls, as one that is not open
			t.close(set.home())
			return nil
		}
		*room -= records
		set.noted.begin(records, false)
		told, err := set.read(ctx)
		if err != nil {
			set.noted.again() // if it stays open
			return err
		}
		t.tellAll(set, told)
		return nil
	}
	err = set.codes(indices, func(index dbadapter.Index, is directory.Code) { t.host.Set(set.home(), index, is) })
	if err != nil {
		set.noted.again()
	}
	return err
}

// TellAnew reads one set as a whole, beside polls, and tells all of it. It reports whether it has read one. A driver
// calls it every now and then, and again until it reports false: no set is left, another call is reading one, or
// the context is over.
func (ns *Namespace) TellAnew(ctx context.Context) bool {
	set := ns.toRead(ctx)
	if set == nil {
		return false
	}
	set.tellAnew(ctx)
	return true
}

// toRead is the next set that TellAnew reads, or nil.
func (ns *Namespace) toRead(ctx context.Context) *Set {
	t := &ns.telling
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.host == nil || t.reading != nil || ctx.Err() != nil {
		return nil
	}
	sets := ns.Sets()
	behind, _ := slices.BinarySearchFunc(sets, t.read, func(set *Set, read placement.Shard) int { return int(set.shard) - int(read) - 1 })
	for _, set := range slices.Concat(sets[behind:], sets[:behind]) { // one that changes too fast keeps no other one waiting
		if !ns.rule.Tells(set.shard) || t.open[set.home()] != nil || !set.settled() || t.rests(set.home(), ns.node.Now()) {
			continue
		}
		t.reading, t.read = set, set.shard
		return set
	}
	return nil
}

// tellAnew reads the set, and tells all that it says. What is committed meanwhile it reads, too, until a poll
// can tell the rest.
func (set *Set) tellAnew(ctx context.Context) {
	t := &set.ns.telling
	records := set.records()
	set.noted.begin(records, true)
	told, err := set.read(ctx)
	missed := false
	for err == nil && ctx.Err() == nil {
		var indices map[dbadapter.Index]bool
		if indices, missed = set.noted.takeMany(records); len(indices) == 0 {
			break
		}
		err = set.codes(indices, func(index dbadapter.Index, is directory.Code) { told.Set(index, is) })
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reading = nil
	set.noted.end()
	switch {
	case ctx.Err() != nil:
	case err != nil:
		set.untold(t, err)
	case !missed && set.ns.held(set.shard) == set && set.settled(): // else it is looked again whether to read it
		t.tellAll(set, told)
		t.bell.ring() // the next poll tells what is noted
	}
}

// tellAll tells of all that a set says. telling.mu is held.
func (t *telling) tellAll(set *Set, told *directory.Told) {
	t.host.Tell(set.home(), told)
	t.open[set.home()] = set
}

// codes tells of some indices what the set says now.
func (set *Set) codes(indices map[dbadapter.Index]bool, tell func(dbadapter.Index, directory.Code)) error {
	ascending := slices.Sorted(maps.Keys(indices))
	if !set.Directory() {
		for _, index := range ascending {
			tell(index, codeOf(set.shard, indices[index]))
		}
		return nil
	}
	if len(ascending) == 0 {
		return nil
	}
	snap, err := set.Store.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	for some := range slices.Chunk(ascending, wire.BatchRecords) {
		if err := set.codesIn(snap, some, tell); err != nil {
			return err
		}
	}
	return nil
}

// codesIn tells of some indices, ascending, what a snapshot of a set of the directory says.
func (set *Set) codesIn(snap dbadapter.Snapshot, indices []dbadapter.Index, tell func(dbadapter.Index, directory.Code)) error {
	buckets, err := snap.Buckets(indices)
	for i, bucket := range buckets {
		tell(indices[i], directory.CodeOf(bucket, set.ns.rule.Shards))
	}
	return err
}

// read reads what the set says of all indices. What is committed after that, and maybe a little before, is noted.
func (set *Set) read(ctx context.Context) (*directory.Told, error) {
	snap, err := set.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	told := &directory.Told{}
	var indices []dbadapter.Index
	flush := func() error {
		err := set.codesIn(snap, indices, func(index dbadapter.Index, is directory.Code) {
			if is != directory.Gone {
				told.Append(index, is)
			}
		})
		indices = indices[:0]
		return err
	}
	for pair, err := range snap.Pairs(ctx, 0, 0) {
		switch {
		case err != nil:
			return nil, err
		case !set.Directory():
			told.Append(pair.Index, codeOf(set.shard, true))
			continue
		}
		if indices = append(indices, pair.Index); len(indices) == wire.BatchRecords {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	if len(indices) > 0 {
		err = flush()
	}
	return told, err
}

// codeOf is what a shard says of an index under which it holds something, or nothing.
func codeOf(shard placement.Shard, held bool) directory.Code {
	if held {
		return directory.Code(shard)
	}
	return directory.Gone
}
