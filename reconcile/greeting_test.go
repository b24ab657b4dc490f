package reconcile

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Each side hears the other's greeting, and that before the responder opens or
// reserves anything. A sync that does not move all that differs promises nothing.
func TestGreetings(t *testing.T) {
	greeting := func(n uint64) wire.Greeting {
		return wire.Greeting{List: [16]byte{1}, Tau: dbadapter.Timestamp(n), Floor: 3, Incarnation: n, Time: 4}
	}
	for name, c := range map[string]struct {
		o       Options
		prefix  string
		promise bool
	}{
		"whole":           {Options{}, "", true},
		"by method all":   {Options{Method: wire.MethodAll}, "", true},
		"of a prefix":     {Options{}, "c", false},
		"dry":             {Options{DryRun: true}, "", false},
		"of one way":      {Options{Direction: wire.Push}, "", true},
		"of other's list": {Options{ListsMayDiffer: true}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newSide(t, "a", nil), newSide(t, "b", nil)
			a.put(record("common", "", at(0)), record("c", "", at(0)))
			b.put(record("common", "", at(0)))
			a.prefix, b.prefix = []byte(c.prefix), []byte(c.prefix)
			var order []string
			var heard [2]wire.Greeting
			b.budget = NewBudget(1 << 40)
			for n, s := range []*side{a, b} {
				s.greets = func() wire.Greeting {
					order = append(order, s.name+" greets")
					return greeting(uint64(n + 1))
				}
				s.heeds = func(g wire.Greeting) error {
					order = append(order, s.name+" heeds")
					if n == 1 && b.budget.free < 1<<40 {
						t.Error("memory was reserved for a peer that was not heeded yet")
					}
					heard[n] = g
					return nil
				}
			}
			va, vb := a.open(), b.open()
			defer va.Close()
			defer vb.Close()
			var hello *wire.Hello
			sa := Initiate(va, a.options(b, c.o))
			sb := Respond(func(h *wire.Hello) (Replica, error) {
				order, hello = append(order, "b opens"), h
				return vb, nil
			}, b.options(a, Options{}))
			carry(t, sa, sb, &outcome{}, nil)
			if sa.Err() != nil || sb.Err() != nil {
				t.Fatal(sa.Err(), sb.Err())
			}
			if want := []string{"a greets", "b heeds", "b opens", "b greets", "a heeds"}; !slices.Equal(order, want) {
				t.Errorf("%v", order)
			}
			for n, g := range heard {
				want := greeting(uint64(2 - n))
				if !c.promise {
					want.Tau = 0
				}
				if theirs := []Report{sa.Report(), sb.Report()}[n].Theirs; g != want || theirs != want {
					t.Errorf("side %d heard %+v, its report has %+v", n, g, theirs)
				}
			}
			if hello.ListsMayDiffer != c.o.ListsMayDiffer {
				t.Errorf("the Hello says that the lists may differ: %v", hello.ListsMayDiffer)
			}
		})
	}
}

// A side that has not proved itself is not heeded.
func TestStrangersAreNotHeeded(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	for _, s := range []*side{a, b} {
		s.heeds = func(wire.Greeting) error { t.Errorf("%s heeds a stranger", s.name); return nil }
	}
	for says, begin := range map[wire.Message]func(*testing.T, *side, *side) (*Session, Options){helloOf(a, nil): asked, &wire.Welcome{}: asking} {
		s, o := begin(t, a, b)
		(&script{o: o, stranger: true, says: inTurn(says)}).play(t, s, 10)
		if !errors.Is(s.Err(), ErrDenied) || s.Report().Theirs != (wire.Greeting{}) {
			t.Errorf("%T: %v", says, s.Err())
		}
	}
}

// What a side's Heed says ends the session on both sides with the same error, and
// before a replica is opened at the responder.
func TestHeededRefusals(t *testing.T) {
	statement := bytes.Repeat([]byte{7}, wire.MaxStatement)
	one, most := [][]byte{statement}, slices.Repeat([][]byte{statement}, wire.MaxStatements)
	for name, c := range map[string]struct {
		err, there error
		statements [][]byte
	}{
		"removed":                     {&RemovedError{one}, ErrRemoved, one},
		"removed, many statements":    {&RemovedError{most}, ErrRemoved, most},
		"removed, too many":           {&RemovedError{append(most, statement)}, ErrDenied, nil},
		"removed, without a proof":    {ErrRemoved, ErrDenied, nil},
		"removed, an empty statement": {&RemovedError{[][]byte{{}}}, ErrDenied, nil},
		"removed, a long statement":   {&RemovedError{[][]byte{append(statement, 0)}}, ErrDenied, nil},
		"lists":                       {ErrListsDiffer, ErrListsDiffer, nil},
		"twin":                        {ErrTwin, ErrTwin, nil},
		"denied":                      {ErrDenied, ErrDenied, nil},
		"busy":                        {ErrBusy, ErrBusy, nil},
		"a failure":                   {errors.New("the disk is full"), ErrPeer, nil},
	} {
		for _, by := range []int{0, 1} {
			t.Run(name+" by "+[]string{"a", "b"}[by], func(t *testing.T) {
				sides := []*side{newSide(t, "a", nil), newSide(t, "b", nil)}
				sides[0].put(record("common", "", at(0)), record("k", "", at(0)))
				sides[1].put(record("common", "", at(0)))
				sides[by].heeds = func(wire.Greeting) error { return c.err }
				opened := false
				va, vb := sides[0].open(), sides[1].open()
				defer va.Close()
				defer vb.Close()
				s := []*Session{
					Initiate(va, sides[0].options(sides[1], Options{})),
					Respond(func(*wire.Hello) (Replica, error) { opened = true; return vb, nil }, sides[1].options(sides[0], Options{})),
				}
				carry(t, s[0], s[1], &outcome{}, nil)
				here, there := s[by].Err(), s[1-by].Err()
				if !errors.Is(here, c.err) || !errors.Is(there, c.there) || opened != (by == 0) {
					t.Errorf("%v here, %v there, a replica was opened: %v", here, there, opened)
				}
				removed, ok := errors.AsType[*RemovedError](there)
				if ok != (c.statements != nil) || ok && !slices.EqualFunc(removed.Statements, c.statements, bytes.Equal) {
					t.Errorf("the peer was told %v", there)
				}
				for _, s := range s {
					if r := s.Report(); r.Verified || r.Applied > 0 || r.Sent > 0 {
						t.Errorf("%+v", r)
					}
				}
			})
		}
	}
}

// A proof is of the namespace, the names and the nonce of its Hello.
func TestProves(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	o := b.options(a, Options{})
	for name, c := range map[string]struct {
		edit   func(*wire.Hello)
		remote string
		want   bool
	}{
		"it":                {func(*wire.Hello) {}, "a", true},
		"another proof":     {func(h *wire.Hello) { h.Proof[31]++ }, "a", false},
		"another nonce":     {func(h *wire.Hello) { h.Nonce[0]++ }, "a", false},
		"another namespace": {func(h *wire.Hello) { h.Namespace[0]++ }, "a", false},
		"another peer":      {func(*wire.Hello) {}, "c", false},
	} {
		h := helloOf(a, nil)
		prove(h, o, wire.Nonce{})
		c.edit(h)
		if got := Proves(b.keys, []byte(c.remote), []byte("b"), h); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
