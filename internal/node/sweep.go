package node

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/watermark"
)

// Swept is what a sweep did.
type Swept struct {
	Collected int64 // tombstones, and expired records, that are gone
	Adopted   int64 // records of a writer without the right, written again here
	SetAside  int64 // such records that this node may not write
}

// sweepLocked reads the records once, and takes out what all members are past. It
// also deals with the records of writers that have lost the right to write. A node
// that may write writes those of others again in its own name. It sets aside its
// own. That includes those that it wrote before it lost the right, if no sync has
// proved that another member holds them. A node that may not write sets aside all.
// What is done twice changes nothing, so that a sweep that is cut off needs no
// repair. sweeping is held.
func (set *Set) sweepLocked(ctx context.Context) (done Swept, err error) {
	// The order matters: a change of the list from now on asks for another sweep.
	// Then tau waits for the commits that have read the list before this one.
	set.gc.waiting.Begin(set.ns.node.Now())
	s := &sweep{set: set, members: set.ns.Members()}
	var left watermark.Found
	whole := false
	defer func() {
		set.gc.waiting.End(left, whole, set.ns.node.Now())
		if s.later {
			set.gc.waiting.Again()
		}
	}()
	tau, err := set.tau(ctx)
	if err != nil {
		return done, err
	}
	set.gc.Lock()
	s.mark, s.basis = set.gc.mark.At(tau), set.gc.mark.Basis()
	state := set.gc.mark.State()
	s.proved, s.lost = state.Proved, state.RightLost
	if s.lost != 0 { // that comes first, and a change of the list must not end it
		s.mark = 0
	}
	set.gc.Unlock()
	snap, err := set.Store.Snapshot()
	if err != nil {
		return done, err
	}
	defer snap.Close()
	for r, err := range snap.Scan(ctx, nil, nil) {
		if err != nil {
			return s.done, err
		}
		switch at, ok := r.Due(); {
		case s.members.former(&r.Record) || s.renounces(&r.Record):
			err = s.take(ctx, &r)
		case ok && at <= s.mark:
			err = s.collect(ctx, &r)
		case ok:
			left.Add(at)
		}
		if err != nil {
			return s.done, err
		}
	}
	if err := s.flush(ctx); err != nil {
		return s.done, err
	}
	whole = true
	return s.done, s.renounced()
}

// sweep is a sweep on its way.
type sweep struct {
	set     *Set
	members *Members
	mark    dbadapter.Timestamp
	basis   watermark.Basis
	// proved, and lost (RightLost), are those of the watermark.
	proved, lost dbadapter.Timestamp
	removes      []dbadapter.Write
	bytes        int
	// recovers: this sweep has made the node one that recovers.
	recovers bool
	// later: what this node is to adopt it may write only when time has passed.
	later bool
	done  Swept
}

// former reports whether the record's writer had not the right to write it, by the
// list of members as it is now. Other nodes decline it.
func (m *Members) former(r *dbadapter.Record) bool {
	by := r.Version.Writer
	if by == 0 {
		by = r.Signer
	}
	return !m.Policy().Unsigned && !m.MayWrite(by, r.Version.Clock)
}

// take makes a record of another writer without the right this node's own, or sets it
// aside.
func (s *sweep) take(ctx context.Context, held *dbadapter.Hashed) error {
	set := s.set
	if !s.members.Has(set.ns.node.ID, RoleWrite) || set.ns.rule == nil && set.ns.own(&held.Record) {
		if err := s.lacks(ctx); err != nil {
			return err
		}
		s.removes = append(s.removes, dbadapter.Write{Record: *held, Action: dbadapter.SetAside})
		return s.room(ctx, held)
	}
	switch err := set.adopt(ctx, &held.Record); {
	case errors.Is(err, errLater):
		s.later = true
	case err == nil:
		s.done.Adopted++
		set.left.adopted.Add(1)
	case !errors.Is(err, errElsewhere): // another write may have come in between
		return err
	}
	return nil
}

// lacks comes before the first record that is set aside. It may have taken the
// place of an older record, which the members still hold. The floor would keep that
// out now that its key is free, so the node recovers, and takes it back.
func (s *sweep) lacks(ctx context.Context) error {
	if s.recovers {
		return nil
	}
	if err := s.flush(ctx); err != nil { // what rests on the watermark as it was
		return err
	}
	set := s.set
	set.gc.Lock()
	defer set.gc.Unlock()
	err := set.updateMarkLocked(func(w *watermark.Watermark) bool {
		if w.Recovering() {
			return false
		}
		w.Recover(false)
		return true
	})
	s.recovers, s.mark, s.basis = err == nil, 0, set.gc.mark.Basis()
	return err
}

func (s *sweep) collect(ctx context.Context, held *dbadapter.Hashed) error {
	s.removes = append(s.removes, dbadapter.Write{Record: *held, Action: dbadapter.Collect})
	return s.room(ctx, held)
}

