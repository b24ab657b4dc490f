package node

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

// When the records of a shard are looked through for those that the directory places elsewhere,
// how far that has come, and of which of them the entry must go on to lead nowhere.

const (
	// meetingsEvery is how often all records are looked through; a shard out of which a host of
	// the directory says that a key has gone is looked through at once.
	meetingsEvery = 10 * time.Minute
	// MeetingsSoon lies between two looks at a shard at the least, and meetingsShare times what
	// the last one took: they take a ninth of the time of one goroutine.
	MeetingsSoon  = 10 * time.Second
	meetingsShare = 8
	// meetingsAgain is when a shard is looked through again where something was left open: the
	// locator could not tell of some keys, as it had not heard all hosts, or another host is to
	// decide. It is twice as long behind each look that was due to that, up to meetingsEvery. And it
	// is when a shard is looked through first.
	meetingsAgain = time.Minute
	// AbsentFor is for how long the record of an entry must not be there until its author counts
	// as ended: its record follows within EntryPatience, and is on its way for routedPatience.
	AbsentFor = 2 * time.Minute
	// meetingsAtOnce keys are remembered of a shard in one look, and as many that wait for
	// AbsentFor: 64 KiB at most each. The next look goes on behind them.
	meetingsAtOnce = 1024
	// meetingsFailed keys of which hosts do not answer end a look: each takes routedPatience.
	meetingsFailed = 4
)

// meetings are the first writes that may have met.
type meetings struct {
	most int // meetingsAtOnce, but for tests

	mu    sync.Mutex    // guards what follows
	every time.Duration // when all shards are due
	of    map[placement.Shard]*looking
}

// looking is how far the records of a shard are looked through.
type looking struct {
	wanted bool          // from the beginning, once no look is under way
	under  bool          // a look is under way, and goes on behind after
	after  []byte        // nil: at the beginning
	rest   time.Duration // no look goes on before
	open   bool          // this look has left something open
	again  time.Duration // when it is wanted again for that; 0: it is not
	verify bool          // this look has what the locator places here verified
	// verified is up to which key it has: a look that has no room for a key goes on before it.
	verified []byte
	next     time.Duration // one that begins from then on does that: it reads what the locator has on disk
	pause    time.Duration // from the end of a look until then
	absent   map[string]absence
	// lost are the versions of records that have lost against other first writes, and cannot recede yet.
	lost map[string]dbadapter.Version
}

// absence is since when the entry of a key was known to lead to no record.
type absence struct {
	entry dbadapter.Version // zero: there is no entry
	since time.Duration
}

// verdict is what has become of a record that the directory places elsewhere.
type verdict uint8

const (
	decided   verdict = iota // nothing is left to do here
	deferred                 // to another host, unless that goes away
	undecided                // not all that it takes is known; it is looked at again
	awaited                  // it is noted in absent, and looked at again after AbsentFor
	noRoom                   // as awaited, but that it is not noted: as many are already
)

// shard is the state of a shard. mu is held.
func (m *meetings) shard(s placement.Shard) *looking {
	if m.of == nil {
		m.of = map[placement.Shard]*looking{}
	}
	if m.of[s] == nil {
		m.of[s] = &looking{}
	}
	return m.of[s]
}

// met notes that a first write may have lost in a shard. However often that is said until the
// look begins, there is one.
func (m *meetings) met(s placement.Shard) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shard(s).wanted = true
}

// leaveOpen notes that the locator cannot tell of a key of a shard: that is looked through a minute later,
// unless it is to be anyway.
func (m *meetings) leaveOpen(s placement.Shard, now time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.shard(s)
	if l.open = true; !l.under && l.again == 0 {
		l.leaveOpen(now)
	}
}

// due are those of the shards of which this node holds records that are to be looked at now;
// what was noted of others is forgotten.
func (m *meetings) due(held []placement.Shard, now time.Duration) (due []placement.Shard) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := now >= m.every
	if all {
		m.every = now + meetingsEvery
	}
	maps.DeleteFunc(m.of, func(s placement.Shard, _ *looking) bool { return !slices.Contains(held, s) })
	for _, s := range held {
		fresh := m.of[s] == nil
		l := m.shard(s)
		if fresh { // what was said while this node was away, or held no record of it, it has not heard
			l.again = now + meetingsAgain
		}
		if l.again > 0 && now >= l.again {
			l.wanted, l.again, l.pause = true, 0, min(2*l.pause, meetingsEvery)
		}
		l.wanted = l.wanted || all
		if now >= l.rest && (l.wanted || l.under || len(l.over(now)) > 0) {
			due = append(due, s)
		}
	}
	return due
}

