package gc

import (
	"context"
	"errors"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/peer/status"
)

const (
	// sweepBatch is how many records a sweep takes out in one transaction, and
	// sweepBytes how many bytes of keys and values they have.
	sweepBatch = 1024
	sweepBytes = 1 << 20
)

// Judge judges the records of a sweep by a list of members.
type Judge interface {
	// Former reports whether the record's writer had not the right to write it. Other
	// nodes decline it.
	Former(r *dbadapter.Record) bool
	// Own reports whether this node made the record.
	Own(r *dbadapter.Record) bool
	// Adopts reports whether this node is to write such a record again in its own name. Else
	// it is set aside.
	Adopts(r *dbadapter.Record) bool
	// Adopt does so. The error is ErrLater if it is too early for that, and ErrElsewhere
	// if the record is not held any more.
	Adopt(ctx context.Context, r *dbadapter.Record) error
}

// Why a sweep does not adopt a record.
var (
	ErrLater     = errors.New("this node may not write the record in its own name yet")
	ErrElsewhere = errors.New("the record is not held any more")
)

// Tend does what has become due by itself.
func (g *Collector) Tend(ctx context.Context) (swept status.Swept, err error) {
	failed := g.pledge(ctx)
	tau, err := g.Tau(ctx)
	if err != nil || tau == 0 {
		return swept, errors.Join(failed, err)
	}
	var mark dbadapter.Timestamp
	g.View(func(w *watermark.Watermark) { mark = w.At(tau) })
	if !g.waiting.SweepDue(mark, g.c.Now(), false) {
		return swept, failed
	}
	if swept, err = g.Sweep(ctx); errors.Is(err, ErrAnew) {
		err = nil
	}
	return swept, errors.Join(failed, err, g.pledge(ctx))
}

// Collect takes out what all members are past, without waiting for Tend,
// and tells the members what this node holds.
func (g *Collector) Collect(ctx context.Context) (status.Swept, error) {
	if err := g.Pledge(ctx); err != nil {
		return status.Swept{}, err
	}
	return g.Sweep(ctx)
}

// Behind reports whether a peer's floor shows that it has collected what this node
// holds, and all members are past. Sweeps for others, too, take a part of the time only.
func (g *Collector) Behind(floor dbadapter.Timestamp) bool {
	if !g.waiting.SweepDue(floor, g.c.Now(), true) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return floor != watermark.NoFloor && floor > g.mark.State().Floor && floor <= g.mark.At(dbadapter.Timestamp(g.c.Clock.Latest()))
}

// CatchUp collects what a peer with that floor has collected, unless that is done, or being done.
func (g *Collector) CatchUp(ctx context.Context, floor dbadapter.Timestamp) error {
	if !g.sweeping.TryLock() {
		return nil
	}
	defer g.sweeping.Unlock()
	if !g.waiting.SweepDue(floor, g.c.Now(), true) {
		return nil
	}
	if _, err := g.sweep(ctx); !errors.Is(err, ErrAnew) {
		return err
	}
	return nil
}

// Sweep reads the records once, and takes out what all members are past. It
// also deals with the records of writers that have lost the right to write. A node
// that may write writes those of others again in its own name. It sets aside its
// own. That includes those that it wrote before it lost the right, if no sync has
// proved that another member holds them. A node that may not write sets aside all.
// What is done twice changes nothing, so that a sweep that is cut off needs no
// repair.
func (g *Collector) Sweep(ctx context.Context) (status.Swept, error) {
	g.sweeping.Lock()
	defer g.sweeping.Unlock()
	return g.sweep(ctx)
}

