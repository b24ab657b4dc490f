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
		if set == t.reading || t.rests(set.shard, ns.node.Now()) {
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
	t.close(set.shard)
	t.unread[set.shard] = set.ns.node.Now()
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
		t.close(set.shard)
		return nil
	}
	if t.open[set.shard] == nil || many {
		if records > *room { // it is to be read beside polls, as one that is not open
			t.close(set.shard)
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
	for _, index := range slices.Sorted(maps.Keys(indices)) { // the log says the same in each run
		t.host.Set(set.shard, index, codeOf(set.shard, indices[index]))
	}
	return nil
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
		if t.open[set.shard] != nil || !set.settled() || t.rests(set.shard, ns.node.Now()) {
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
		for index, held := range indices {
			told.Set(index, codeOf(set.shard, held))
		}
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
	t.host.Tell(set.shard, told)
	t.open[set.shard] = set
}

// read reads what the set says of all indices. What is committed after that, and maybe a little before, is noted.
func (set *Set) read(ctx context.Context) (*directory.Told, error) {
	snap, err := set.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	told := &directory.Told{}
	for pair, err := range snap.Pairs(ctx, 0, 0) {
		if err != nil {
			return nil, err
		}
		told.Append(pair.Index, directory.Code(set.shard))
	}
	return told, nil
}

// codeOf is what a shard says of an index under which it holds something, or nothing.
func codeOf(shard placement.Shard, held bool) directory.Code {
	if held {
		return directory.Code(shard)
	}
	return directory.Gone
}
