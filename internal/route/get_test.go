package route

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// A read does what its twin does, asks each candidate once but where it is busy, and at
// most two at once.
func TestGetAgainstTwin(t *testing.T) {
	var hedges, requests, sure, unsure, unavailable int
	each(t, 4000, func(t *testing.T, r *rand.Rand) {
		var times Times
		w := &world{}
		for range r.IntN(4) * 20 {
			times.Took(peerID(r.IntN(6)), delay(r), w.now)
		}
		var candidates []Candidate
		for i := range r.IntN(6) {
			candidates = append(candidates, Candidate{peerID(i), r.IntN(5) == 0, r.IntN(4) > 0})
		}
		o := GetOptions{Deadline: time.Duration(1+r.IntN(8)) * time.Second, All: r.IntN(5) == 0, Unheard: r.IntN(5) == 0}
		if r.IntN(3) == 0 {
			o.Here = &Answer{Host: r.IntN(4) > 0, Settled: r.IntN(3) > 0, Current: r.IntN(2) > 0, Record: version(r.IntN(3))}
		}
		get, other := NewGet(&times, candidates, o, w.now), &twin{candidates: candidates, o: o}
		asked := map[ID]int{}
		mayAsk := func(peer ID) bool { return asked[peer] == 0 }
		for {
			step := get.Next(w.now)
			if want := other.over(w.now); want != (step.Do == Over) {
				t.Fatalf("%v: over %t, want %t, after %+v", w.now, step.Do == Over, want, other.log)
			}
			if step.Do == Over {
				break
			}
			if step.Do == Wait {
				if step.Until <= w.now {
					t.Fatalf("%v: waits until %v", w.now, step.Until)
				}
				w.next(step.Until)
				continue
			}
			peer := step.Peer
			last, _ := other.last(peer)
			if !mayAsk(peer) && (last == nil || !last.busy) {
				t.Fatalf("%s is asked again", peer)
			}
			asked[peer]++
			other.log = append(other.log, said{at: w.now, peer: peer, asked: true})
			if n := other.beside(w.now); n > 2 && !o.All {
				if last == nil { // one that was busy comes back beside others
					t.Fatalf("%d requests at once", n)
				}
			}
			w.after(delay(r), func() {
				s := said{at: w.now, peer: peer}
				switch r.IntN(6) {
				case 0:
					s.busy = true
					get.Failed(peer, errHost, true, w.now)
				case 1:
					get.Failed(peer, errHost, false, w.now)
				default:
					s.answer = &Answer{Host: r.IntN(5) > 0, Settled: r.IntN(3) > 0, OtherList: r.IntN(4) == 0, Record: version(r.IntN(4))}
					s.answer.Current = r.IntN(2) > 0
					if !s.answer.Host {
						s.answer.Layout.Epoch = r.Uint64N(3)
						s.answer.Holds = r.IntN(2) > 0
					}
					if r.IntN(4) == 0 {
						s.answer.Floor = dbadapter.Timestamp(r.IntN(4))
					}
					get.Answered(peer, *s.answer, w.now)
				}
				other.log = append(other.log, s)
			})
		}
		if w.now > o.Deadline {
			t.Fatalf("it ended at %v, after %v", w.now, o.Deadline)
		}
		found, err := get.Result(w.now)
		version, isSure, answered := other.result()
		if number(found.Record) != version || found.Sure != isSure || (err == nil) != answered || err != nil && !errors.Is(err, ErrUnavailable) {
			t.Fatalf("%+v, %v; want version %d, sure %t, answered %t", found, err, version, isSure, answered)
		}
		for _, c := range candidates {
			last, _ := other.last(c.ID)
			if gone := c.Former && last != nil && last.answer != nil && handedOver(last.answer); gone != slices.Contains(found.Gone, c.ID) {
				t.Fatalf("%s: handed over %t, and gone are %v", c.ID, gone, found.Gone)
			}
		}
		if found.Sure != (found.Doubt == "") {
			t.Fatalf("sure %t, and of why not: %q", found.Sure, found.Doubt)
		}
		hedges, requests = hedges+found.Hedges, requests+found.Requests
		switch {
		case err != nil:
			unavailable++
		case found.Sure:
			sure++
		default:
			unsure++
		}
	})
	t.Logf("%d requests, %d hedges; %d sure, %d not, %d unavailable", requests, hedges, sure, unsure, unavailable)
	if min(hedges, sure, unsure, unavailable) == 0 {
		t.Error("a case did not come")
	}
}

