package node

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// keyAt is a key whose shard a node is a host of, or not.
func (w *movers) keyAt(i int, host bool) []byte {
	layout := must(first(w.all[i].ns.Layout()))
	for n := 0; ; n++ {
		key := fmt.Sprint("key", n)
		if layout.Has(w.home(key), w.all[i].ID) == host {
			return []byte(key)
		}
	}
}

// offers carries out a write until its end, and returns the steps that it took. hand is what
// the hosts do, one call a step.
func offers(t *testing.T, o *Offering, found *dbadapter.Record, heard bool, hand ...func() (route.Written, error)) (steps []OfferDo) {
	t.Helper()
	for range 100 {
		do := o.Next()
		steps = append(steps, do)
		switch do {
		case OfferLookUp:
			o.LookedUp(LookedUp{Found: route.Found{Record: found, Sure: found != nil}}, nil)
		case OfferCommit:
			_, err := commit(o.Attempt(), nil)
			o.Committed(err)
		case OfferHand:
			w, err := hand[0]()
			if hand = hand[1:]; len(hand) == 0 {
				hand = append(hand, func() (route.Written, error) { return w, err })
			}
			o.Handed(w, err, false)
		case OfferHeed:
			o.Heeded(heard)
		case OfferOver:
			return steps
		}
	}
	t.Fatalf("a write goes on after %v", steps)
	return nil
}

// answers are what hosts come to: an error, and whether one may hold the record.
func answers(err error, taken bool, others ...*dbadapter.Record) func() (route.Written, error) {
	return func() (route.Written, error) {
		return route.Written{Need: 2, Others: others, Hosts: []route.Holder{{Peer: "host", Sent: taken}}}, err
	}
}

// tooLate is what hosts come to where one declines the record for what it has promised, and another one holds it, or not.
func tooLate(held bool) func() (route.Written, error) {
	return func() (route.Written, error) {
		w := route.Written{Need: 2, Hosts: []route.Holder{{Peer: "late", Sent: true, Outcome: &route.Outcome{Declined: declinedFor(wire.ReasonFloor)}}}}
		if held {
			w.Held, w.Hosts = 1, append(w.Hosts, route.Holder{Peer: "host", Sent: true, Outcome: &route.Outcome{Held: true}})
		}
		return w, route.ErrRefused
	}
}

