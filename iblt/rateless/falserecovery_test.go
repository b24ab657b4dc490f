package rateless

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/internal/keyhash"
)

// A wrong acceptance takes 2^26 tests and more, too many to count. The low bits
// of a check are the same sum modulo a lesser power of two: where the bits above
// are made to agree, the decoder's own tests run with a shorter check. These
// tests count wrong acceptances with 4 to 10 bits, and hold the count to the
// formula that the width of the check follows from:
//
//	count   wrong acceptances a test of cell j
//	  1     2^−bits · v(j) · (1 − n/p)     k belongs to j, and is not held
//	  0     2^−bits · v(j) · n/p           k belongs to j, and is held
//	 −1     2^−bits · v(j) · n/p²          k belongs to j, and is held with just this checksum
//
// for n keys held of p, and v(j) the probability that an index belongs to cell j.

// shortPeel peels with a check of so many bits.
type shortPeel struct {
	*Decoder
	bits int
	held func(p *pick, k Index) Checksum
	test func(p *pick, k Index) // told of each test
}

// oneRound is a round of peel.
func (s *shortPeel) oneRound() error {
	r := &s.round
	s.queue, r.queue = r.queue[:0], s.queue
	s.collect()
	inverses := append([]uint64(nil), r.inverses...)
	keyhash.InvAll(inverses, make([]uint64, len(inverses)))
	for i := range r.picks {
		p := &r.picks[i]
		k := Index(keyhash.Mul(p.cell.S2, inverses[i]))
		s.test(p, k)
		low := uint32(1)<<s.bits - 1
		p.cell.Check = s.right(p, k)&^low | p.cell.Check&low
	}
	s.divide()
	for i := range r.picks {
		p := &r.picks[i]
		if err := s.accept(&p.cell, r.indices[i], s.held(p, r.indices[i])); err != nil {
			return err
		}
	}
	return nil
}

// right is the check of a cell that holds k alone.
func (s *shortPeel) right(p *pick, k Index) uint32 {
	switch p.cell.Count {
	case 1:
		return s.words.hash(k, Checksum(p.cell.S1))
	case countMask:
		return -s.words.hash(k, Checksum(keyhash.P-p.cell.S1)) & checkMask
	default:
		ours := s.held(p, k)
		return (s.words.hash(k, Checksum(keyhash.Add(p.cell.S1, uint64(ours)))) - s.words.hash(k, ours)) & checkMask
	}
}

// agrees fails if a count is further from its expectation than a Poisson
// variable comes once in 10^6 times.
func agrees(t *testing.T, name string, tests, wrong int, want float64) {
	t.Helper()
	t.Logf("%s: %d wrong acceptances in %d tests, expected %.1f", name, wrong, tests, want)
	if math.Abs(float64(wrong)-want) > 5*math.Sqrt(want)+5 {
		t.Errorf("%s: %d wrong acceptances, want %.1f ± %.1f", name, wrong, want, 5*math.Sqrt(want)+5)
	}
}

// TestFalseRecoveries decodes against an index of 10^6 keys, each decode up to
// its first wrong pair.
func TestFalseRecoveries(t *testing.T) {
	const seed, n, d = 31, 1_000_000, 100
	r := rand.New(rand.NewPCG(seed, 0))
	index := make(map[Index]Checksum, n)
	for len(index) < n {
		index[randomIndex(r)] = randomChecksum(r)
	}
	for _, bits := range []int{4, 6, 8, 10} {
		tests, wrong, exposed := 0, 0, 0.0
		decodes := 30 << (bits / 2) * *trials
		for i := range decodes {
			key := Key{byte(bits), byte(i), byte(i >> 8), byte(i >> 16)}
			s := diverge(r, key, 4*d, 0, d/4, d/4, d/2)
			peel := shortPeel{Decoder: NewDecoder(s.ours, s.lookup), bits: bits}
			peel.held = func(_ *pick, k Index) Checksum {
				if sum := s.local[k]; sum != 0 {
					return sum
				}
				return index[k]
			}
			peel.test = func(p *pick, k Index) {
				if f, ok := s.want[k]; ok && uint64(f.Theirs) == keyhash.Add(p.cell.S1, uint64(f.Ours)) {
					return
				}
				tests++
				if p.cell.Count == 1 {
					exposed += peel.words.tables.visiting(int(p.at))
				} // the other two: 10^−9 of it, and less
			}
			wrong += decodeToFirstWrong(t, &peel, s, 4*d)
		}
		want := exposed * math.Exp2(-float64(bits)) * (1 - n/float64(keyhash.P))
		t.Logf("%d bits: %.1f tests and %.1f expected visits a decode (seed %d)", bits, float64(tests)/float64(decodes), exposed/float64(decodes), seed)
		agrees(t, "a decode", tests, wrong, want)
	}
}