// room commits what has gathered, once that is a batch.
func (s *sweep) room(ctx context.Context, held *dbadapter.Hashed) error {
	s.bytes += len(held.Key) + len(held.Value)
	if len(s.removes) < sweepBatch && s.bytes < importBytes {
		return nil
	}
	return s.flush(ctx)
}

func (s *sweep) flush(ctx context.Context) error {
	removes := s.removes
	s.removes, s.bytes = nil, 0
	outcomes, err := s.set.remove(ctx, removes, s.mark, s.basis)
	for i, o := range outcomes {
		s.done.count(removes[i].Action, o)
	}
	return err
}

// remove takes records out of the set. Those that are collected up to mark raise
// the floor first, durably; basis is that of the mark. No record comes in meanwhile.
func (set *Set) remove(ctx context.Context, writes []dbadapter.Write, mark dbadapter.Timestamp, basis watermark.Basis) ([]dbadapter.Outcome, error) {
	if len(writes) == 0 {
		return nil, nil
	}
	floor := dbadapter.Timestamp(0)
	for i := range writes {
		if at, ok := writes[i].Record.Due(); ok && at <= mark && writes[i].Action == dbadapter.Collect {
			floor = max(floor, at)
		}
	}
	set.commits.Lock()
	defer set.commits.Unlock()
	if floor > 0 {
		if err := set.raiseFloor(floor, basis); err != nil {
			return nil, err
		}
	}
	outcomes, err := set.apply(ctx, writes)
	var done Swept
	for i, o := range outcomes {
		done.count(writes[i].Action, o)
	}
	set.left.collected.Add(done.Collected)
	set.left.setAside.Add(done.SetAside)
	return outcomes, err
}

// count adds what became of a record that was to be taken out.
func (s *Swept) count(a dbadapter.Action, o dbadapter.Outcome) {
	switch {
	case o.Result != dbadapter.Applied:
	case a == dbadapter.Collect:
		s.Collected++
	default:
		s.SetAside++
	}
}

// Plus adds what another sweep did.
func (s Swept) Plus(of Swept) Swept {
	return Swept{s.Collected + of.Collected, s.Adopted + of.Adopted, s.SetAside + of.SetAside}
}

// left counts what has left a set since it was opened.
type left struct{ collected, adopted, setAside atomic.Int64 }

// Left is what has left the set since it was opened, by sweeps and at the end of
// syncs.
func (set *Set) Left() Swept {
	return Swept{set.left.collected.Load(), set.left.adopted.Load(), set.left.setAside.Load()}
}

// past is up to when a sweep of now would collect. A record that takes the place of
// what waits for a sweep is no conflict. Its writer may have collected that before,
// and then could not name it. Where a commit adds to what waits meanwhile, the
// answer is that of before, which takes more for conflicts. commits is not held.
func (set *Set) past() dbadapter.Timestamp {
	if f, swept := set.gc.waiting.Now(); swept && (f.Count == 0 || f.Least > dbadapter.Timestamp(set.ns.clock.Latest())) {
		return 0
	}
	set.commits.Lock() // so that what the clock has said is committed
	tau := dbadapter.Timestamp(set.ns.clock.Latest())
	set.commits.Unlock()
	set.gc.Lock()
	defer set.gc.Unlock()
	return set.gc.mark.At(tau)
}

// raiseFloor makes a floor durable, unless what it rests on is no longer so. A node
// that recovers raises no floor.
func (set *Set) raiseFloor(floor dbadapter.Timestamp, basis watermark.Basis) error {
	set.gc.Lock()
	defer set.gc.Unlock()
	if !set.gc.mark.Still(basis) {
		return errAnew
	}
	return set.updateMarkLocked(func(w *watermark.Watermark) bool { return w.RaiseFloor(floor) })
}

// Why a sweep does not adopt a record.
var (
	errLater     = errors.New("this node may not write the record in its own name yet")
	errElsewhere = errors.New("the record is not held any more")
)

// adopt writes a record again in this node's own name, unless it is not held any
// more, or it is too early for that. It is too early if the record is from the
// future. It is so, too, if this node's role begins later, given by an admin whose
// clock is ahead.
//
// It has the least version that takes the record's place. A write of now would win
// over all that members have written since the record, and have not heard of it. A
// host of the shard no longer adopts, too: the hosts would decline what it holds.
func (set *Set) adopt(ctx context.Context, of *dbadapter.Record) error {
	held, err := set.Held(of.Key)
	switch {
	case err != nil:
		return err
	case held == nil || held.Version != of.Version:
		return errElsewhere
	}
	r := held.Clone()
	r.Signature, r.Signer = nil, 0
	if r.Version, err = set.leastBehind(held); errors.Is(err, ErrDenied) {
		return errLater
	} else if err != nil {
		return err
	}
	r.Replace(held)
	switch placed, err := set.over(ctx, held, &r); {
	case errors.Is(err, dbadapter.ErrConflict):
		return errElsewhere
	case errors.Is(err, ErrDenied):
		return errLater
	case err != nil:
		return err
	case !placed:
		return errLater
	}
	return nil
}
