package route

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Ack is how many hosts of a shard must hold a record durably before a write is
// acknowledged: a number from 1 on, or Majority or All of the hosts that the layout names.
// The zero value is 1.
type Ack int

// The words for numbers that depend on the hosts.
const (
	Majority Ack = -1
	All      Ack = -2
)

// ErrAck is returned for an Ack that is none, or that there are too few hosts for.
var ErrAck = errors.New("no number of hosts")

// ParseAck reads an Ack: a number, majority or all; the empty text is 1.
func ParseAck(s string) (Ack, error) {
	switch s {
	case "":
		return 1, nil
	case "majority":
		return Majority, nil
	case "all":
		return All, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%w: %q: want a number from 1 on, majority or all", ErrAck, s)
	}
	return Ack(n), nil
}

// String is the text that ParseAck reads.
func (a Ack) String() string {
	switch a {
	case Majority:
		return "majority"
	case All:
		return "all"
	}
	return strconv.Itoa(max(1, int(a)))
}

// Of is how many that is of so many hosts.
func (a Ack) Of(hosts int) (int, error) {
	switch {
	case a == Majority && hosts > 0:
		return hosts/2 + 1, nil
	case a == All && hosts > 0:
		return hosts, nil
	case a < All || hosts < max(1, int(a)):
		return 0, fmt.Errorf("%w: %s of %d hosts", ErrAck, a, hosts)
	}
	return max(1, int(a)), nil
}

// How a host that could not be reached is tried again in a write.
const (
	putPause     = 100 * time.Millisecond
	putPauseMost = 3200 * time.Millisecond
)

// The errors of a write.
var (
	// ErrRefused: so many hosts have declined the record that too few are left.
	ErrRefused = errors.New("hosts of the key's shard have declined the record")
	// ErrUnconfirmed: the time was over before as many hosts as asked for were heard to
	// hold the record. What hosts hold stays written, and so may what was sent.
	ErrUnconfirmed = errors.New("not confirmed by as many hosts as asked for")
	// ErrUnwritten: no host was reached in time, and none has been sent the record.
	ErrUnwritten = errors.New("no host of the key's shard can be reached; nothing is written")
	// ErrUnsettled: a host holds a record that rests on a condition, and does not know yet what was held before it.
	ErrUnsettled = errors.New("it has the record, and has not taken over the key's shard yet")
	// ErrOvertaken: a host holds another version, which is greater, or which the record's
	// writer had not seen.
	ErrOvertaken = errors.New("a host holds another version")
)

// Outcome is what a host has done with a record.
type Outcome struct {
	// Held: it holds the record durably.
	Held bool
	// There, of a record that is to be held only if it says something new: its content is held
	// already, by this or another version.
	There bool
	// Settled is as in an Answer.
	Settled bool
	// Other, if not nil, is what it holds in its place: a version, and what that replaces.
	Other *dbadapter.Record
	// Later is that of a host by which a record is Held that names the record as seen, or a later one of its
	// node: as a rule some host has held the record, and another writer has written since.
	Later *dbadapter.Record
	// Declined is why it does not take the record.
	Declined error
	// Elsewhere: it is no host, by Layout, and has not taken the record.
	Elsewhere bool
	Layout    Layout
}

// Holder is what a host has come to in a write.
type Holder struct {
	Peer ID
	// Outcome is nil if it has not answered.
	Outcome *Outcome
	// Err is why it has not; nil while it may still.
	Err error
	// Sent: the record may have reached it.
	Sent bool
}

// Written is how a write stands.
type Written struct {
	// Need is how many hosts must hold the record, Held how many do.
	Need, Held int
	// Hosts are all, in the caller's order.
	Hosts []Holder
	// Settled: one of those that hold it is settled, so that what the record replaces was
	// known, as far as had come to that host.
	Settled bool
	// Others are what hosts hold instead.
	Others []*dbadapter.Record
	// Moved and MovedBy are as in Found.
	Moved   Layout
	MovedBy ID
	// Requests is how many requests there were.
	Requests int
}

