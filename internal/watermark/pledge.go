package watermark

import (
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

// Pledge is what a member says of what it holds: the value of its record of the
// kind "w" in the control namespace.
type Pledge struct {
	// List is the digest of the list of members under which all of this holds.
	List roster.Digest `cbor:"1,keyasint"`
	// Vector has a reading of the clock of each active member, by id. The node that
	// pledges holds, dominates or has collected what the member held when its clock
	// said so. Its own entry is when it pledges.
	Vector []dbadapter.Timestamp `cbor:"2,keyasint"`
	// Promised: it holds, dominates or has collected all that any member has
	// written, or will write, with a version up to this.
	Promised dbadapter.Timestamp `cbor:"3,keyasint"`
	// Wanted asks the others to promise as much.
	Wanted dbadapter.Timestamp `cbor:"4,keyasint"`
	// Serial counts its pledges.
	Serial uint64 `cbor:"5,keyasint"`
	// Recovering: it may lack what it held once, and promises nothing for that.
	Recovering bool `cbor:"6,keyasint"`
}

// Encode is the pledge as a record's value.
func (p *Pledge) Encode() ([]byte, error) { return cbor.Marshal(p) }

var errPledge = errors.New("malformed pledge")

// ParsePledge reads the value of a record.
func ParsePledge(value []byte) (*Pledge, error) {
	p := new(Pledge)
	if err := roster.Unmarshal(value, p); err != nil {
		return nil, fmt.Errorf("%w: %v", errPledge, err)
	}
	if p.List == (roster.Digest{}) || len(p.Vector) == 0 || len(p.Vector) > roster.MaxMembers {
		return nil, fmt.Errorf("%w: of list %x, with a vector of %d", errPledge, p.List, len(p.Vector))
	}
	return p, nil
}

// TakeOver makes a promise this node's, as one that joins does with its inviter's. This
// node then imports nothing with a date up to there.
func (w *Watermark) TakeOver(promise dbadapter.Timestamp) (changed bool) {
	changed = promise > w.state.Pledged
	w.state.Pledged = max(w.state.Pledged, promise)
	return changed
}

// TakeOverAll makes the promises of all members this node's.
func (w *Watermark) TakeOverAll() (changed bool) {
	for _, s := range w.said {
		changed = s.Promised <= s.at.Clock && w.TakeOver(s.Promised) || changed
	}
	return changed
}

// wants is up to when this node asks the members to promise. It asks for what it
// holds and could collect, and for a floor that it was told of. Once it has asked,
// it asks for no more until it has promised as much itself. A silent member then
// costs the others no more pledges.
func (w *Watermark) wants(tau, collectable dbadapter.Timestamp) dbadapter.Timestamp {
	want := max(collectable, w.refused)
	if mine := w.under(w.self); mine != nil {
		open := mine.Promised < mine.Wanted && !w.state.Recovering
		if open && w.least(tau) < mine.Wanted {
			return mine.Wanted
		}
		if open {
			want = 0
		}
		want = max(want, mine.Wanted)
	}
	for _, h := range w.state.Holds {
		if h.Clock <= want {
			want = max(want, h.At)
		}
	}
	return want
}

// unproven reports whether this node has collected more than it has said that it holds: the others
// cannot prove its floor.
func (w *Watermark) unproven() bool { return w.promised(w.self) < w.raised }

// PledgeUrgent reports whether the next pledge does not wait. One under an earlier
// list counts for nothing, so the first under this one does not. Nor does one
// by which the others can prove what this node has collected.
func (w *Watermark) PledgeUrgent() bool { return w.under(w.self) == nil || w.unproven() }

// PledgeDue reports whether a pledge of now would tell the members something that one
// of them waits for. Up to collectable, records wait here that could go.
func (w *Watermark) PledgeDue(tau, collectable dbadapter.Timestamp) bool {
	if !w.Counts() && w.refused == 0 { // a member that has lapsed asks for what it needs to recover
		return false
	}
	mine := &Pledge{Vector: make([]dbadapter.Timestamp, len(w.active))}
	if s := w.under(w.self); s != nil {
		mine = &s.Pledge
	}
	want := w.wants(tau, collectable)
	if want > mine.Wanted {
		return true
	}
	promise := w.Promise(tau)
	news := func(goal dbadapter.Timestamp) bool {
		if mine.Promised >= goal {
			return false
		}
		if promise >= goal {
			return true
		}
		for i, id := range w.active {
			if id != w.self && w.known[id] >= goal && mine.Vector[i] < goal {
				return true
			}
		}
		return false
	}
	if news(want) || w.unproven() && promise >= w.raised {
		return true
	}
	for id := range w.said {
		s := w.under(id)
		if s == nil {
			continue
		}
		again := w.resumed && id != w.self && s.Promised < s.Wanted
		if again || news(s.Wanted) {
			return true
		}
	}
	return false
}

// Pledge makes the node's next pledge, of a reading of its clock that the version
// of its record exceeds. It changes the state, which must be durable before the
// pledge is written. The list must still be the same then.
func (w *Watermark) Pledge(tau, collectable dbadapter.Timestamp) *Pledge {
	w.release()
	s := &Pledge{List: w.list, Vector: make([]dbadapter.Timestamp, len(w.active)), Wanted: min(tau, w.wants(tau, collectable))}
	for i, id := range w.active {
		s.Vector[i] = min(tau, w.known[id])
		if id == w.self {
			s.Vector[i] = tau
		}
	}
	s.Promised = w.Promise(tau)
	w.state.Serial++
	w.state.Pledged = max(w.state.Pledged, s.Promised)
	s.Serial, s.Recovering = w.state.Serial, w.state.Recovering
	w.resumed = false
	return s
}
