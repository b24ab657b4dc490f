package sim

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// carried are the frames that arrive over a link.
type carried struct {
	frames []string
	times  []time.Duration
	err    error
}

func carry(w *World, n *Net, frames int, end func(*Stream)) *carried {
	got := &carried{}
	s := n.Dial(0, 1, func(s *Stream) bool {
		s.Receive = func(f []byte) {
			got.frames = append(got.frames, string(f))
			got.times = append(got.times, w.Now())
		}
		s.Broken = func(err error) { got.err = err }
		return true
	})
	for i := range frames {
		s.Send(fmt.Append(nil, i))
	}
	if end != nil {
		end(s)
	}
	return got
}

// Over any link that is not cut, all frames arrive, once and in order.
func TestStreamKeepsOrder(t *testing.T) {
	for seed := range uint64(50) {
		w := New(seed)
		n := NewNet(w, Behaviour{Delay: time.Millisecond, Jitter: 50 * time.Millisecond, Loss: 0.3, Duplicate: 0.3, Reorder: 0.3})
		got := carry(w, n, 50, (*Stream).Close)
		w.Run(10 * time.Minute)
		var want []string
		for i := range 50 {
			want = append(want, fmt.Sprint(i))
		}
		if !slices.Equal(got.frames, want) || !errors.Is(got.err, ErrEnd) {
			t.Fatalf("seed %d: %v, then %v", seed, got.frames, got.err)
		}
		if got.times[0] < time.Millisecond {
			t.Errorf("seed %d: a frame came after %s", seed, got.times[0])
		}
	}
}

// A cut holds what is sent in one direction until it is healed; the other
// direction is open.
func TestCut(t *testing.T) {
	w := New(1)
	n := NewNet(w, Behaviour{Delay: time.Millisecond})
	n.Cut(0, 1)
	there := carry(w, n, 1, nil)
	back := ""
	n.Dial(1, 0, func(s *Stream) bool {
		s.Receive = func(f []byte) { back = string(f) }
		return true
	}).Send([]byte("back"))
	w.Run(5 * time.Second)
	if len(there.frames) != 0 || back != "back" {
		t.Errorf("while 0>1 is cut: %v, %q", there.frames, back)
	}
	n.Heal(0, 1)
	w.Run(10 * time.Second)
	if len(there.frames) != 1 {
		t.Error("a healed link lets nothing through")
	}
}

// The other side hears of a reset over a working link, and never of a power cut;
// after both, lost frames are not sent again.
func TestStreamEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*Stream)
		cut  bool
		want error
	}{
		"reset":              {(*Stream).Reset, false, ErrReset},
		"reset behind a cut": {(*Stream).Reset, true, nil},
		"power cut":          {(*Stream).Vanish, false, nil},
	} {
		w := New(1)
		n := NewNet(w, Behaviour{Delay: time.Millisecond})
		got := &carried{}
		s := n.Dial(0, 1, func(s *Stream) bool {
			s.Receive = func(f []byte) { got.frames = append(got.frames, string(f)) }
			s.Broken = func(err error) { got.err = err }
			return true
		})
		s.Send([]byte("first"))
		w.Run(time.Second)
		if c.cut {
			n.Cut(0, 1)
		}
		c.end(s)
		w.Run(time.Minute)
		if len(got.frames) != 1 || !errors.Is(got.err, c.want) {
			t.Errorf("%s: %v, %v", name, got.frames, got.err)
		}
	}
	w := New(1)
	n := NewNet(w, Behaviour{})
	n.Cut(0, 1)
	got := carry(w, n, 1, (*Stream).Vanish)
	n.HealAll()
	w.Run(time.Minute)
	if len(got.frames) != 0 {
		t.Error("a dead machine sends its frames again")
	}
}

// A dialling node is told that the other does not listen.
func TestRefusedDial(t *testing.T) {
	w := New(1)
	n := NewNet(w, Behaviour{})
	var err error
	s := n.Dial(0, 1, func(*Stream) bool { return false })
	s.Broken = func(e error) { err = e }
	s.Send([]byte("x"))
	w.Run(time.Second)
	if !errors.Is(err, ErrReset) {
		t.Error(err)
	}
}
