package reconcile

import (
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// party is what initiator and responder have in common.
type party struct {
	link    *link
	opts    *Options
	replica Replica
	own     buckets
	// here and there are what this side and its peer hold.
	here, there dbadapter.Sum
	// key keys the hashes of ranges and marks, which are this session's alone.
	key rangeKey
	// theirs stands for what the initiator holds under an index told, of which this
	// side holds the records given.
	theirs func(dbadapter.Index, []dbadapter.Hashed) uint64
	// plan is what is to be done about each difference.
	plan *plan
	// residual is this side's own.
	residual dbadapter.Digest
	// gives and gets say which way records may travel, seen from here; pulls
	// that they travel to the initiator only.
	gives, gets, pulls bool
	// unseen counts the records that a one-way sync by the method all leaves
	// uncompared.
	unseen uint64
	give   sender
	take   receiver
}

func newParty(l *link) party {
	return party{link: l, opts: l.opts, plan: newPlan()}
}

// read gives the side its replica.
func (s *party) read(r Replica) {
	s.replica, s.here = r, r.Sum()
	s.own = buckets{stored: r}
	s.give = s.sends()
	s.take = newReceiver(s.link, &s.own, s.plan)
}

// sends is a sender that has sent nothing.
func (s *party) sends() sender {
	return sender{link: s.link, own: &s.own, declined: s.opts.Declined, under: map[dbadapter.Index]bool{}}
}

// aim sets the direction.
func (s *party) aim(gives, gets bool) {
	s.gives, s.gets, s.take.gets = gives, gets, gets
}

// await lets the node decide whether records may come to this side now.
func (s *party) await(records int, all bool) error {
	if s.opts.Await == nil || !s.gets || records == 0 && !all {
		return nil
	}
	return s.opts.Await(records, all)
}

// expect lets the node decide whether cells may travel for so many differences. Of those,
// what this side has more of than its peer does not come to it.
func (s *party) expect(differences int64) error {
	if s.opts.Expect == nil || !s.gets {
		return nil
	}
	return s.opts.Expect(reported(uint64(max(0, differences-max(0, s.more())))))
}

// more is by how many records this side has more than its peer.
func (s *party) more() int64 {
	return int64(min(s.here.Records, 1<<61)) - int64(min(s.there.Records, 1<<61))
}

// end closes this side's list of records, and tells what became of those
// received.
func (s *party) end() error {
	if err := s.give.flush(); err != nil {
		return err
	}
	m := s.take.settled()
	if !s.gives {
		m.Held = s.take.owes() // the direction keeps them here
	}
	return s.link.send(m)
}

// ended waits for what became of the records received, and reads what became, at
// the peer, of the records sent.
func (s *party) ended(m *wire.End) error {
	if err := s.take.settle(); err != nil {
		return err
	}
	s.take.heldThere = min(s.take.heldThere, 1<<62) + m.Held // both below 2^63
	return s.give.settled(m)
}

// The ranges that a sync has found to disagree, and leaves.

// whole is the session's error where ranges are left for the next sync.
func (s *party) whole(err error) error {
	if left := s.link.report.Repair.Left; err == nil && left > 0 {
		s.link.deaf = true // the peer knows it
		return fmt.Errorf("%w: what differs in %d ranges waits for the next sync; the others are equal", ErrNotVerified, left)
	}
	return err
}

// listable says what to do where ranges that disagree are left for every next sync, too.
func (a *initiator) listable(err error) error {
	if a.overfull > 0 && errors.Is(err, ErrNotVerified) {
		return fmt.Errorf("%w; %d of the ranges hold more than %d records each, and no sync compares them exactly: sync once by the method all", err, a.overfull, maxMarks)
	}
	return err
}
