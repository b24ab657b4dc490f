package kvstore

import (
	"math/bits"
	"sync/atomic"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// bloom is a Bloom filter of the indices that were ever written to a namespace which
// was empty when it was opened: an empty node that is sent everything, or an import,
// need not ask the database for what cannot be there. It says that an index is absent
// only if no commit has touched it, so that it holds for all snapshots since the
// opening. The zero value says that every index may be there.
//
// It is made of blocks of 512 bits, in which an index has 6: one access to the memory
// tells. An index is a keyed hash already, so that its bits and those of a product with
// it serve as hashes. The committer alone adds; anything may ask meanwhile.
type bloom struct {
	layers atomic.Pointer[[]*layer]
	added  int // indices in the last layer; the committer's
}

// layer is a filter of fixed size. A full one is followed by one of eight times its size:
// each is an access to the memory.
type layer struct{ blocks []block }

type block [8]atomic.Uint64

const (
	// bloomBits are those of a layer for an index: 6 of 512-bit blocks that hold 42
	// indices each are taken for there in 1 of 200 cases.
	bloomBits = 12
	// bloomLeast and bloomMost are the blocks of the first and of the fourth and last
	// layer. All of them take 9 MiB, and hold 6.3 million indices; the filter is given
	// up when one more comes.
	bloomLeast  = 1 << 8
	bloomMost   = 1 << 17
	bloomGrowth = 8
)

// capacity is how many indices a layer takes.
func (l *layer) capacity() int { return len(l.blocks) * 512 / bloomBits }

// begin makes the filter of a namespace in which nothing was ever written.
func (f *bloom) begin(txn kv.View, m *layout.Meta, number uint32) error {
	if m.Seq != 0 {
		return nil
	}
	prefix := appendPrefix(nil, number, layout.KindIndex)
	it := txn.Iterate(prefix)
	defer it.Close()
	it.Seek(prefix)
	if err := it.Err(); err != nil || it.Valid() {
		return err
	}
	f.layers.Store(&[]*layer{{make([]block, bloomLeast)}})
	return nil
}

// add notes what a commit touches, before it is committed.
func (f *bloom) add(changes []dbadapter.Change) {
	layers := f.layers.Load()
	for i := 0; layers != nil && i < len(changes); i++ {
		last := (*layers)[len(*layers)-1]
		if f.added == last.capacity() {
			layers = f.grow(*layers)
			if layers == nil {
				return
			}
			last = (*layers)[len(*layers)-1]
		}
		if changes[i].Old != 0 {
			continue // what held records is there already
		}
		f.added++
		b, mask := last.place(changes[i].Index)
		for word, m := range mask {
			if m != 0 {
				b[word].Or(m)
			}
		}
	}
}

// grow follows the layers by a larger one, or gives the filter up: nil.
func (f *bloom) grow(layers []*layer) *[]*layer {
	f.added = 0
	var next *[]*layer
	if n := bloomGrowth * len(layers[len(layers)-1].blocks); n <= bloomMost {
		more := append(layers[:len(layers):len(layers)], &layer{make([]block, n)})
		next = &more
	}
	f.layers.Store(next)
	return next
}

// mayHold reports whether there may be something under an index.
func (f *bloom) mayHold(index dbadapter.Index) bool {
	layers := f.layers.Load()
	if layers == nil {
		return true
	}
	for _, l := range *layers {
		if b, mask := l.place(index); b.holds(&mask) {
			return true
		}
	}
	return false
}

func (b *block) holds(mask *[8]uint64) bool {
	for word, m := range mask {
		if m != 0 && b[word].Load()&m != m {
			return false
		}
	}
	return true
}

// place is the block of an index, and its bits there.
func (l *layer) place(index dbadapter.Index) (b *block, mask [8]uint64) {
	at, h := bits.Mul64(uint64(index)*0x9e3779b97f4a7c15, uint64(len(l.blocks)))
	h = (h ^ uint64(index)) * 0xd6e8feb86659fd93
	for range 6 {
		mask[h>>61] |= 1 << (h >> 55 & 63)
		h <<= 9
	}
	return &l.blocks[at], mask
}