// over are the keys whose absence has lasted. mu is held.
func (l *looking) over(now time.Duration) (keys []string) {
	for key, a := range l.absent {
		if now-a.since >= AbsentFor {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// absentSince is since when the entry of a key, of this version, is known to lead nowhere, which it
// notes. noted is false where there is no room for that.
func (m *meetings) absentSince(s placement.Shard, key []byte, entry dbadapter.Version, now time.Duration) (since time.Duration, noted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.shard(s)
	a, ok := l.absent[string(key)]
	if ok && a.entry == entry {
		return a.since, true
	}
	if !ok && len(l.absent) >= m.room() {
		return now, false
	}
	if l.absent == nil {
		l.absent = map[string]absence{}
	}
	l.absent[string(key)] = absence{entry, now}
	return now, true
}

func (m *meetings) room() int {
	if m.most > 0 {
		return m.most
	}
	return meetingsAtOnce
}

// lookThrough is what a look at a shard needs.
type lookThrough struct {
	keys func(after []byte) iter.Seq2[[]byte, error] // of its records, ascending
	// elsewhere is asked of each; with verify, those that seem to be here are to be verified, behind
	// the look.
	elsewhere func(key []byte, verify bool) (elsewhere, known bool)
	decide    func(key []byte) (verdict, error)
	failed    func(error) // a decision
	now       func() time.Duration
}

// look looks at a shard: again at the keys whose absence has lasted, and then at what the
// directory places elsewhere, from where the last look has ended. A key that is not decided
// has all of them looked at once more, behind those that follow it.
func (m *meetings) look(ctx context.Context, s placement.Shard, t *lookThrough) error {
	begun := t.now()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		now := t.now()
		m.shard(s).rest = now + max(MeetingsSoon, meetingsShare*(now-begun))
	}()
	m.mu.Lock()
	l := m.shard(s)
	lasted := l.over(begun)
	m.mu.Unlock()
	failures := 0
	decide := func(key []byte) (verdict, error) {
		if ctx.Err() != nil {
			return undecided, context.Cause(ctx)
		}
		v, err := t.decide(key)
		m.mu.Lock()
		defer m.mu.Unlock()
		if v != awaited {
			delete(l.absent, string(key)) // or else it is of another entry since now
		}
		if err != nil {
			v = undecided
			failures++
			t.failed(err)
		}
		l.wanted = l.wanted || v == undecided
		if v != undecided {
			delete(l.lost, string(key))
		}
		l.open = l.open || v == deferred
		return v, nil
	}
	for _, key := range lasted {
		if v, err := decide([]byte(key)); err != nil {
			return err
		} else if v == undecided && failures >= meetingsFailed {
			return nil
		}
	}
	m.mu.Lock()
	if !l.under && l.wanted {
		l.wanted, l.under, l.after, l.open = false, true, nil, false
		if l.verify, l.verified = begun >= l.next, nil; l.verify {
			l.next = begun + meetingsEvery
		}
	}
	under, after, verified, last := l.under, l.after, l.verified, []byte(nil)
	verify := l.verify
	if !under && l.open && l.again == 0 { // a key whose wait is over is left to another host
		l.leaveOpen(begun)
	}
	m.mu.Unlock()
	if !under {
		return nil
	}
	lost, open, whole, err := m.lost(t, after, func(key []byte) bool {
		last = append(last[:0], key...)
		return verify && bytes.Compare(key, verified) > 0
	})
	if err != nil {
		return err
	}
	m.mu.Lock()
	l.open = l.open || open
	if bytes.Compare(last, verified) > 0 {
		l.verified = last
	}
	m.mu.Unlock()
	for i, key := range lost {
		v, err := decide(key)
		if err != nil {
			return err
		}
		if v == noRoom {
			return nil // it is the first of the next look
		}
		m.mu.Lock()
		l.after = key
		m.mu.Unlock()
		if failures >= meetingsFailed && i < len(lost)-1 {
			return nil
		}
	}
	if whole {
		m.mu.Lock()
		defer m.mu.Unlock()
		l.under, l.after = false, nil
		if !l.wanted && !l.open {
			l.lost = nil
		}
		l.leaveOpen(t.now())
	}
	return nil
}

// leaveOpen notes when a shard is to be looked through again of which a look has come to its end.
// mu is held.
func (l *looking) leaveOpen(now time.Duration) {
	if !l.open {
		l.again, l.pause = 0, 0
		return
	}
	l.pause = max(meetingsAgain, l.pause)
	l.again = now + l.pause
}

// lost are the next keys that the directory places elsewhere; open: of a key among those that
// were passed the locator could not tell; whole: there are no more. The others are to be verified if verify
// says so.
func (m *meetings) lost(t *lookThrough, after []byte, verify func(key []byte) bool) (lost [][]byte, open, whole bool, err error) {
	for key, err := range t.keys(after) {
		if err != nil {
			return nil, open, false, err
		}
		elsewhere, known := t.elsewhere(key, verify(key))
		open = open || !known
		if !elsewhere {
			continue
		}
		if lost = append(lost, bytes.Clone(key)); len(lost) >= m.room() {
			return lost, open, false, nil
		}
	}
	return lost, open, true, nil
}

// hasLost notes that a version of a key's record has lost against another first write, if there is room:
// that may be deleted, and its tombstones collected, before the record can recede.
func (m *meetings) hasLost(s placement.Shard, key []byte, v dbadapter.Version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.shard(s)
	if _, noted := l.lost[string(key)]; !noted && len(l.lost) >= m.room() {
		return
	}
	if l.lost == nil {
		l.lost = map[string]dbadapter.Version{}
	}
	l.lost[string(key)] = v
}

// lostAs is the version of a key's record that has, or zero.
func (m *meetings) lostAs(s placement.Shard, key []byte) dbadapter.Version {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shard(s).lost[string(key)]
}
