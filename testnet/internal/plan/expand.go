package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

// Expand is the plan with the events that its random lines stand for. It draws each
// event from the seed, the time of its line and its number. So a line with fewer writes
// has a part of the same writes.
func (p *Plan) Expand() Plan {
	out := *p
	out.Events = nil
	for i := range p.Events {
		e := &p.Events[i]
		if e.Verb != Expand {
			out.Events = append(out.Events, *e)
			continue
		}
		out.Events = append(out.Events, p.expand(e)...)
	}
	slices.SortStableFunc(out.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return out
}

// draw is the randomness of one event.
type draw struct{ *rand.Rand }

func (p *Plan) draw(purpose string, at time.Duration, n int) *draw {
	h := sha256.New()
	h.Write([]byte(purpose))
	for _, v := range []uint64{p.Seed, uint64(at), uint64(n)} {
		_ = binary.Write(h, binary.BigEndian, v) // a hash takes everything
	}
	return &draw{rand.New(rand.NewChaCha8([32]byte(h.Sum(nil))))}
}

// within draws a time from 0 to d, in whole milliseconds.
func (d *draw) within(span time.Duration) time.Duration {
	return time.Duration(d.Int64N(span.Milliseconds()+1)) * time.Millisecond
}

func (p *Plan) expand(e *Event) (made []Event) {
	r := &e.Random
	made = append(made, p.gets(e)...)
	for n := 0; n < r.Writes; {
		w := p.write(e, n, r.Writes-n)
		n += max(1, int(w.Amount))
		made = append(made, w)
	}
	for n := range r.Syncs {
		d := p.draw("sync", e.At, n)
		s := Event{At: e.At + d.within(e.For), Verb: syncs[d.IntN(len(syncs))]}
		s.Node, s.Peer = d.pair(p.Nodes)
		if s.Verb == SyncPrefix {
			s.Key = "k" + strconv.Itoa(d.IntN(10))
		}
		made = append(made, s)
	}
	for n := range r.Members {
		made = append(made, p.change(e, n))
	}
	for n := range r.Asks {
		made = append(made, p.asking(e, n)...)
	}
	for n := range r.Watches {
		made = append(made, p.watching(e, n)...)
	}
	verbs := r.Profile.drawn(p.draw("profile", e.At, 0))
	for n := range r.Faults {
		if len(verbs) > 0 {
			made = append(made, p.fault(e, verbs, n)...)
		}
	}
	slices.SortStableFunc(made, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return made
}

// syncs are the kinds of sync to draw from.
var syncs = []Verb{Sync, Sync, Pull, Push, Diff, SendAll, SyncPrefix}

func (r *Random) size() int { return cmp.Or(r.Size, DefaultSize) }
func (r *Random) keys() int { return cmp.Or(r.Keys, DefaultKeys) }

// write draws write n of a line; a batch is left that many more.
func (p *Plan) write(e *Event, n, left int) Event {
	if p.Shards > 0 {
		return p.shardWrite(e, n, left)
	}
	d := p.draw("write", e.At, n)
	w := Event{At: e.At + d.within(e.For), Node: d.IntN(p.Nodes)}
	// The smaller of two draws: some keys get many more writes than others, as
	// in real data, and several nodes write them at once.
	keys := e.Random.keys()
	w.Key = "k" + strconv.Itoa(min(d.IntN(keys), d.IntN(keys)))
	switch kind := d.IntN(20); {
	case kind < 3:
		w.Verb = Del
	case kind < 5:
		w.Verb = Touch
	case kind < 7 && min(left, keys) > 1:
		w.Verb, w.Key = Batch, "k"
		w.Amount = int64(1 + d.IntN(min(left, keys, maxDrawnBatch)))
		w.Size = d.size(e.Random.size())
	case kind < 9:
		w.Verb = Dated
		w.Size = d.size(e.Random.size())
	case kind < 11:
		// Some expire while the run lasts, some before they have gone round.
		w.Verb = Expiring
		w.Size = d.size(e.Random.size())
		w.For = time.Duration(d.scale(max(1, e.For.Milliseconds()))) * time.Millisecond
	default:
		w.Verb = Put
		w.Size = d.size(e.Random.size())
	}
	return w
}

const maxDrawnBatch = 8

// size draws short values more often than long ones, and empty ones at times.
func (d *draw) size(most int) int {
	return int(d.scale(int64(most))) - d.IntN(2)*d.IntN(2)
}

// scale draws a number from 1 to most, each length in bits about as often. It
// uses integers only: logarithms differ between processors in their last bit, and
// a seed must draw the same everywhere.
func (d *draw) scale(most int64) int64 {
	if most < 1 {
		return 1
	}
	least := int64(1) << d.IntN(bits.Len64(uint64(most)))
	return min(least+d.Int64N(least), most)
}

func (d *draw) pair(nodes int) (a, b int) {
	a = d.IntN(nodes)
	b = d.IntN(nodes - 1)
	if b >= a {
		b++
	}
	return a, b
}

// fault draws fault n of a line, with what ends it.
func (p *Plan) fault(e *Event, verbs []Verb, n int) []Event {
	d := p.draw("fault", e.At, n)
	f := Event{At: e.At + d.within(e.For), Verb: verbs[d.IntN(len(verbs))], Node: d.IntN(p.Nodes)}
	lasts := max(time.Millisecond, min(d.within(e.For/4), e.At+e.For-f.At))
	end := Event{At: f.At + lasts, Node: f.Node}
	switch f.Verb {
	case Cut, Loss, Replay, Partition, FalsePeel, ShortCheck:
		if p.Nodes == 1 {
			return nil // there is no other node
		}
	}
	switch f.Verb {
	case Cut, Loss, Replay:
		f.Node, f.Peer = d.pair(p.Nodes)
		end.Verb, end.Node, end.Peer = Heal, f.Node, f.Peer
		if f.Verb == Loss {
			f.Amount = int64(1 + d.IntN(500))
		}
		if f.Verb == Replay {
			return []Event{f}
		}
	case Partition:
		f.Node, f.Key = 0, d.halves(p.Nodes)
		end.Node, end.Verb = 0, HealAll
	case Crash, CrashAt, CrashAnswering:
		end.Verb = Start
		if f.Verb == CrashAt {
			f.Step = reconcile.Step(d.IntN(len(reconcile.Steps())))
		}
	case FlipCell, FlipSum, Phantom: // low numbers more often: what syncs of small sets read
		f.Amount = d.scale(1<<24) - 1
		return []Event{f}
	case FalsePeel, ShortCheck:
		f.Node, f.Peer = d.pair(p.Nodes)
		return []Event{f}
	case Freeze, StopClock, Full:
		f.For = lasts
		return []Event{f}
	case Skew:
		// Backwards as often as ahead, from a few milliseconds to three times the
		// skew that the namespace allows, or to hours.
		most := 3 * p.Skew
		if d.IntN(4) == 0 {
			most = 12 * time.Hour
		}
		f.Amount = d.scale(most.Milliseconds()) * int64(1-2*d.IntN(2))
		end.Verb, end.Amount = Skew, -f.Amount
		if d.IntN(3) == 0 && p.Shards == 0 {
			return []Event{f, end, {At: end.At, Verb: Restamp, Node: f.Node}}
		}
	case Restore, RestoreBackup:
		keep := Event{At: f.At, Verb: Copy, Node: f.Node}
		end.Verb = f.Verb
		return []Event{keep, end}
	case Flip:
		// A copy repairs a damaged node.
		keep := Event{At: f.At, Verb: Copy, Node: f.Node}
		f.At += lasts / 2
		f.Amount = int64(d.Uint32())
		end.Verb = Restore
		return []Event{keep, f, end}
	case Old:
		end.Verb = New
	}
	return []Event{f, end}
}

// halves draws the two sides of a partition.
func (d *draw) halves(nodes int) string {
	order := d.Perm(nodes)
	at := 1 + d.IntN(nodes-1)
	return groupText([][]int{order[:at], order[at:]})
}

// Generate makes a plan of so many nodes by the seed alone; 0: of 2 to 7, as the seed says.
func Generate(seed uint64, profile Profile, nodes int) Plan {
	p := Plan{Name: "seed-" + strconv.FormatUint(seed, 10), Seed: seed, Skew: DefaultSkew, Settle: DefaultSettle}
	d := p.draw("plan", 0, 0)
	p.Nodes = 2 + d.IntN(6)
	cut := profile == Shards || profile == Writer
	if cut {
		p.Nodes = max(p.Nodes, 3)
	}
	if nodes != 0 {
		p.Nodes = nodes
	}
	p.Every = 2*time.Second + d.within(6*time.Second)
	p.Signed = d.IntN(4) == 0
	moving := profile == Members || profile == Mixed && d.IntN(3) == 0
	if moving {
		p.Signed = true // without signatures a demoted writer's last records reach no one
		p.Alone = d.IntN(2) == 0
	}
	p.Net = Net{Delay: time.Millisecond + d.within(50*time.Millisecond), Jitter: d.within(100 * time.Millisecond)}
	if profile != Calm && d.IntN(2) == 0 {
		p.Net.Loss = float64(d.IntN(50)) / 1000
		p.Net.Duplicate = float64(d.IntN(50)) / 1000
		p.Net.Reorder = float64(d.IntN(50)) / 1000
	}
	p.Push = profile == Live
	if profile == Ranges {
		if r := p.draw("ranges", 0, 0); r.IntN(3) == 0 {
			p.Checksums = 1 + r.IntN(3)
		}
		if r := p.draw("ground", 0, 0); r.IntN(4) == 0 {
			p.Ground = "g"
		}
	}
	line := Event{Verb: Expand, At: time.Second, For: 20*time.Second + d.within(40*time.Second)}
	line.Random = Random{
		Writes:  20 + d.IntN(180),
		Keys:    1 + d.IntN(100),
		Size:    d.size(5000),
		Syncs:   d.IntN(20),
		Faults:  2 + d.IntN(20),
		Profile: profile,
	}
	if line.Random.Size == 0 {
		line.Random.Size = 1
	}
	if profile == Calm {
		line.Random.Faults = 0
	}
	if moving {
		line.Random.Members = 1 + d.IntN(5*p.Nodes)
	}
	line.Random.Asks = p.asks(profile)
	if profile == Live {
		line.Random.Watches, p.Log = p.watches()
	}
	if cut {
		p.shards(&line)
	}
	var joins []Event
	if p.Alone {
		joins = p.gathering(d, 2*line.At)
	}
	if d.IntN(3) == 0 {
		// The same in slow motion: checksums tell apart versions that are some
		// minutes apart, and sessions then offer large values before they send them.
		const slower = 12
		p.Every, p.Settle, line.For = slower*p.Every, slower*p.Settle, slower*line.For
		line.Random.Size += 2000
	}
	rests := profile == Writer && p.writer(&line)
	if cut {
		line.At = placed + 8*p.Every
		joins = p.comings(&line)
	}
	p.Events = append(joins, line)
	if p.Ground != "" {
		p.Events = append(p.Events, p.grinding(&line)...)
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	p = p.Expand()
	if rests {
		p.rests(&line)
	}
	return p
}
