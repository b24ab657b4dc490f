package ribbon

import (
	"errors"

	"github.com/syncd-io/syncd/bfield/internal/workers"
)

// errContradiction is that two equal hashes have values that differ.
// errUnsolved is that a key failed on a level that may not bump keys.
var (
	errContradiction = errors.New("equal hashes with different values")
	errUnsolved      = errors.New("the equations have no solution")
)

// solver fills one level of a table.
type solver struct {
	table   *table
	level   *level
	bump    bool // what fails may be bumped
	workers int
}

// solve partitions the entries of a source into memory, one entry each, and
// solves the shards, several at once. Each has its own codes and words, so they
// do not meet. It returns the bumped entries in the order of the shards.
func (s *solver) solve(memory []entry, read source) (bumped []entry, err error) {
	ends := s.level.partition(memory, s.workers, read)
	counts, errs := make([]int, len(ends)), make([]error, len(ends))
	idle := make(chan *builder, s.workers)
	for range s.workers {
		idle <- &builder{solver: s}
	}
	of := func(shard int) []entry {
		begin := 0
		if shard > 0 {
			begin = ends[shard-1]
		}
		return memory[begin:ends[shard]]
	}
	workers.Each(s.workers, len(ends), func(shard int) {
		b := <-idle
		counts[shard], errs[shard] = b.build(shard, of(shard))
		idle <- b
	})
	sum := 0
	for _, c := range counts {
		sum += c
	}
	bumped = make([]entry, 0, sum)
	for shard, c := range counts {
		bumped = append(bumped, of(shard)[:c]...)
	}
	return bumped, errors.Join(errs...)
}

// result is what the row of an entry must give.
func (s *solver) result(e entry) uint64 {
	f := s.table.fingerprints
	return e.value<<f | fingerprint(e.hash, f)
}

// builder solves shards, one after the other, with memory that it keeps.
type builder struct {
	*solver
	sorter sorter
	band   band
	moved  []entry // the entries of the shard at hand, salted
	placed []int   // the slots of the entries of the bucket at hand
}

// build solves one shard and writes its codes or its salt, and its blocks, into
// the level. It returns the number of its bumped entries, which it moves to the
// front of entries.
func (b *builder) build(shard int, entries []entry) (bumped int, err error) {
	if b.bump {
		return b.try(shard, entries)
	}
	at := &b.level.salts[shard]
	for ; at.number <= maxSalt; at.number++ {
		moved := append(b.moved[:0], entries...)
		for i := range moved {
			moved[i].hash = at.apply(moved[i].hash)
		}
		b.moved = moved
		_, err = b.try(shard, moved)
		if !errors.Is(err, errUnsolved) {
			return 0, err
		}
	}
	return 0, errUnsolved
}

// blocks are the words of a shard.
func (b *builder) blocks(shard int) []uint64 {
	width, words := b.table.width(), b.level.words
	return words[shard*shardBlocks*width : min((shard+1)*shardBlocks*width, len(words))]
}

// try is build with the entries where they are.
func (b *builder) try(shard int, entries []entry) (bumped int, err error) {
	l := b.level
	first := uint64(shard) * shardBuckets
	buckets := min(shardBuckets, l.buckets-first)
	size := int(buckets*bucketSlots + tailSlots)
	if cap(b.band) < size {
		b.band = make(band, size)
	}
	b.band = b.band[:size]
	clear(b.band)
	sorted := b.sorter.sort(l, entries)
	for bucket := range buckets {
		from, to := b.sorter.begins[bucket*bucketSlots], b.sorter.begins[(bucket+1)*bucketSlots]
		in := sorted[from:to]
		kept, code, err := b.bucket(in)
		if err != nil {
			return 0, err
		}
		if b.bump {
			g := first + bucket
			l.codes[g/codesPerWord] |= code << (g % codesPerWord * 2)
		}
		bumped += copy(entries[bumped:], in[kept:])
		if bucket%turnBuckets == turnBuckets-1 {
			giveWay()
		}
	}
	b.band.solve(b.blocks(shard), b.table.width())
	return bumped, nil
}

// bucket inserts the entries of a bucket from its right end to its left one,
// until one fails. It then takes back what the threshold bumps with it. It
// returns how many stay, and the threshold's code.
func (b *builder) bucket(in []entry) (kept int, code uint64, err error) {
	l := b.level
	b.placed = b.placed[:0]
	for i, e := range in {
		start := l.start(e.hash) % shardSlots
		slot := b.band.insert(int(start), coefficients(e.hash), b.result(e))
		if slot != inconsistent {
			b.placed = append(b.placed, slot)
			continue
		}
		for j := i - 1; j >= 0 && l.start(in[j].hash) == l.start(e.hash); j-- {
			if in[j].hash == e.hash && in[j].value != e.value {
				return 0, 0, errContradiction
			}
		}
		if !b.bump {
			return 0, 0, errUnsolved
		}
		for code = 1; start%bucketSlots >= thresholds[code]; code++ {
		}
		for kept = i; kept > 0 && l.start(in[kept-1].hash)%bucketSlots < thresholds[code]; kept-- {
			if s := b.placed[kept-1]; s >= 0 {
				b.band.remove(s)
			}
		}
		return kept, code, nil
	}
	return len(in), 0, nil
}
