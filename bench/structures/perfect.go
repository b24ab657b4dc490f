package main

import (
	"math"

	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/phf"
)

// perfect is a minimal perfect hash function, and an array that has at each key's number
// its fingerprint and below it its value, width bits each without a gap.
type perfect struct {
	function           *phf.Function
	words              []uint64
	value, fingerprint int
}

func buildPerfect(t *task) (*built, error) {
	f, err := phf.Build(phf.Config{Minimal: true, Seed: t.seed, Workers: 1}, keyed.Numbers(t.keys))
	if err != nil {
		return nil, err
	}
	p := &perfect{function: f, value: t.valueBits(), fingerprint: t.Bits}
	width := p.value + p.fingerprint
	p.words = make([]uint64, f.Slots()*width/64+2) // get reads one word on
	for i, k := range t.keys {
		p.put(f.Lookup(keyed.Number(k)), t.values[i]|p.print(k)<<p.value)
	}
	return &built{
		planned: math.Ldexp(1, -t.Bits), bits: f.Stats().Bits + len(p.words)*64, keep: p,
		answer: func(key uint64) (uint64, int) { return one(p.lookup(key)) },
		single: func(keys []uint64) (n int) {
			for _, k := range keys {
				if _, ok := p.lookup(k); ok {
					n++
				}
			}
			return n
		},
		batch: func(keys []uint64) (n int) {
			var numbers [group]uint64
			groups(keys, func(keys []uint64) {
				p.function.LookupBatch(keyed.Numbers(keys), numbers[:len(keys)])
				for i, k := range keys {
					if p.get(numbers[i])>>p.value == p.print(k) {
						n++
					}
				}
			})
			return n
		},
	}, nil
}

func (p *perfect) lookup(key uint64) (value uint64, ok bool) {
	entry := p.get(p.function.Lookup(keyed.Number(key)))
	return entry & (1<<p.value - 1), entry>>p.value == p.print(key)
}

// print is a key's fingerprint: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014),
// which has nothing in common with the hash of the function.
func (p *perfect) print(key uint64) uint64 {
	key = (key ^ key>>30) * 0xbf58476d1ce4e5b9
	key = (key ^ key>>27) * 0x94d049bb133111eb
	return (key ^ key>>31) >> (64 - p.fingerprint)
}

func (p *perfect) get(number uint64) uint64 {
	at := number * uint64(p.value+p.fingerprint)
	low, shift := p.words[at/64:at/64+2], at%64
	return (low[0]>>shift | low[1]<<1<<(63-shift)) & (1<<(p.value+p.fingerprint) - 1)
}

// put writes an entry that was 0.
func (p *perfect) put(number, entry uint64) {
	at := number * uint64(p.value+p.fingerprint)
	p.words[at/64] |= entry << (at % 64)
	p.words[at/64+1] |= entry >> 1 >> (63 - at%64)
}
