package route

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// putTwin is a write that keeps all that has happened, and goes through it each time.
type putTwin struct {
	hosts    []ID
	here     ID
	patient  bool
	need     int
	deadline time.Duration
	asked    map[ID]bool
	open     map[ID]bool
	sent     map[ID]bool
	outcomes map[ID]Outcome
}

// settled reports whether one that holds the record is settled.
func (p *putTwin) settled() bool {
	for _, h := range p.hosts {
		if p.outcomes[h].Held && p.outcomes[h].Settled {
			return true
		}
	}
	return false
}

func (p *putTwin) held() (n int) {
	for _, h := range p.hosts {
		if h == p.here || p.outcomes[h].Held {
			n++
		}
	}
	return n
}

// verdict is nil for an acknowledged write; over: it will not change.
func (p *putTwin) verdict(now time.Duration) (over bool, err error) {
	all, possible, later, declined, sent := true, 0, 0, false, false
	for _, h := range p.hosts {
		o, ended := p.outcomes[h]
		all = all && (p.asked[h] || h == p.here)
		switch {
		case h == p.here || ended && o.Held || !ended:
			possible++
		case o.Other != nil:
			later++
		default:
			declined = true
		}
		sent = sent || !ended && (p.sent[h] || p.open[h])
	}
	stays := p.patient && later > 0 && slices.ContainsFunc(p.hosts, func(h ID) bool { return p.open[h] })
	over = now >= p.deadline || all && (p.held() >= p.need || !stays && (later > 0 || possible < p.need))
	switch {
	case p.held() >= p.need:
		return over, nil
	case later > 0:
		return over, ErrOvertaken
	case declined && possible < p.need:
		return over, ErrRefused
	case p.held() == 0 && !sent:
		return over, ErrUnwritten
	}
	return over, ErrUnconfirmed
}

// A write asks all hosts at once, is acknowledged when enough of them hold the record, and
// says how it stands otherwise: as its twin does.
func TestPutAgainstTwin(t *testing.T) {
	seen := map[error]int{}
	each(t, 4000, func(t *testing.T, r *rand.Rand) {
		w := &world{}
		p := &putTwin{asked: map[ID]bool{}, open: map[ID]bool{}, sent: map[ID]bool{}, outcomes: map[ID]Outcome{}}
		for i := range 1 + r.IntN(5) {
			p.hosts = append(p.hosts, peerID(i))
		}
		if r.IntN(3) == 0 {
			p.here = p.hosts[r.IntN(len(p.hosts))]
		}
		ack := []Ack{0, 1, 2, 3, Majority, All}[r.IntN(6)]
		p.deadline = time.Duration(1+r.IntN(8)) * time.Second
		put, err := NewPut(p.hosts, p.here, false, ack, p.deadline, w.now)
		switch {
		case ack > 0 && int(ack) > len(p.hosts):
			if !errors.Is(err, ErrAck) {
				t.Fatal(err)
			}
			return
		case err != nil:
			t.Fatal(err)
		}
		p.need = map[Ack]int{0: 1, 1: 1, 2: 2, 3: 3, Majority: len(p.hosts)/2 + 1, All: len(p.hosts)}[ack]
		p.patient = r.IntN(2) > 0
		put.Patient = p.patient
		failing, down := r.IntN(3) > 0, r.IntN(6) == 0
		for {
			step := put.Next(w.now)
			if over, _ := p.verdict(w.now); over != (step.Do == Over) {
				t.Fatalf("%v: over %t, want %t: %+v", w.now, step.Do == Over, over, p)
			}
			if step.Do == Over {
				break
			}
			if step.Do == Wait {
				if len(p.asked) == 0 && p.here == "" {
					t.Fatal("it waits before all are asked")
				}
				if step.Until <= w.now {
					t.Fatalf("%v: waits until %v", w.now, step.Until)
				}
				w.next(step.Until)
				continue
			}
			h := step.Peer
			if _, ended := p.outcomes[h]; ended || p.open[h] || h == p.here {
				t.Fatalf("%s is asked again", h)
			}
			p.asked[h], p.open[h] = true, true
			takes := delay(r)
			if down {
				takes = time.Duration(r.IntN(20)) * time.Millisecond
			}
			w.after(takes, func() {
				p.open[h] = false
				if down {
					put.Failed(h, errHost, false, w.now)
					return
				}
				var o Outcome
				switch n := r.IntN(8); {
				case n < 3 && failing:
					sent := r.IntN(2) > 0
					p.sent[h] = p.sent[h] || sent
					put.Failed(h, errHost, sent, w.now)
					return
				case n == 3:
					o.Other = version(1 + r.IntN(3))
				case n == 4:
					o.Declined = errHost
				case n == 5:
					o.Elsewhere, o.Layout.Epoch = true, r.Uint64N(3)
				default:
					o.Held, o.Settled = true, r.IntN(2) > 0
				}
				p.outcomes[h] = o
				put.Answered(h, o, w.now)
			})
		}
		_, want := p.verdict(w.now)
		written, err := put.Result()
		if !errors.Is(err, want) || (err == nil) != (want == nil) || written.Held != p.held() || written.Need != p.need || written.Settled != p.settled() || (len(written.Others) > 0) != (want == ErrOvertaken) && want != nil {
			t.Fatalf("%v: %+v, %v; want %v", w.now, written, err, want)
		}
		for i, h := range written.Hosts {
			o, ended := p.outcomes[h.Peer]
			if h.Peer != p.hosts[i] || (h.Outcome != nil) != (ended || h.Peer == p.here) || h.Outcome != nil && h.Peer != p.here && *h.Outcome != o {
				t.Fatalf("host %d: %+v, want %+v", i, h, o)
			}
			if !ended && h.Peer != p.here && h.Sent != (p.sent[h.Peer] || p.open[h.Peer]) {
				t.Fatalf("host %d: sent %t", i, h.Sent)
			}
		}
		seen[want]++
	})
	t.Log(seen)
	for _, err := range []error{nil, ErrRefused, ErrUnconfirmed, ErrUnwritten, ErrOvertaken} {
		if seen[err] == 0 {
			t.Errorf("%v did not come", err)
		}
	}
}