// decodeToFirstWrong takes cells in bursts until all is found, or something
// wrong; it returns how many wrong pairs the last round accepted.
func decodeToFirstWrong(t *testing.T, peel *shortPeel, s *sides, m int) (wrong int) {
	t.Helper()
	cells := s.theirs.Prefix(m)
	for len(cells) > 0 && !peel.Done() {
		burst := min(len(cells), 20)
		if err := peel.take(cells[:burst]); err != nil {
			t.Fatal(err)
		}
		cells = cells[burst:]
		for len(peel.queue) > 0 {
			before := len(peel.found)
			if err := peel.oneRound(); err != nil {
				t.Fatal(err)
			}
			for _, f := range peel.found[before:] {
				if s.want[f.Index] != f {
					wrong++
				}
			}
			if wrong > 0 {
				return wrong
			}
		}
	}
	return 0
}

// TestFalseRecoveriesByKind tests cells that hold two or three differences, with
// an index that holds one index in four, so that its part of the formula shows.
func TestFalseRecoveriesByKind(t *testing.T) {
	const seed, share = 32, 4
	for _, c := range []struct {
		name  string
		count uint8
		bits  int
		rate  float64 // times 2^−bits · v(j)
	}{
		{"count 1", 1, 4, 1 - 1.0/share},
		{"count 1", 1, 10, 1 - 1.0/share},
		{"count 0", 0, 4, 1.0 / share},
		{"count −1, any checksum held", countMask, 4, 0},
		{"count −1, this checksum held", countMask, 4, 1.0 / share},
	} {
		r := rand.New(rand.NewPCG(seed, uint64(c.bits)))
		w := expand(Key{1})
		const m = 24
		tests, wrong, exposed := 0, 0, 0.0
		for range 2000 * *trials {
			cells := make([]Cell, m)
			for j := range cells {
				cells[j] = severalDifferences(&w, r, c.count)
			}
			peel := shortPeel{Decoder: NewSourceDecoder(Key{1}, zeros{}, nothing), bits: c.bits}
			peel.test = func(p *pick, _ Index) {
				tests++
				exposed += w.tables.visiting(int(p.at))
			}
			peel.held = func(p *pick, k Index) Checksum {
				switch {
				case fold(uint64(k), mixer)%share != 0:
					return 0
				case c.count == countMask && c.rate > 0:
					return Checksum(keyhash.P - p.cell.S1)
				}
				return Checksum(fold(uint64(k), increment)%(keyhash.P-1) + 1)
			}
			if err := peel.take(cells); err != nil {
				t.Fatal(err)
			}
			if err := peel.oneRound(); err != nil {
				t.Fatal(err)
			}
			wrong += len(peel.found)
		}
		agrees(t, c.name, tests, wrong, exposed*c.rate*math.Exp2(-float64(c.bits)))
	}
}

// severalDifferences is a cell with the given count that holds two or three
// differences of different indices.
func severalDifferences(w *words, r *rand.Rand, count uint8) (sum Cell) {
	add := func(times uint8) {
		c := w.cellOf(Pair{Index: randomIndex(r), Checksum: randomChecksum(r)})
		if times == 1 {
			sum.add(&c)
		} else {
			sum.sub(&c)
		}
	}
	mismatch := func() {
		k := randomIndex(r)
		a, b := w.cellOf(Pair{Index: k, Checksum: randomChecksum(r)}), w.cellOf(Pair{Index: k, Checksum: randomChecksum(r)})
		sum.add(&a)
		sum.sub(&b)
	}
	if count == 0 {
		mismatch()
	} else {
		add(count)
	}
	if r.IntN(2) == 0 {
		mismatch()
	} else {
		add(1)
		add(countMask)
	}
	return sum
}