// answering runs a read against hosts that answer after fixed delays.
func answering(times *Times, w *world, delays map[ID]time.Duration, answers map[ID]Answer) (Found, error) {
	var candidates []Candidate
	for id := range delays {
		candidates = append(candidates, Candidate{ID: id, Connected: true})
	}
	slices.SortFunc(candidates, func(a, b Candidate) int { return int(a.ID[4]) - int(b.ID[4]) })
	get := NewGet(times, candidates, GetOptions{Deadline: w.now + 10*time.Second}, w.now)
	live := true
	for {
		step := get.Next(w.now)
		switch step.Do {
		case Over:
			live = false
			return get.Result(w.now)
		case Wait:
			w.next(step.Until)
		case Ask:
			w.after(delays[step.Peer], func() {
				if live {
					get.Answered(step.Peer, answers[step.Peer], w.now)
				}
			})
		}
	}
}

// Of two hosts the nearer one is asked, once both are known; one that becomes slow costs a
// hedge or two, and is then asked last; when all are slow, hedges are few.
func TestNearestIsAsked(t *testing.T) {
	var times Times
	w := &world{}
	near, far := peerID(1), peerID(2)
	delays := map[ID]time.Duration{near: 2 * time.Millisecond, far: 40 * time.Millisecond}
	answer := Answer{Host: true, Settled: true, Current: true, Record: version(1)}
	answers := map[ID]Answer{near: answer, far: answer}
	run := func(n int) (of map[ID]int, requests, hedges int) {
		of = map[ID]int{}
		for range n {
			found, err := answering(&times, w, delays, answers)
			if err != nil || !found.Sure {
				t.Fatal(found, err)
			}
			for _, h := range found.Heard {
				if h.Answer != nil {
					of[h.Peer]++
				}
			}
			requests, hedges = requests+found.Requests, hedges+found.Hedges
			w.now += 10 * time.Millisecond
		}
		return of, requests, hedges
	}
	if of, requests, hedges := run(1000); of[far] > 1 || requests > 1000+hedges {
		t.Errorf("both up: %v, %d requests, %d hedges", of, requests, hedges)
	}
	delays[near] = 400 * time.Millisecond
	if of, requests, _ := run(1000); of[far] < 900 || requests > 1100 {
		t.Errorf("the near one has become slow: %v, %d requests", of, requests)
	}
	delays[near], delays[far] = 700*time.Millisecond, 700*time.Millisecond
	if _, requests, hedges := run(1000); requests > 1000+1000/16 {
		t.Errorf("both slow: %d requests, %d hedges", requests, hedges)
	}
}