// Taken reports whether a host holds the record, or may: it was sent, and has not answered; or it was there, and what followed
// it is held now.
func (w *Written) Taken() bool {
	return w.Held > 0 || slices.ContainsFunc(w.Hosts, func(h Holder) bool { return h.Outcome == nil && h.Sent || h.Outcome != nil && h.Outcome.Later != nil })
}

// Manner is how the hosts are asked in a write.
type Manner struct {
	// Patient: where a host holds another version, the
	// answers of the others are awaited all the same. So the caller knows whether a host
	// has taken the record, as it must of one that rests on a condition.
	Patient bool
	// InOrder: the first host is asked alone, until it has answered or failed, or is overdue; where it holds another version,
	// the others are not asked. Of two writes that meet, the hosts then take the one to which the first one comes first.
	InOrder bool
	// Itself: a host must hold the record itself, as of one that rests on a condition: the node that writes it names it in what it
	// writes beside it, also where no host has taken it. It is told On what the record rests. Some of the hosts must be settled, too, or are asked again until they are:
	// another record may have come first at hosts of before.
	Itself bool
	On     dbadapter.Version
	// Insists: a host takes the record also in the place of an earlier one that its writer had not seen.
	Insists bool
	// Hears: enough hosts hold the record only once each other one has answered, or is overdue: where one holds another version, so
	// the caller hears of it.
	Hears bool
}

// Put is one write of one record. It is for one goroutine at a time.
type Put struct {
	Manner   // is set before the first step
	need     int
	deadline time.Duration
	hosts    []*host
	requests int
}

type host struct {
	Holder
	open  bool
	again time.Duration // when it is asked (again)
	asked time.Duration // when it was asked last
	tries int
	ended bool // it has said what it does
}

// NewPut begins a write to the hosts of a shard. here is this node, which holds the
// record already, if it is one of them; settled is whether it is that.
func NewPut(hosts []ID, here ID, settled bool, a Ack, deadline, now time.Duration) (*Put, error) {
	need, err := a.Of(len(hosts))
	if err != nil {
		return nil, err
	}
	p := &Put{need: need, deadline: deadline}
	for _, id := range hosts {
		h := &host{Holder: Holder{Peer: id}, again: now}
		if id == here {
			h.Outcome, h.ended = &Outcome{Held: true, Settled: settled}, true
		}
		p.hosts = append(p.hosts, h)
	}
	return p, nil
}

// Next is what to do now. After Over, requests that are open go on: a host that takes the
// record later holds it.
func (p *Put) Next(now time.Duration) Step {
	if p.over(now) {
		return Step{Do: Over}
	}
	at, alone := p.deadline, p.alone()
	for i, h := range p.hosts {
		switch {
		case h.ended || h.open:
			if p.Hears && h.open && now < p.overdue(h) {
				at = min(at, p.overdue(h))
			}
		case i > 0 && now < alone:
			at = min(at, alone)
		case h.again <= now:
			h.open, h.Err, h.asked = true, nil, now
			h.tries++
			p.requests++
			return Step{Do: Ask, Peer: h.Peer}
		default:
			at = min(at, h.again)
		}
	}
	return Step{Do: Wait, Until: at}
}

// alone is until when the first host is asked alone.
func (p *Put) alone() time.Duration {
	switch first := p.hosts[0]; {
	case !p.InOrder || first.ended || first.tries > 0 && !first.open:
		return 0
	case first.tries == 0:
		return p.deadline
	default:
		return p.overdue(first)
	}
}

// overdue is until when a host is awaited before others, or before what follows the write: half of the time that there was at most.
func (p *Put) overdue(h *host) time.Duration { return h.asked + min(Overdue, (p.deadline-h.asked)/2) }

