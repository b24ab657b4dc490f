package reconcile

import (
	"errors"
	"testing"

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