// sweep is Sweep; sweeping is held.
func (g *Collector) sweep(ctx context.Context) (done status.Swept, err error) {
	// The order matters: a change of the list from now on asks for another sweep.
	// Then tau waits for the commits that have read the list before this one.
	g.waiting.Begin(g.c.Now())
	s := &sweep{g: g, judge: g.c.Judge()}
	var left watermark.Found
	whole := false
	defer func() {
		g.waiting.End(left, whole, g.c.Now())
		if s.later {
			g.waiting.Again()
		}
	}()
	tau, err := g.Tau(ctx)
	if err != nil {
		return done, err
	}
	// While a member is being granted its role, the list does not stay as it is: a mark later than the
	// grant's version would refuse what the new member writes.
	held := g.c.Group.Hold()
	g.View(func(w *watermark.Watermark) {
		s.mark, s.basis = w.At(tau), w.Basis()
		s.proved, s.lost = w.State().Proved, w.State().RightLost
	})
	held.Release()
	if s.lost != 0 { // that comes first, and a change of the list must not end it
		s.mark = 0
	}
	snap, err := g.c.Store.Snapshot()
	if err != nil {
		return done, err
	}
	defer snap.Close()
	for r, err := range snap.Scan(ctx, nil, nil) {
		if err != nil {
			return s.done, err
		}
		switch at, ok := r.Due(); {
		case s.judge.Former(&r.Record) || s.renounces(&r.Record):
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
	if s.lost != 0 {
		err = g.Update(func(w *watermark.Watermark) bool { return w.Renounced(s.lost) })
	}
	return s.done, err
}

// sweep is a sweep on its way.
type sweep struct {
	g     *Collector
	judge Judge
	mark  dbadapter.Timestamp
	basis watermark.Basis
	// proved, and lost (RightLost), are those of the watermark.
	proved, lost dbadapter.Timestamp
	removes      []dbadapter.Write
	bytes        int
	// recovers: this sweep has made the node one that recovers.
	recovers bool
	// later: what this node is to adopt it may write only when time has passed.
	later bool
	done  status.Swept
}

// renounces reports whether the record is this node's own and may be held here
// alone. It was written before this node learned that it had lost the right to write.
func (s *sweep) renounces(r *dbadapter.Record) bool {
	return s.proved < r.Version.Clock && r.Version.Clock <= s.lost && s.judge.Own(r)
}

// take makes a record of another writer without the right this node's own, or sets it
// aside.
func (s *sweep) take(ctx context.Context, held *dbadapter.Hashed) error {
	if !s.judge.Adopts(&held.Record) {
		if err := s.lacks(ctx); err != nil {
			return err
		}
		s.removes = append(s.removes, dbadapter.Write{Record: *held, Action: dbadapter.SetAside})
		return s.room(ctx, held)
	}
	switch err := s.judge.Adopt(ctx, &held.Record); {
	case errors.Is(err, ErrLater):
		s.later = true
	case err == nil:
		s.done.Adopted++
		s.g.leaves(status.Swept{Adopted: 1})
	case !errors.Is(err, ErrElsewhere): // another write may have come in between
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
	err := s.g.Update(func(w *watermark.Watermark) (changed bool) {
		if changed = !w.Recovering(); changed {
			w.Recover(false)
		}
		s.basis = w.Basis()
		return changed
	})
	s.recovers, s.mark = err == nil, 0
	return err
}

func (s *sweep) collect(ctx context.Context, held *dbadapter.Hashed) error {
	s.removes = append(s.removes, dbadapter.Write{Record: *held, Action: dbadapter.Collect})
	return s.room(ctx, held)
}

// room commits what has gathered, once that is a batch.
func (s *sweep) room(ctx context.Context, held *dbadapter.Hashed) error {
	s.bytes += len(held.Key) + len(held.Value)
	if len(s.removes) < sweepBatch && s.bytes < sweepBytes {
		return nil
	}
	return s.flush(ctx)
}

func (s *sweep) flush(ctx context.Context) error {
	removes := s.removes
	s.removes, s.bytes = nil, 0
	done, err := s.g.Remove(ctx, removes, s.mark, s.basis)
	s.done = s.done.Plus(done)
	return err
}

// Remove takes records out of the set. Those that are collected up to mark raise
// the floor first, durably; basis is that of the mark. No record comes in meanwhile.
func (g *Collector) Remove(ctx context.Context, writes []dbadapter.Write, mark dbadapter.Timestamp, basis watermark.Basis) (done status.Swept, err error) {
	if len(writes) == 0 {
		return done, nil
	}
	floor := dbadapter.Timestamp(0)
	for i := range writes {
		if at, ok := writes[i].Record.Due(); ok && at <= mark && writes[i].Action == dbadapter.Collect {
			floor = max(floor, at)
		}
	}
	g.c.Commits.Lock()
	defer g.c.Commits.Unlock()
	if floor > 0 {
		if err := g.raiseFloor(floor, basis); err != nil {
			return done, err
		}
	}
	outcomes, err := g.c.Apply(ctx, writes)
	for i, o := range outcomes {
		count(&done, writes[i].Action, o)
	}
	g.leaves(done)
	return done, err
}

// count adds what became of a record that was to be taken out.
func count(s *status.Swept, a dbadapter.Action, o dbadapter.Outcome) {
	switch {
	case o.Result != dbadapter.Applied:
	case a == dbadapter.Collect:
		s.Collected++
	default:
		s.SetAside++
	}
}

// Left is what has left the set since the last call, by sweeps and at the end of syncs.
func (g *Collector) Left() (left status.Swept) {
	g.mu.Lock()
	defer g.mu.Unlock()
	left, g.left = g.left, left
	return left
}

func (g *Collector) leaves(done status.Swept) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = g.left.Plus(done)
}

// Past is up to when a sweep of now would collect. A record that takes the place of
// what waits for a sweep is no conflict. Its writer may have collected that before,
// and then could not name it. Where a commit adds to what waits meanwhile, the
// answer is that of before, which takes more for conflicts. Commits is not held.
func (g *Collector) Past() (mark dbadapter.Timestamp) {
	if f, swept := g.waiting.Now(); swept && (f.Count == 0 || f.Least > dbadapter.Timestamp(g.c.Clock.Latest())) {
		return 0
	}
	g.c.Commits.Lock() // so that what the clock has said is committed
	tau := dbadapter.Timestamp(g.c.Clock.Latest())
	g.c.Commits.Unlock()
	g.View(func(w *watermark.Watermark) { mark = w.At(tau) })
	return mark
}

// raiseFloor makes a floor durable, unless what it rests on is no longer so. A node
// that recovers raises no floor.
func (g *Collector) raiseFloor(floor dbadapter.Timestamp, basis watermark.Basis) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.mark.Still(basis) {
		return ErrAnew
	}
	return g.update(func(w *watermark.Watermark) bool { return w.RaiseFloor(floor) })
}