// lost reports whether the first host, which was asked alone, holds another version, or has not taken the record, and the others
// are too few.
func (p *Put) lost() bool {
	first := p.hosts[0]
	return p.InOrder && first.ended && (first.Outcome.Other != nil || !first.Outcome.Held && p.need >= len(p.hosts)) && !slices.ContainsFunc(p.hosts[1:], func(h *host) bool { return h.tries > 0 || h.ended })
}

// over reports whether the write has its result. All hosts are asked before, also where
// fewer are needed.
func (p *Put) over(now time.Duration) bool {
	if p.lost() {
		return true
	}
	held, settled, left, open, other, awaited := 0, 0, 0, false, false, false
	for _, h := range p.hosts {
		open = open || h.open
		awaited = awaited || p.Hears && h.open && now < p.overdue(h)
		switch {
		case h.tries == 0 && !h.ended && now < p.deadline:
			return false
		case !h.ended && h.Outcome == nil:
			left++
		case h.Outcome.Held:
			held++
			if h.Outcome.Settled {
				settled++
			}
		case h.Outcome.Other != nil:
			other = true
		}
	}
	return now >= p.deadline || other && !(open && p.Patient) || held >= p.need && settled >= p.settled() && !awaited || held+left < p.need && !(open && p.Patient && other)
}

// settled is how many of the hosts that hold a record which rests on a condition must be settled: each majority of the hosts of
// before has one of so many, if these are hosts of before.
func (p *Put) settled() int {
	if !p.Itself {
		return 0
	}
	return min(p.need, (len(p.hosts)+1)/2)
}

func (p *Put) of(peer ID) *host {
	for _, h := range p.hosts {
		if h.Peer == peer && h.open {
			return h
		}
	}
	return nil
}

// Answered notes what a host has done with the record.
func (p *Put) Answered(peer ID, o Outcome, now time.Duration) {
	if p.Itself && o.Held && o.Later == nil && !o.Settled {
		if h := p.of(peer); h != nil {
			h.Outcome = &o
		}
		p.Failed(peer, ErrUnsettled, true, now) // it is asked again, unless enough others are settled
		return
	}
	if h := p.of(peer); h != nil {
		h.open, h.ended, h.Outcome, h.Sent = false, true, &o, true
		if p.Itself && o.Later != nil {
			o.Held, o.Other = false, o.Later
		}
	}
}

// Failed notes why a host has not answered. sent: the record may have reached it. It is
// asked again after a pause.
func (p *Put) Failed(peer ID, why error, sent bool, now time.Duration) {
	if h := p.of(peer); h != nil {
		h.open, h.Err = false, why
		h.Sent = h.Sent || sent
		h.again = now + min(putPauseMost, putPause<<min(h.tries-1, 10))
	}
}

// Result is how the write stands; the error says why it is not acknowledged. A request
// that is open counts as one that may have reached its host.
func (p *Put) Result() (Written, error) {
	w := Written{Need: p.need, Requests: p.requests}
	sent, declined, settled := false, false, 0
	for _, h := range p.hosts {
		holder := h.Holder
		holder.Sent = holder.Sent || h.open
		w.Hosts = append(w.Hosts, holder)
		o := holder.Outcome
		switch {
		case o == nil:
			sent = sent || holder.Sent
		case o.Held:
			w.Held++
			if w.Settled = w.Settled || o.Settled; o.Settled {
				settled++
			}
		case o.Other != nil:
			w.Others = append(w.Others, o.Other)
		case o.Elsewhere:
			declined = true
			if o.Layout.Epoch > w.Moved.Epoch {
				w.Moved, w.MovedBy = o.Layout, h.Peer
			}
		default:
			declined = true
		}
	}
	left := len(p.hosts)
	for _, h := range p.hosts {
		if h.ended && !h.Outcome.Held {
			left--
		}
	}
	switch {
	case w.Held >= w.Need && settled >= p.settled():
		return w, nil
	case len(w.Others) > 0:
		return w, ErrOvertaken
	case declined && left < w.Need:
		return w, ErrRefused
	case w.Held == 0 && !sent:
		return w, ErrUnwritten
	}
	return w, ErrUnconfirmed
}