func TestOffers(t *testing.T) {
	w := newMovers(t, 3, 4)
	w.settle()
	ns := w.all[0].ns
	there, here := w.keyAt(0, false), w.keyAt(0, true)
	write := func(key []byte) Draft { return Draft{Record: dbadapter.Record{Key: key, Value: []byte("v")}} }
	other := must(w.all[1].ns.Remote(there).Make(write(there)))
	over := answers(route.ErrOvertaken, false, other)
	for _, c := range []struct {
		what  string
		o     *Offering
		found *dbadapter.Record
		heard bool
		hand  []func() (route.Written, error)
		want  []OfferDo
		err   error
		taken bool
	}{
		{"elsewhere", ns.Offer(write(there), false, 1, still), nil, false, []func() (route.Written, error){answers(nil, true)}, []OfferDo{OfferHand, OfferOver}, nil, true},
		{"here, by one", ns.Offer(write(here), false, 1, still), nil, false, nil, []OfferDo{OfferCommit, OfferOver}, nil, true},
		{"here, by all", ns.Offer(write(here), false, route.All, still), nil, false, []func() (route.Written, error){answers(nil, true)}, []OfferDo{OfferCommit, OfferHand, OfferOver}, nil, true},
		{"too many", ns.Offer(write(there), false, 3, still), nil, false, nil, []OfferDo{OfferOver}, ErrInvalid, false},
		{"overtaken once", ns.Offer(write(there), false, 1, still), nil, false, []func() (route.Written, error){over, answers(nil, true)}, []OfferDo{OfferHand, OfferHand, OfferOver}, nil, true},
		{"overtaken for ever", ns.Offer(write(there), false, 1, still), nil, false, []func() (route.Written, error){over}, append(slices.Repeat([]OfferDo{OfferHand}, OfferTries), OfferOver), route.ErrOvertaken, false},
		{"heard of another list", ns.Offer(write(there), false, 1, still), nil, true, []func() (route.Written, error){answers(route.ErrRefused, false), answers(nil, true)}, []OfferDo{OfferHand, OfferHeed, OfferHand, OfferOver}, nil, true},
		{"heard, and refused again", ns.Offer(write(there), false, 1, still), nil, true, []func() (route.Written, error){answers(route.ErrRefused, true)}, []OfferDo{OfferHand, OfferHeed, OfferHand, OfferHeed, OfferHand, OfferHeed, OfferHand, OfferOver}, route.ErrRefused, true},
		{"too late at one of two", ns.Offer(write(there), false, route.All, still), nil, false, []func() (route.Written, error){tooLate(true), answers(nil, true)}, []OfferDo{OfferHand, OfferHand, OfferOver}, nil, true},
		{"too late for ever", ns.Offer(write(there), false, 1, still), nil, false, []func() (route.Written, error){tooLate(false)}, append(slices.Repeat([]OfferDo{OfferHand}, OfferTries), OfferOver), route.ErrRefused, false},
		{"here, too late elsewhere", ns.Offer(write(here), false, route.All, still), nil, false, []func() (route.Written, error){tooLate(true), answers(nil, true)}, []OfferDo{OfferCommit, OfferHand, OfferCommit, OfferHand, OfferOver}, nil, true},
		{"nothing heard", ns.Offer(write(there), false, 1, still), nil, false, []func() (route.Written, error){answers(route.ErrUnwritten, false)}, []OfferDo{OfferHand, OfferHeed, OfferOver}, route.ErrUnwritten, false},
		{"a deletion of what is there", ns.Offer(write(there), true, 1, still), other, false, []func() (route.Written, error){answers(nil, true)}, []OfferDo{OfferLookUp, OfferHand, OfferOver}, nil, true},
		{"a deletion of what no host is sure of", ns.Offer(write(there), true, 1, still), nil, false, nil, []OfferDo{OfferLookUp, OfferOver}, ErrUnsure, false},
		{"a deletion, overtaken, is looked up anew", ns.Offer(write(there), true, 1, still), other, false, []func() (route.Written, error){over, answers(nil, true)}, []OfferDo{OfferLookUp, OfferHand, OfferLookUp, OfferHand, OfferOver}, nil, true},
		{"a deletion that a host may have taken is not", ns.Offer(write(there), true, 1, still), other, false, []func() (route.Written, error){answers(route.ErrOvertaken, true, other)}, []OfferDo{OfferLookUp, OfferHand, OfferOver}, route.ErrOvertaken, true},
		{"a deletion that comes too late is looked up anew", ns.Offer(write(there), true, 1, still), other, false, []func() (route.Written, error){tooLate(false), answers(nil, true)}, []OfferDo{OfferLookUp, OfferHand, OfferLookUp, OfferHand, OfferOver}, nil, true},
		{"a deletion that a host has taken, too late at another, is not", ns.Offer(write(there), true, route.All, still), other, false, []func() (route.Written, error){tooLate(true)}, []OfferDo{OfferLookUp, OfferHand, OfferHeed, OfferOver}, route.ErrRefused, true},
	} {
		ns.writes = ownWrites{} // what a case has written, its hosts do not say
		got := offers(t, c.o, c.found, c.heard, c.hand...)
		_, err := c.o.Result()
		if !slices.Equal(got, c.want) || !errors.Is(err, c.err) || c.o.Taken() != c.taken {
			t.Errorf("%s: %v, %v, taken %t; want %v, %v, %t", c.what, got, err, c.o.Taken(), c.want, c.err, c.taken)
		}
	}
}