// An answer that is not sure waits for the others, but not for long.
func TestUnsureAnswerWaitsForOthers(t *testing.T) {
	one, two := peerID(1), peerID(2)
	absent := Answer{Host: true}
	for name, c := range map[string]struct {
		two   Answer
		delay time.Duration
		want  int
		sure  bool
		least time.Duration
		most  time.Duration
	}{
		"a settled one has it":                              {Answer{Host: true, Settled: true, Current: true, Record: version(3)}, 100 * time.Millisecond, 3, true, 0, time.Second},
		"a settled one has it not":                          {Answer{Host: true, Settled: true, Current: true}, 100 * time.Millisecond, 0, true, 0, time.Second},
		"both settled, one hides it":                        {Answer{Host: true, Settled: true, Current: true, Record: version(3)}, time.Millisecond, 3, true, 0, time.Second},
		"both settled, and not current":                     {Answer{Host: true, Settled: true, Record: version(3)}, 100 * time.Millisecond, 3, true, 0, time.Second},
		"both settled, by another list":                     {Answer{Host: true, Settled: true, OtherList: true, Record: version(3)}, 100 * time.Millisecond, 3, false, 0, time.Second},
		"one settled, and the other one says nothing":       {Answer{}, time.Hour, 0, false, Overdue, Overdue + time.Second},
		"another unsettled one":                             {Answer{Host: true, Record: version(3)}, 100 * time.Millisecond, 3, false, 0, time.Second},
		"a former host has it":                              {Answer{Record: version(3), Layout: Layout{Epoch: 4}}, 100 * time.Millisecond, 3, false, 0, time.Second},
		"the other one says nothing":                        {Answer{}, time.Hour, 0, false, Overdue, Overdue + time.Second},
		"settled, and the other one says nothing":           {Answer{}, time.Hour, 0, false, 10 * time.Second, 10 * time.Second},
		"settled, and a slow one, which is settled, has it": {Answer{Host: true, Settled: true, Current: true, Record: version(3)}, 6 * time.Second, 3, true, 6 * time.Second, 7 * time.Second},
	} {
		var times Times
		w := &world{}
		absent.Settled = strings.Contains(name, "settled") && name != "a settled one has it" && !strings.Contains(name, "unsettled")
		absent.Current = name == "both settled, one hides it" || strings.HasPrefix(name, "settled")
		found, err := answering(&times, w, map[ID]time.Duration{one: time.Millisecond, two: c.delay}, map[ID]Answer{one: absent, two: c.two})
		if err != nil || number(found.Record) != c.want || found.Sure != c.sure || w.now < c.least || w.now > c.most {
			t.Errorf("%s: %+v, %v, after %v", name, found, err, w.now)
		}
		if want := c.two.Layout.Epoch; found.Moved.Epoch != want {
			t.Errorf("%s: a layout of epoch %d, want %d", name, found.Moved.Epoch, want)
		}
	}
}

// Where each host takes longer than a request is overdue, few are asked twice; and one that
// answers no more is asked beside others for a while only.
func TestOverdueIsBounded(t *testing.T) {
	answer := Answer{Host: true, Settled: true, Current: true, Record: version(1)}
	answers := map[ID]Answer{peerID(1): answer, peerID(2): answer, peerID(3): answer}
	run := func(delays map[ID]time.Duration) (requests int) {
		var times Times
		w := &world{}
		for range 1000 {
			found, err := answering(&times, w, delays, answers)
			if err != nil || !found.Sure {
				t.Fatal(found, err)
			}
			requests += found.Requests
			w.now += 10 * time.Millisecond
		}
		return requests
	}
	slow := 1100 * time.Millisecond
	if n := run(map[ID]time.Duration{peerID(1): slow, peerID(2): slow, peerID(3): slow}); n > 1000+1000/4 {
		t.Errorf("all are slow: %d requests", n)
	}
	near := time.Millisecond
	if n := run(map[ID]time.Duration{peerID(1): time.Hour, peerID(2): near, peerID(3): near}); n > 1000+window {
		t.Errorf("one is silent: %d requests", n)
	}
}

// A host that goes on to deliver is awaited beyond the deadline, and no other one is asked
// beside it; once it stops, the next one is.
func TestGetAwaitsWhatIsDelivered(t *testing.T) {
	const patience = 10 * time.Second
	var times Times
	g := NewGet(&times, []Candidate{{ID: peerID(0)}, {ID: peerID(1)}}, GetOptions{Deadline: patience, Patience: patience}, 0)
	now := time.Duration(0)
	if step := g.Next(now); step.Do != Ask || step.Peer != peerID(0) {
		t.Fatalf("first %+v", step)
	}
	for now = hedgeUnknown / 2; now < 6*patience; now += Abandoned - 1 {
		if step := g.Next(now); step.Do != Wait {
			t.Fatalf("at %v, while the host delivers: %+v", now, step)
		}
		g.Delivers(peerID(0), now)
	}
	stopped := now - Abandoned + 1
	for now = stopped; ; {
		step := g.Next(now)
		if step.Do == Ask {
			if step.Peer != peerID(1) || now != stopped+Abandoned {
				t.Errorf("the host has stopped at %v; at %v %+v", stopped, now, step)
			}
			break
		}
		if step.Do != Wait || step.Until <= now {
			t.Fatalf("at %v %+v", now, step)
		}
		now = step.Until
	}
	if step := g.Next(stopped + patience); step.Do != Over {
		t.Errorf("nothing has come for %v: %+v", patience, step)
	}
}
