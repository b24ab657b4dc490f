package reconcile

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A member of the list that does not know the secret makes the responder read
// nothing: no snapshot is opened, and so no prefix scanned, and no memory is
// reserved.
func TestNoWorkBeforeProof(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	a.put(record("k", "v", at(0)))
	b.put(record("k", "v", at(0)))
	good := Options{Keys: b.keys, Self: []byte("b"), Remote: []byte("a")}
	for name, c := range map[string]struct {
		spoil func(*wire.Hello)
		opens int
		err   error
	}{
		"a good proof":   {func(*wire.Hello) {}, 1, nil},
		"a wrong proof":  {func(h *wire.Hello) { h.Proof[5]++ }, 0, ErrDenied},
		"another prefix": {func(h *wire.Hello) { h.Prefix, h.Proof[5] = []byte("p"), h.Proof[5]+1 }, 0, ErrDenied},
		"another secret": {func(h *wire.Hello) { h.Namespace[0]++ }, 0, ErrDenied},
		"old version":    {func(h *wire.Hello) { h.Version-- }, 0, ErrVersion},
		"old mapping":    {func(h *wire.Hello) { h.Mapping-- }, 0, ErrVersion},
	} {
		t.Run(name, func(t *testing.T) {
			opened, o := 0, good
			if c.err != nil { // before anything is reserved
				o.Budget = NewBudget(0)
			}
			s := Respond(func(*wire.Hello) (Replica, error) {
				opened++
				return b.open(), nil
			}, o)
			h := helloOf(a, nil)
			p := script{o: o, stranger: true, says: func(heard []wire.Message) wire.Message {
				prove(h, o, h.Nonce)
				c.spoil(h)
				return h
			}}
			heard := p.play(t, s, 10)
			if opened != c.opens || !errors.Is(s.Err(), c.err) {
				t.Errorf("%d replicas opened, %v", opened, s.Err())
			}
			if c.err != nil && len(heard) != 1 {
				t.Errorf("said %v", heard)
			}
		})
	}
}

// What the caller's open fails with is told, and ends the session.
func TestOpenFails(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	o := b.options(a, Options{})
	s := Respond(func(*wire.Hello) (Replica, error) { return nil, ErrBusy }, o)
	p := script{o: o, says: inTurn(helloOf(a, nil))}
	heard := p.play(t, s, 10)
	if r, ok := heard[len(heard)-1].(*wire.Refuse); !ok || r.Code != wire.CodeBusy || !errors.Is(s.Err(), ErrBusy) {
		t.Errorf("%v, %v", heard, s.Err())
	}
}

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

// However records of all sizes are mixed, no frame is larger than the peer
// takes. Each key is written by one side, or by both at another time, so that
// every way on which records travel is one on which they are batched.
func TestEveryFrameIsTaken(t *testing.T) {
	large := strings.Repeat("x", dbadapter.MaxValue)
	for name, sizes := range map[string][]int{
		"many small before a large":  append(repeated(wire.BatchBytes/1000-10, 1000), dbadapter.MaxValue),
		"halves of a batch":          repeated(5, wire.BatchBytes/2+1),
		"just below and the largest": {wire.BatchBytes - 100, dbadapter.MaxValue, wire.BatchBytes - 100, dbadapter.MaxValue},
		"the largest only":           repeated(3, dbadapter.MaxValue),
	} {
		for _, o := range []Options{{}, {Method: wire.MethodAll}} {
			for _, both := range []bool{false, true} {
				for _, giver := range []int{0, 1} {
					sides := [2]*side{newSide(t, "a", nil), newSide(t, "b", nil)}
					for i := range 3 {
						r := record(fmt.Sprint("common ", i), "", at(0))
						sides[0].put(r)
						sides[1].put(r)
					}
					for i, size := range sizes {
						key := fmt.Sprintf("%03d", i)
						sides[giver].put(record(key, large[:size], at(1e9*60)))
						if both {
							sides[1-giver].put(record(key, "", at(0)))
						}
					}
					out := run(t, sides[0], sides[1], o, nil) // which reads each frame as a peer does
					if out.errA != nil || out.errB != nil || !out.a.Verified || !out.b.Verified {
						t.Errorf("%s: %v, %v", name, out.errA, out.errB)
					}
					wantEqual(t, sides[0], sides[1])
				}
			}
		}
	}
}

func repeated(n, size int) []int {
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = size
	}
	return sizes
}

// Of two records with the same large content, the head of the winner comes over
// with all that it says, and no value travels: as an offer that is adopted, as a
// stub against an offer, as a stub against a bid. Of one version, the later expiry
// wins, and then what is replaced.
func TestHeadsCarryOptionalFields(t *testing.T) {
	large := strings.Repeat("x", 50_000)
	day := func(n int) dbadapter.Timestamp {
		return dbadapter.TimestampAt(time.Date(2027, 1, n, 0, 0, 0, 0, time.UTC))
	}
	one, two := []dbadapter.Replaced{{Writer: 1, Clock: 5}}, []dbadapter.Replaced{{Writer: 1, Clock: 5}, {Writer: 2, Clock: 9}}
	for _, gap := range []time.Duration{0, time.Second, time.Hour} {
		for n, change := range []func(win, lose *dbadapter.Record){
			func(win, lose *dbadapter.Record) { win.Expires, lose.Expires = day(2), day(1) },
			func(win, lose *dbadapter.Record) { win.Expires = day(1) },
			func(win, lose *dbadapter.Record) { win.Replaces, lose.Replaces = two, one },
			func(win, lose *dbadapter.Record) { win.Replaces = one },
			func(win, lose *dbadapter.Record) { win.Expires, win.Replaces = day(1), two },
		} {
			win, lose := record("k", large, at(gap)), record("k", large, at(0))
			change(&win, &lose)
			for _, places := range [][2]dbadapter.Record{{win, lose}, {lose, win}} {
				t.Run(fmt.Sprint(gap, " ", n, " ", places[0].Compare(&places[1])), func(t *testing.T) {
					a, b := newSide(t, "a", nil), newSide(t, "b", nil)
					a.put(places[0], record("same", "1", at(0)))
					b.put(places[1], record("same", "1", at(0)))
					out := run(t, a, b, Options{}, nil)
					if out.errA != nil || out.errB != nil || !out.a.Verified || !out.b.Verified {
						t.Fatal(out.errA, out.errB, out.log)
					}
					wantEqual(t, a, b)
					if got := a.dump()[0]; !reflect.DeepEqual(got, win) {
						t.Errorf("expires %v, replaces %v; not %v, %v", got.Expires, got.Replaces, win.Expires, win.Replaces)
					}
					if out.a.WireBytesSent+out.a.WireBytesReceived > 4000 {
						t.Errorf("%+v %v", out.a, out.log)
					}
				})
			}
		}
	}
}