// A host that is away is tried again, ever later.
func TestPutTriesAgain(t *testing.T) {
	w := &world{}
	put, err := NewPut([]ID{"a"}, "", false, All, time.Minute, 0)
	if err != nil {
		t.Fatal(err)
	}
	var asked []time.Duration
	for {
		step := put.Next(w.now)
		if step.Do == Over {
			break
		}
		if step.Do == Wait {
			w.now = step.Until
			continue
		}
		asked = append(asked, w.now)
		put.Failed("a", errHost, false, w.now)
	}
	want := []time.Duration{0, 100, 300, 700, 1500, 3100, 6300, 9500}
	for i := range want {
		want[i] *= time.Millisecond
	}
	if len(asked) < len(want) || !slices.Equal(asked[:len(want)], want) {
		t.Errorf("asked at %v", asked)
	}
	if written, err := put.Result(); !errors.Is(err, ErrUnwritten) || written.Requests != len(asked) {
		t.Errorf("%+v, %v", written, err)
	}
}

func TestAck(t *testing.T) {
	for text, want := range map[string]Ack{"": 1, "1": 1, "7": 7, "majority": Majority, "all": All} {
		a, err := ParseAck(text)
		if err != nil || a != want {
			t.Errorf("%q: %v, %v", text, a, err)
		}
		if again, err := ParseAck(a.String()); err != nil || again != a {
			t.Errorf("%q: %v, %v", a, again, err)
		}
	}
	for _, text := range []string{"0", "-1", "some", "1.5", " 1"} {
		if a, err := ParseAck(text); !errors.Is(err, ErrAck) {
			t.Errorf("%q: %v, %v", text, a, err)
		}
	}
	for hosts, majority := range []int{0, 1, 2, 2, 3, 3} {
		got, err := Majority.Of(hosts)
		if got != majority || (err != nil) != (hosts == 0) {
			t.Errorf("the majority of %d: %d, %v", hosts, got, err)
		}
	}
	if _, err := Ack(-3).Of(5); !errors.Is(err, ErrAck) {
		t.Error(err)
	}
}

