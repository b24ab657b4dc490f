package bodies

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

var (
	histories = flag.Int("histories", 2000, "of TestAdversary")
	firstSeed = flag.Uint64("first", 0, "the seed of the first history")
)

// A world has a key with three hosts of its record, and one host of its bodies. Clocks are off by up
// to five minutes. Syncs of bodies, several hosts of one, and losses are not in it.
type world struct {
	random    *rand.Rand
	now       time.Time
	version   int
	hosts     [3]host
	sent      map[byte]time.Time // of the bodies that are there
	collected map[byte]bool
	bodies    byte
	writers   []*writer
	syncs     []syncing
	asking    map[byte]map[int]bool // who has denied the body in this round
	rounds    map[byte]*Rounds[byte, int]
	asked     map[byte]time.Time // when the round ended
	story     []string
	fault     string
}

type record struct {
	version int
	body    byte // 0: a tombstone
	sent    time.Time
	seen    []int
}

type host struct {
	record *record
	kept   []byte
	skew   time.Duration
}

type writer struct {
	record    // as it is to be offered
	confirmed int
	stopped   bool // its process is, or what it sends is late: it gives up too late
}

type syncing struct {
	a, b  int
	of    [2]*record
	began time.Time
}

const (
	longestSync = 5 * time.Minute  // between two rounds is more
	patience    = 10 * time.Minute // (3)
)

func (r *record) pointer() *Pointer {
	if r == nil || r.body == 0 {
		return nil
	}
	return &Pointer{Salt: [16]byte{r.body}, Sent: dbadapter.TimestampAt(r.sent)}
}

func (r *record) clone() *record {
	if r == nil {
		return nil
	}
	c := *r
	c.seen = slices.Clone(r.seen)
	return &c
}

func (w *world) say(format string, args ...any) {
	if len(w.story) == cap(w.story) { // the last lines are enough
		w.story = append(make([]string, 0, 128), w.story[max(0, len(w.story)-64):]...)
	}
	w.story = append(w.story, fmt.Sprintf("%s  %s", w.now.Format("15:04"), fmt.Sprintf(format, args...)))
}

func (w *world) next() int { w.version++; return w.version }

// take has a host take what it is given, if that is later. What loses unseen goes to the kept log.
func (w *world) take(at int, r *record) bool {
	h := &w.hosts[at]
	if h.record != nil && h.record.version >= r.version {
		return false
	}
	if o := h.record; o != nil && o.body != 0 && o.body != r.body && !slices.Contains(r.seen, o.version) {
		h.kept = append(h.kept, o.body)
	}
	h.record = r.clone()
	return true
}

// offer is a writer's record at a host.
func (w *world) offer(wr *writer, at int) {
	h := &w.hosts[at]
	held := h.record
	later := held != nil && held.version >= wr.version
	switch unseen := held != nil && !slices.Contains(wr.seen, held.version); {
	case !later && w.refuses(wr, h):
		w.say("host %d takes no record of body %d any more", at, wr.body)
	case later || unseen: // the record is made anew, of the same body
		wr.seen = append(append(wr.seen, held.seen...), held.version)
		slices.Sort(wr.seen)
		wr.seen = slices.Compact(wr.seen)
		wr.version = w.next()
	default:
		w.take(at, &wr.record)
		wr.confirmed++
		w.say("host %d takes record %d of body %d", at, wr.version, wr.body)
	}
}

func (w *world) refuses(wr *writer, h *host) bool {
	return w.fault != "no limit" && !MayTake(wr.pointer(), h.record.pointer(), w.now.Add(h.skew))
}

func (w *world) names(at int, body byte) bool {
	h := &w.hosts[at]
	return h.record != nil && h.record.body == body || w.fault != "kept logs are not asked" && slices.Contains(h.kept, body)
}

func (w *world) ask(body byte, at int) {
	if w.names(at, body) {
		delete(w.asking, body)
		delete(w.rounds, body)
		return
	}
	if w.asking[body][at] = true; len(w.asking[body]) < len(w.hosts) {
		return
	}
	delete(w.asking, body)
	w.asked[body] = w.now
	if gone := w.rounds[body].Denied(body, 0); gone || w.fault == "one round" {
		delete(w.rounds, body)
		delete(w.sent, body)
		w.collected[body] = true
		w.say("body %d is collected", body)
	}
}

// begin begins a round about a body.
func (w *world) begin(body byte) {
	old := w.fault == "any age" || MayCollect(dbadapter.TimestampAt(w.sent[body]), w.now)
	if soon := w.now.Sub(w.asked[body]) <= longestSync && w.fault != "rounds at once"; w.asking[body] != nil || !old || soon {
		return
	}
	if w.rounds[body] == nil {
		w.rounds[body] = &Rounds[byte, int]{}
	}
	w.rounds[body].Next()
	w.asking[body] = map[int]bool{}
}

// some is a key of a map, drawn so that a seed gives the same one again.
func some[V any](r *rand.Rand, m map[byte]V) byte {
	var keys []byte
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys[r.IntN(len(keys))]
}

