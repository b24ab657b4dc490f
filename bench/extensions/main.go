// Command extensions measures two extensions that the B-field's paper names, beside the
// plain field at equal bits a key:
//
//	go -C bench run ./extensions             # a minute
//	go -C bench run ./extensions --times 21  # what look-ups take instead, of 10^7 keys in 21 turns
//
// The first confines the windows of a key to one cache line of 512 bits. The second has
// markers any two of which share at most one bit, so that a few wrong ones in a window
// leave one marker (an error-correcting code). Both are models of the primary array,
// for rates; their times hold beside each other only.
package main

import (
	"flag"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"

	"github.com/syncd-io/syncd/bfield"
)

func main() {
	keys := flag.Int("keys", 1_000_000, "keys of a field")
	strangers := flag.Int("strangers", 2_000_000, "strangers asked for")
	seed := flag.Uint64("seed", 1, "seed of all fields")
	turns := flag.Int("times", 0, "turns of look-ups of 10^7 keys, which are timed; 0 measures rates")
	flag.Parse()
	if *keys < 1000 || *keys > 100_000_000 || *strangers < 1000 || *turns < 0 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "extensions: want --keys 1000 to 100000000, --strangers 1000 or more, and no arguments")
		os.Exit(1)
	}
	r := rand.New(rand.NewPCG(*seed, 0))
	if *turns > 0 {
		times(10_000_000, *turns, r)
		return
	}
	lines(*keys, *strangers, r)
	codes(*keys, *strangers, r)
}

// A field is a primary array: windows of ν bits at k places a key. Hashes are random
// numbers, so that a key is one.
type field struct {
	words     []uint64
	k, nu     int
	blocks    uint64 // of 512 bits; 0: windows lie anywhere
	positions uint64 // of a window, in the array or in its block
}

// newField returns a field of at least so many bits.
func newField(size float64, k, nu int, blocked bool) *field {
	n := uint64(math.Ceil(size/512)) * 512
	f := &field{words: make([]uint64, n/64+1), k: k, nu: nu, positions: n - uint64(nu) + 1}
	if blocked {
		f.blocks, f.positions = n/512, 512-uint64(nu)+1
	}
	return f
}

// block is the bit at which a key's block begins; 0 if its windows lie anywhere.
func (f *field) block(key uint64) uint64 {
	n, _ := bits.Mul64(key, f.blocks)
	return n * 512
}

// place is the place of a window from where its block begins, and the state for the
// next one: words of wyrand (Wang Yi 2019), a few cycles each.
func (f *field) place(state uint64) (place, next uint64) {
	state += 0xa0761d6478bd642f
	hi, lo := bits.Mul64(state, state^0xe7037ed1a0b428db)
	place, _ = bits.Mul64(hi^lo, f.positions)
	return place, state
}

func (f *field) insert(key, code uint64) {
	var p uint64
	state, base := key, f.block(key)
	for range f.k {
		p, state = f.place(state)
		p += base
		f.words[p/64] |= code << (p % 64)
		f.words[p/64+1] |= code >> 1 >> (63 - p%64)
	}
}

// common is the AND of a key's windows.
func (f *field) common(key uint64) uint64 {
	var p uint64
	state, base := key, f.block(key)
	acc := uint64(1)<<f.nu - 1
	for range f.k {
		p, state = f.place(state)
		p += base
		acc &= f.words[p/64]>>(p%64) | f.words[p/64+1]<<1<<(63-p%64)
	}
	return acc
}

// interval is the half of a 95 % interval of a count's share of n.
func interval(count, n int) float64 { return 1.96 * math.Sqrt(float64(count)) / float64(n) }

// lines compares windows in one line with windows anywhere, with as many bits a key.
func lines(keys, strangers int, r *rand.Rand) {
	fmt.Println("| θ, planned α | bits a key | anywhere | in one line | model | ratio | β anywhere | β in one line | bits for the planned α in one line |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for _, c := range []struct {
		values uint64
		alpha  int
	}{{2, 4}, {16, 8}, {256, 8}, {256, 12}} {
		p, err := bfield.NewPlan(bfield.Config{Keys: uint64(keys), Values: c.values, FalsePositive: math.Ldexp(1, -c.alpha)})
		if err != nil {
			panic(err)
		}
		all := bfield.Codes(p.Nu, p.Kappa)
		markers := make([]uint64, all)
		for i := range markers {
			markers[i], err = bfield.Encode(uint64(i)+1, p.Nu, p.Kappa)
			if err != nil {
				panic(err)
			}
		}
		valid := float64(c.values) / float64(all)
		size := p.CellsPerKey * float64(p.Kappa)
		var found, unsure [2]int
		for i, blocked := range []bool{false, true} {
			f := newField(size*float64(keys), p.Hashes, p.Nu, blocked)
			held := make([]uint64, keys)
			for j := range held {
				held[j] = r.Uint64()
				f.insert(held[j], markers[r.Uint64N(all)])
			}
			for _, k := range held {
				if bits.OnesCount64(f.common(k)) > p.Kappa {
					unsure[i]++
				}
			}
			for range strangers {
				if bits.OnesCount64(f.common(r.Uint64())) == p.Kappa {
					found[i]++
				}
			}
		}
		s, n := valid/float64(strangers), float64(keys)
		fmt.Printf("| %d, 2^-%d | %.2f | %.3g ± %.1g | %.3g ± %.1g | %.3g | %.2f | %.3f | %.3f | %.1f |\n", c.values, c.alpha, size,
			float64(found[0])*s, valid*interval(found[0], strangers), float64(found[1])*s, valid*interval(found[1], strangers),
			lineRate(p), float64(found[1])/float64(found[0]), float64(unsure[0])/n, float64(unsure[1])/n, lineBits(p, math.Ldexp(1, -c.alpha)))
	}
}

// lineBits is how many bits a key a field in lines takes for a rate, by the model, with as
// many windows. It is to the next 2 %.
func lineBits(p bfield.Plan, alpha float64) float64 {
	for lineRate(p) > alpha {
		p.CellsPerKey *= 1.02
	}
	return p.CellsPerKey * float64(p.Kappa)
}

// lineRate is the rate of a field whose windows lie in one line: keys fall into lines by
// Poisson's law, and in a line of j keys each place begins j·k/(512−ν+1) markers. The
// mean of the plain rate, of a plan as crowded, over j.
func lineRate(p bfield.Plan) float64 {
	mean := 512 / (p.CellsPerKey * float64(p.Kappa))
	rate, weight := 0.0, math.Exp(-mean)
	for j := 1; float64(j) < mean+8*math.Sqrt(mean)+8; j++ {
		weight *= mean / float64(j)
		if weight < 1e-7 {
			continue
		}
		lambda := float64(j*p.Hashes) / float64(512-p.Nu+1)
		q := p
		q.CellsPerKey = float64(p.Hashes) / (lambda * float64(p.Kappa))
		rate += weight * q.FalsePositive()
	}
	return rate
}