// A write in order asks its first host alone: where that takes the record, all others are asked; where it holds another version,
// none is; where it fails or is overdue, all are.
func TestPutInOrder(t *testing.T) {
	hosts := []ID{"first", "second", "third"}
	other := Outcome{Other: version(9)}
	begin := func() *Put {
		p, err := NewPut(hosts, "", false, Majority, time.Minute, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Manner = Manner{Patient: true, InOrder: true}
		return p
	}
	asks := func(p *Put, now time.Duration, want ...ID) {
		t.Helper()
		var got []ID
		for s := p.Next(now); s.Do == Ask; s = p.Next(now) {
			got = append(got, s.Peer)
		}
		if !slices.Equal(got, want) {
			t.Errorf("at %v it asks %v, not %v", now, got, want)
		}
	}
	for name, then := range map[string]func(p *Put){
		"taken": func(p *Put) {
			p.Answered("first", Outcome{Held: true}, 0)
			asks(p, 1, "second", "third")
		},
		"lost": func(p *Put) {
			p.Answered("first", other, 0)
			asks(p, 1)
			if w, err := p.Result(); p.Next(1).Do != Over || !errors.Is(err, ErrOvertaken) || w.Taken() {
				t.Errorf("it ends with %+v, %v", w, err)
			}
		},
		"no host": func(p *Put) {
			p.Answered("first", Outcome{Elsewhere: true}, 0)
			asks(p, 1, "second", "third")
		},
		"failed": func(p *Put) {
			p.Failed("first", errors.New("away"), false, 1)
			asks(p, 1, "second", "third")
		},
		"overdue": func(p *Put) {
			if s := p.Next(Overdue - 1); s.Do != Wait || s.Until != Overdue {
				t.Errorf("it waits by %+v", s)
			}
			asks(p, Overdue, "second", "third")
			p.Answered("first", other, 0)
			if p.Next(Overdue).Do == Over {
				t.Error("it awaits no answer of hosts that may hold the record")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := begin()
			asks(p, 0, "first")
			asks(p, 0)
			then(p)
		})
	}
}

// A write that hears has its result once each host has answered, or is overdue, also where fewer are to hold the record.
func TestPutHears(t *testing.T) {
	begin := func() *Put {
		p, err := NewPut([]ID{"a", "b"}, "", false, 1, time.Minute, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Hears = true
		for p.Next(0).Do == Ask {
		}
		p.Answered("a", Outcome{Held: true}, 0)
		if s := p.Next(1); s.Do != Wait || s.Until != Overdue {
			t.Errorf("behind one answer of two: %+v", s)
		}
		return p
	}
	p := begin()
	if p.Next(Overdue).Do != Over {
		t.Error("it awaits a host that is overdue")
	}
	p = begin()
	p.Answered("b", Outcome{Other: version(9)}, 0)
	if w, err := p.Result(); p.Next(1).Do != Over || err != nil || len(w.Others) != 1 {
		t.Errorf("with both answers: %+v, %v", w, err)
	}
}

// What was sent to a host that failed then, and is found there replaced by a record that has seen it, may have been taken.
func TestReplacedAfterItFailed(t *testing.T) {
	p, err := NewPut([]ID{"a", "b"}, "", false, Majority, 10*time.Second, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Manner = Manner{Patient: true, InOrder: true, Itself: true}
	p.Failed(p.Next(0).Peer, errors.New("reset after it was sent"), true, 0)
	later := &dbadapter.Record{Version: dbadapter.Version{Clock: 9, Writer: 2}, Replaces: []dbadapter.Replaced{{Writer: 1, Clock: 5}}}
	for now := time.Duration(0); ; now += 10 * time.Millisecond {
		s := p.Next(now)
		switch {
		case s.Do == Ask && s.Peer == "b":
			p.Failed("b", errors.New("no connection"), false, now)
			continue
		case s.Do == Ask:
			p.Answered(s.Peer, Outcome{Held: true, Settled: true, Later: later}, now)
			continue
		case s.Do == Wait:
			continue
		}
		break
	}
	if w, err := p.Result(); !errors.Is(err, ErrOvertaken) || !w.Taken() {
		t.Errorf("it ends as %v, taken %t", err, w.Taken())
	}
}

// Where the first host has declined a write on a condition, and the others are too few, they are not asked: nothing is taken, and the
// record may be made anew.
func TestDeclinedByTheFirst(t *testing.T) {
	for hosts, asks := range map[int]int{2: 1, 3: 3} {
		p, err := NewPut([]ID{"a", "b", "c"}[:hosts], "", false, Majority, 10*time.Second, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Manner = Manner{Patient: true, InOrder: true, Itself: true}
		p.Answered(p.Next(0).Peer, Outcome{Declined: errors.New("too late")}, 0)
		for s := p.Next(0); s.Do == Ask; s = p.Next(0) {
			p.Answered(s.Peer, Outcome{Held: true, Settled: true}, 0)
		}
		if w, err := p.Result(); w.Requests != asks || (err == nil) != (hosts == 3) {
			t.Errorf("of %d hosts %d are asked: %v", hosts, w.Requests, err)
		}
	}
}

// A write on a condition asks hosts that lack their shard's records again, unless each majority of those of before has one that does not.
func TestPutAwaitsSettledHosts(t *testing.T) {
	for hosts, awaits := range map[int]int{1: 1, 2: 1, 3: 2, 5: 3} {
		p, err := NewPut([]ID{"a", "b", "c", "d", "e"}[:hosts], "", false, All, time.Minute, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Manner = Manner{Patient: true, Itself: true}
		for s := p.Next(0); s.Do == Ask; s = p.Next(0) {
			p.Answered(s.Peer, Outcome{Held: true}, 0)
		}
		asked := 0
		for s := p.Next(putPause); s.Do == Ask; s = p.Next(putPause) {
			if w, err := p.Result(); !errors.Is(err, ErrUnconfirmed) || w.Held != hosts {
				t.Errorf("with %d settled hosts of %d: %v, %d hold it", asked, hosts, err, w.Held)
			}
			asked++
			p.Answered(s.Peer, Outcome{Held: true, Settled: true}, putPause)
		}
		if w, err := p.Result(); err != nil || asked != awaits || !w.Settled {
			t.Errorf("of %d hosts %d are settled before it ends: %v", hosts, asked, err)
		}
	}
}