func (w *world) step() {
	r := w.random
	w.now = w.now.Add(time.Duration([]int{0, 0, 0, 1, 1, 3}[r.IntN(6)]) * time.Minute)
	at := r.IntN(3)
	h := &w.hosts[at]
	switch p := r.IntN(100); {
	case p < 3:
		if w.bodies == 255 {
			return
		}
		w.bodies++
		w.sent[w.bodies] = w.now
		w.writers = append(w.writers, &writer{record: record{version: w.next(), body: w.bodies, sent: w.now}, stopped: r.IntN(4) == 0})
		w.say("body %d is sent", w.bodies)
	case p < 5:
		t := &record{version: w.next()}
		if h.record != nil {
			t.seen = []int{h.record.version}
		}
		w.take(at, t)
		w.say("host %d deletes", at)
	case p < 35 && len(w.writers) > 0:
		i := r.IntN(len(w.writers))
		wr := w.writers[i]
		if wr.confirmed == 3 || !wr.stopped && w.fault != "no limit" && w.now.Sub(wr.sent) > patience || r.IntN(20) == 0 {
			w.writers = slices.Delete(w.writers, i, i+1)
			return
		}
		w.offer(wr, at)
	case p < 50:
		other := (at + 1 + r.IntN(2)) % 3
		w.syncs = append(w.syncs, syncing{at, other, [2]*record{h.record, w.hosts[other].record}, w.now})
	case p < 62 && len(w.syncs) > 0:
		i := r.IntN(len(w.syncs))
		s := w.syncs[i]
		w.syncs = slices.Delete(w.syncs, i, i+1)
		if w.now.Sub(s.began) > longestSync {
			return
		}
		for i, to := range []int{s.b, s.a} {
			if s.of[i] != nil && w.take(to, s.of[i]) {
				w.say("a sync gives record %d to host %d", s.of[i].version, to)
			}
		}
	case p < 64 && h.record != nil: // adoption: the same body under a later version
		h.record = &record{w.next(), h.record.body, h.record.sent, append(slices.Clip(h.record.seen), h.record.version)}
	case p < 66 && len(h.kept) > 0: // a person forgets a conflict
		h.kept = h.kept[1:]
	case p < 70 && len(w.sent) > 0:
		body := some(r, w.sent)
		w.begin(body)
		for i := 0; i < 6 && w.fault == "rounds at once" && w.rounds[body] != nil; i++ {
			w.begin(body)
			w.ask(body, i%3)
		}
	case len(w.asking) > 0:
		w.ask(some(r, w.asking), at)
	}
}

// broken says which body was collected although the latest record or a kept log names it.
func (w *world) broken() string {
	var latest *record
	for i := range w.hosts {
		h := &w.hosts[i]
		if h.record != nil && (latest == nil || h.record.version > latest.version) {
			latest = h.record
		}
		for _, body := range h.kept {
			if w.collected[body] {
				return fmt.Sprintf("the kept log of host %d names body %d, which was collected", i, body)
			}
		}
	}
	if latest != nil && w.collected[latest.body] {
		return fmt.Sprintf("the latest record names body %d, which was collected", latest.body)
	}
	return ""
}

func history(seed uint64, fault string) (w *world, broken string) {
	r := rand.New(rand.NewPCG(seed, 1))
	w = &world{random: r, now: time.UnixMilli(1 << 40).UTC(), sent: map[byte]time.Time{}, collected: map[byte]bool{}, asking: map[byte]map[int]bool{}, rounds: map[byte]*Rounds[byte, int]{}, asked: map[byte]time.Time{}, fault: fault}
	for i := range w.hosts {
		w.hosts[i].skew = time.Duration(r.IntN(11)-5) * time.Minute
	}
	for range 1500 {
		w.step()
		if broken = w.broken(); broken != "" {
			return w, broken
		}
	}
	return w, ""
}

// No history of random events makes the rules collect a body that is named; without any one of
// them, some does.
func TestAdversary(t *testing.T) {
	collected := 0
	for seed := *firstSeed; seed < *firstSeed+uint64(*histories); seed++ {
		w, broken := history(seed, "")
		if broken != "" {
			t.Fatalf("-first %d -histories 1: %s\n%s", seed, broken, w.end())
		}
		collected += len(w.collected)
	}
	if t.Logf("%d bodies were collected", collected); collected < *histories {
		t.Errorf("only %d bodies were collected: the world is too quiet", collected)
	}
	for _, fault := range []string{"one round", "rounds at once", "any age", "kept logs are not asked", "no limit"} {
		found := false
		for seed := uint64(0); seed < 3000 && !found; seed++ {
			_, broken := history(seed, fault)
			found = broken != ""
		}
		if !found {
			t.Errorf("%s: nothing breaks", fault)
		}
	}
}

func (w *world) end() (text string) {
	for _, line := range w.story[max(0, len(w.story)-40):] {
		text += line + "\n"
	}
	return text
}
