package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
)

// row is what one structure took at one point.
type row struct {
	Structure string
	Cannot    string  `json:",omitempty"` // why it does not serve the point
	BitsAKey  float64 // that the heap grew by
	// Nanoseconds a key, of each repeat.
	Build, Hit, Miss, HitBatch, MissBatch []float64

	Held    int // keys that were asked for after the build
	Wrong   int // of these, answered with another value or not found
	Several int // of these, answered with more than one value

	Strangers int // asked for
	Found     int // of these
	Planned   float64
}

const (
	// lookups is how many keys a repeat asks for, at least.
	lookups = 200_000
	// Of filters for each value, all of which are asked, so many answers are timed and
	// checked at most.
	timedAnswers   = 1 << 20
	checkedAnswers = 1 << 27
	// strangers is how many the rate is of, at least, and that with 400 false positives has a
	// standard deviation of a twentieth.
	leastStrangers, mostStrangers, wantFound = 1_000_000, 10_000_000, 400
)

// asks is how many of n look-ups a structure is given if it may give so many answers.
func (p point) asks(b *built, n, answers int) int {
	if b.among == nil {
		return n
	}
	return min(n, max(500, answers/p.Values))
}

// measure builds and asks all structures in turns.
func measure(p point, repeats int, seed uint64) ([]row, error) {
	random := rand.New(rand.NewPCG(seed, uint64(p.Keys)))
	t := &task{point: p, keys: distinct(random, p.Keys), values: make([]uint64, p.Keys), seed: random.Uint64()}
	for i := range t.values {
		t.values[i] = random.Uint64N(uint64(p.Values))
	}
	strangers := make([]uint64, min(p.Keys, lookups))
	for i := range strangers {
		strangers[i] = random.Uint64()
	}
	rows := make([]row, len(kinds))
	for turn := range repeats {
		for i, k := range kinds {
			r := &rows[i]
			r.Structure = k.name
			if r.Cannot != "" {
				continue
			}
			if err := r.turn(turn, k, t, strangers); err != nil {
				return nil, fmt.Errorf("%s: %w", k.name, err)
			}
		}
	}
	return rows, nil
}

// turn is one repeat of one structure. The first one counts, too.
func (r *row) turn(turn int, k kind, t *task, strangers []uint64) error {
	var b *built
	var err error
	before := heap()
	// Small builds are repeated: the system's clock of the processor is coarse.
	times := max(1, min(20, lookups/t.Keys))
	begin := processorTime()
	for range times {
		b, err = k.build(t)
		if why := cannot(""); errors.As(err, &why) {
			r.Cannot = err.Error()
			return nil
		}
		if err != nil {
			return err
		}
	}
	r.Build = append(r.Build, float64(processorTime()-begin)/float64(times*t.Keys))
	if turn == 0 {
		r.BitsAKey = 8 * float64(heap()-before) / float64(t.Keys)
		r.count(b, t)
	}
	runtime.GC() // what the build left is not of the look-ups' time
	n := t.asks(b, lookups, timedAnswers)
	held := t.keys[:min(n, t.Keys)]
	missed := strangers[:min(n, len(strangers))]
	for _, way := range []struct {
		to   *[]float64
		ask  func([]uint64) int
		keys []uint64
	}{{&r.Hit, b.single, held}, {&r.Miss, b.single, missed}, {&r.HitBatch, b.batch, held}, {&r.MissBatch, b.batch, missed}} {
		begin, asked, found := processorTime(), 0, 0
		for asked < n {
			found += way.ask(way.keys)
			asked += len(way.keys)
		}
		*way.to = append(*way.to, float64(processorTime()-begin)/float64(asked))
		runtime.KeepAlive(found)
	}
	runtime.KeepAlive(b.keep)
	return nil
}

// count asks for held keys and strangers.
func (r *row) count(b *built, t *task) {
	r.Held = t.asks(b, t.Keys, checkedAnswers)
	for i, k := range t.keys[:r.Held] {
		v, n := b.answer(k)
		switch {
		case n > 1:
			r.Several++
			if b.among == nil || !b.among(k, t.values[i]) {
				r.Wrong++
			}
		case n == 0 || v != t.values[i]:
			r.Wrong++
		}
	}
	r.Planned = b.planned
	r.Strangers = t.asks(b, min(mostStrangers, max(leastStrangers, int(wantFound/t.rate()))), checkedAnswers)
	random := rand.New(rand.NewPCG(t.seed, 7))
	for range r.Strangers {
		if _, n := b.answer(random.Uint64()); n == 1 || n > 1 && b.among != nil {
			r.Found++
		}
	}
}

// rate is the measured rate of false positives.
func (r *row) rate() float64 { return float64(r.Found) / float64(max(1, r.Strangers)) }

// interval is where the measured rate is in all but one of 16,000 runs, if the structure
// has the rate that it plans: four standard deviations, and a twentieth for the filters
// of which each has a rate of its own.
func (r *row) interval() (low, high float64) {
	half := 4*math.Sqrt(r.Planned*(1-r.Planned)/float64(max(1, r.Strangers))) + r.Planned/20
	return max(0, r.Planned-half), r.Planned + half
}

func (r *row) asPlanned() bool {
	low, high := r.interval()
	return low <= r.rate() && r.rate() <= high
}

// distinct is n keys, no two of them the same.
func distinct(random *rand.Rand, n int) []uint64 {
	keys := make([]uint64, 0, n)
	for len(keys) < n {
		for len(keys) < n {
			keys = append(keys, random.Uint64())
		}
		slices.Sort(keys)
		keys = slices.Compact(keys)
	}
	random.Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

// heap is the bytes of all that is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what a pool holds goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// processorTime is how long this process ran, in nanoseconds.
func processorTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// space is the bits a key of one structure at one rate.
type space struct {
	Structure string
	Bits      int // −log2 α
	BitsAKey  float64
}

// sweep builds each structure of keys with 256 values for rates of 2^-4 to 2^-16.
func sweep(keys int, seed uint64) (all []space, err error) {
	for bits := 4; bits <= 16; bits += 2 {
		p := point{keys, 256, bits}
		random := rand.New(rand.NewPCG(seed, uint64(bits)))
		t := &task{point: p, keys: distinct(random, keys), values: make([]uint64, keys), seed: random.Uint64()}
		for i := range t.values {
			t.values[i] = random.Uint64N(256)
		}
		for _, k := range kinds {
			before := heap()
			b, err := k.build(t)
			if err != nil {
				return nil, fmt.Errorf("%s at %v: %w", k.name, p, err)
			}
			all = append(all, space{k.name, bits, 8 * float64(heap()-before) / float64(keys)})
			runtime.KeepAlive(b)
		}
		runtime.KeepAlive(t)
	}
	return all, nil
}