// A record that is made anew is later than what hosts hold, and names it; one that a host may
// hold stays the same when the lists of members have become equal.
func TestOffersMadeAnew(t *testing.T) {
	w := newMovers(t, 3, 4)
	w.settle()
	ns, key := w.all[0].ns, w.keyAt(0, false)
	d := Draft{Record: dbadapter.Record{Key: key, Value: []byte("v")}}
	other := must(w.all[1].ns.Remote(key).Make(d))
	var made []dbadapter.Record
	o := ns.Offer(d, false, 1, still)
	each := func(next func() (route.Written, error)) func() (route.Written, error) {
		return func() (route.Written, error) { made = append(made, *o.Record()); return next() }
	}
	offers(t, o, nil, true, each(answers(route.ErrOvertaken, false, other)), each(answers(route.ErrRefused, true)), each(answers(nil, true)))
	if len(made) != 3 || !made[1].Supersedes(other.Version) || !made[1].Supersedes(made[0].Version) || made[2].Version != made[1].Version || o.Version() != made[2].Version {
		t.Errorf("%+v were made", made)
	}
}

// A record that came too late is made anew by the clock of the host that says so, and names the one before.
func TestOffersTooLate(t *testing.T) {
	m := newMovers(t, 3, 4)
	m.settle()
	c, key := m.all[0], m.keyAt(0, false)
	home := m.home(string(key))
	a := m.all[slices.IndexFunc(m.all, func(of *mover) bool { return of.held(home) != nil && of != c })]
	a.clock = a.clock.Add(time.Second)
	a.held(home).vouching.mark.Pledged = dbadapter.TimestampAt(a.clock)
	o := c.ns.Offer(draft(string(key), "v"), false, 1, still)
	var made []*dbadapter.Record
	hand := func() (route.Written, error) {
		made = append(made, o.Record())
		got, err := c.offer(t, c.ns, a.machine, o.Record())
		w := route.Written{Need: 1, Hosts: []route.Holder{{Peer: a.ID, Sent: true, Outcome: &got}}}
		if err == nil && !got.Held {
			err = route.ErrRefused
		}
		return w, err
	}
	offers(t, o, nil, false, hand, hand, hand)
	if _, err := o.Result(); err != nil || len(made) != 2 || !made[1].Supersedes(made[0].Version) || made[1].Version.Clock > dbadapter.TimestampAt(a.clock.Add(time.Second)) {
		t.Errorf("%+v were made; %v", made, err)
	}
}

// The node remembers a record that a host may hold, also where the hosts that are asked later do not take it; one that
// no host can hold it does not remember.
func TestOffersRemembered(t *testing.T) {
	w := newMovers(t, 3, 4)
	w.settle()
	ns, key := w.all[0].ns, w.keyAt(0, false)
	d := Draft{Record: dbadapter.Record{Key: key, Value: []byte("v")}}
	other := must(w.all[1].ns.Remote(key).Make(d))
	for _, c := range []struct {
		what string
		hand []func() (route.Written, error)
		want bool
	}{
		{"taken by none", []func() (route.Written, error){answers(route.ErrUnwritten, false)}, false},
		{"sent first", []func() (route.Written, error){answers(route.ErrRefused, true), answers(route.ErrRefused, false)}, true},
		{"sent first, and made anew", []func() (route.Written, error){answers(route.ErrOvertaken, true, other), answers(route.ErrRefused, false)}, false},
	} {
		ns.writes = ownWrites{}
		o := ns.Offer(d, false, 1, still)
		offers(t, o, nil, true, c.hand...)
		if own := ns.Recall(key, 0).Own; (own != nil && own.Version == o.Version()) != c.want {
			t.Errorf("%s: remembered is %v of %v", c.what, own, o.Version())
		}
	}
}

// A node that a new layout does not name acknowledges nothing by itself, although it holds
// the record.
func TestOffersAfterANewLayout(t *testing.T) {
	w := newMovers(t, 3, 4)
	w.settle()
	m := w.all[0]
	o := m.ns.Offer(Draft{Record: dbadapter.Record{Key: w.keyAt(0, true), Value: []byte("v")}}, false, route.All, still)
	moves := func() (route.Written, error) {
		next := must(placement.Plan(m.ns.rule, []placement.Host{{ID: w.all[1].ID, Weight: 1}}))
		m.ns.placed.Store(&placed{stated: m.ns.placed.Load().stated, layout: next, last: next})
		return answers(route.ErrRefused, true)()
	}
	got := offers(t, o, nil, true, moves, answers(nil, true))
	if want := []OfferDo{OfferCommit, OfferHand, OfferHeed, OfferHand, OfferOver}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
