package cuckoo

import "github.com/syncd-io/syncd/bfield/keyed"

// batch is how many look-ups overlap: about as many reads as a processor keeps
// in flight. With more, the first lines have left the nearest cache when they
// are used.
const batch = 32

// GetBatch writes the value of keys[i] to values[i], or 0 if it is absent. It
// returns how many keys were there. If found is not nil, found[i] says
// whether keys[i] was. It panics if values, or found, is shorter than keys.
//
// The buckets of many keys are fetched at once. In a large Map a key then
// costs a fraction of what Get takes.
func (m *Map[K, V]) GetBatch(keys []K, values []V, found []bool) (hits int) {
	values = values[:len(keys)]
	clear(values)
	if found != nil {
		found = found[:len(keys)]
		clear(found)
	}
	x := &m.exact
	var looks [batch]look
	for begin := 0; begin < len(keys); begin += batch {
		end := min(begin+batch, len(keys))
		pending := 0
		for i, k := range keys[begin:end] {
			if uint64(k) <= keyMask {
				looks[pending&(batch-1)] = x.look(x.first(uint64(k)), 0, begin+i)
				pending++
			}
		}
		for choice := uint8(0); pending > 0; choice++ {
			round := looks[:pending]
			fetch(round)
			pending = 0
			for _, l := range round {
				var v uint64
				if slot := l.line.find(l.tag); slot >= 0 {
					v = l.line.valueAt(slot)
				} else if choice == 0 {
					looks[pending&(batch-1)] = x.look(second(l.number), 1, l.index)
					pending++
					continue
				} else if stashed, ok := x.stashed(uint64(keys[l.index])); ok {
					v = stashed
				} else {
					continue
				}
				hits++
				values[l.index] = V(v)
				if found != nil {
					found[l.index] = true
				}
			}
		}
	}
	return hits
}

// look is a look-up under way: where the key with this index would be by one of
// its numbers.
type look struct {
	line   *line
	tag    uint64
	number uint64
	index  int
}

func (x *exact) look(number uint64, choice uint8, index int) look {
	p := x.place(number, choice)
	return look{x.line(p.bucket), p.tag, number, index}
}

// fetch reads a word of each line. No read waits for another, so the processor
// has many under way at once. The compiler would drop the reads of an inlined
// fetch, because its caller ignores the sum.
//
//go:noinline
func fetch(looks []look) (sum uint64) {
	for i := range looks {
		sum += looks[i].line.tags
	}
	return sum
}

// LookupBatch sets values[i] and found[i] for key i, as Lookup answers. Where
// found[i] is false, values[i] is 0. It panics if values or found is shorter
// than keys. The buckets of many keys are fetched at once.
func (t *Table) LookupBatch(keys keyed.List, values []uint64, found []bool) {
	n := keys.Len()
	values, found = values[:n], found[:n]
	var hashes [batch]uint64
	for begin := 0; begin < n; begin += batch {
		end := min(begin+batch, n)
		for i := begin; i < end; i++ {
			hashes[i&(batch-1)] = keys.At(i).Hash(t.config.Seed)
		}
		t.lookups(hashes[:end-begin], values[begin:end], found[begin:end])
	}
}

// lookups answers at most batch look-ups.
func (t *Table) lookups(hashes, values []uint64, found []bool) {
	t.touch(hashes)
	for i, h := range hashes {
		values[i], found[i] = t.find(t.identify(h))
	}
}

// touch reads a word of each key's first bucket; see fetch.
//
//go:noinline
func (t *Table) touch(hashes []uint64) (sum uint64) {
	for _, h := range hashes {
		c, word, _ := t.bit(t.bucketOf(t.identify(h), 0), 0)
		sum += c[word]
	}
	return sum
}
