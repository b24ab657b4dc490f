package directory

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/keyhash"
)

// Code is what is said of an index: the number of a shard, or one of those
// below.
type Code uint16

const (
	// Shared: several keys have this index, of which one is there at the least; of n keys of a
	// set, n²/2^43 pairs do: 4.4 of 10^8 keys in 256 sets. Hosts are to be asked for them.
	Shared Code = 0xfffe
	// Gone: no key that is there has this index.
	Gone Code = 0xffff
)

// row is an index above what is said of it, which has 16 bits.
type row uint64

func pack(index dbadapter.Index, c Code) row { return row(index)<<16 | row(c) }

func (r row) index() dbadapter.Index { return dbadapter.Index(r >> 16) }
func (r row) code() Code             { return Code(r) }

// rows ascend by index, each once: 8 bytes an entry.
type rows []row

func (r rows) find(index dbadapter.Index) (i int, ok bool) {
	i, _ = slices.BinarySearch(r, pack(index, 0))
	return i, i < len(r) && r[i].index() == index
}

func (r *rows) set(x row) {
	i, ok := r.find(x.index())
	if ok {
		(*r)[i] = x
	} else {
		*r = slices.Insert(*r, i, x)
	}
}

// layered are rows with what has changed since above them; there Gone takes a row away.
type layered struct{ base, over rows }

func (l *layered) get(index dbadapter.Index) Code {
	if i, ok := l.over.find(index); ok {
		return l.over[i].code()
	}
	if i, ok := l.base.find(index); ok {
		return l.base[i].code()
	}
	return Gone
}

func (l *layered) set(x row) {
	l.over.set(x)
	if len(l.over) > max(leastOver, len(l.base)/16) {
		merged := make(rows, 0, len(l.base)+len(l.over))
		for x := range l.from(0) {
			merged = append(merged, x)
		}
		l.base, l.over = merged, nil
	}
}

// from yields the rows from an index on.
func (l *layered) from(index dbadapter.Index) iter.Seq[row] {
	i, _ := l.base.find(index)
	j, _ := l.over.find(index)
	return merge(slices.Values(l.base[i:]), l.over[j:])
}

// merge lays rows over others, which ascend too.
func merge(base iter.Seq[row], over rows) iter.Seq[row] {
	return func(yield func(row) bool) {
		next := 0
		above := func(limit dbadapter.Index) bool { // yields what of over is below the limit
			for ; next < len(over) && over[next].index() < limit; next++ {
				if over[next].code() != Gone && !yield(over[next]) {
					return false
				}
			}
			return true
		}
		for x := range base {
			if !above(x.index()) {
				return
			}
			if next < len(over) && over[next].index() == x.index() {
				continue
			}
			if !yield(x) {
				return
			}
		}
		above(keyhash.P)
	}
}

// Sum stands for what is said of all indices of a set: the sum of the hashes of its rows,
// so that each change changes it by what the change tells. Two sets of rows have one sum
// with probability 2^-128. A host that searches for such sets can make them: what rests on
// a sum is promised of honest hosts.
type Sum [2]uint64

func (s *Sum) add(x row, sign uint64) {
	if x.code() == Gone {
		return
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(x))
	h := xxh3.Hash128(b[:])
	s[0] += sign * h.Lo
	s[1] += sign * h.Hi
}

// change tells the sum that an index is spoken of otherwise.
func (s *Sum) change(index dbadapter.Index, was, is Code) {
	s.add(pack(index, was), ^uint64(0))
	s.add(pack(index, is), 1)
}
