package cuckoo

// search finds the shortest way to a free slot, breadth first. It visits the
// buckets of the new entry, then those into which an entry of theirs could
// move, and so on. The entries along the way each move by one, the last into
// the free slot.
//
// No bucket is marked as seen. A shortest way visits a bucket at most once. What
// follows a second visit would have been found from the first.
type search struct {
	nodes []node
}

// node is a bucket that was reached.
type node struct {
	bucket uint64
	parent int32 // index of the node that it was reached from, or −1
	depth  uint16
	slot   uint8 // slot in the parent's bucket of the entry that would move here
	choice uint8 // which of the entry's hash functions leads here
}

// hop is a bucket to which an entry can go, and by which hash function.
type hop struct {
	bucket uint64
	choice uint8
}

// shelves are buckets as a search sees them.
type shelves interface {
	// free returns a free slot of bucket b, or −1.
	free(b uint64) int
	// others writes to hops the other buckets of the entry in a full slot, and
	// returns how many they are.
	others(b uint64, slot int, hops *[maxHashes]hop) int
	// move takes the entry in a slot of a bucket to a free slot of another of its buckets.
	move(from uint64, slot int, to hop, free int)
}

// reach bounds a search: the buckets that it looks at, and the entries that
// move in the end.
type reach struct {
	nodes int
	depth int
	slots int // of a bucket
}

// place makes room in the bucket of a root. It returns which root's, and the free slot.
func (s *search) place(g shelves, roots []hop, r reach, w *Work) (root hop, slot int, ok bool) {
	leaf, slot := s.run(g, roots, r)
	w.Searched += uint64(len(s.nodes))
	if leaf < 0 {
		return hop{}, 0, false
	}
	n := s.nodes[leaf]
	for n.parent >= 0 {
		up := s.nodes[n.parent]
		g.move(up.bucket, int(n.slot), hop{n.bucket, n.choice}, slot)
		w.move()
		n, slot = up, int(n.slot)
	}
	return hop{n.bucket, n.choice}, slot, true
}

// run returns the index of the node whose bucket has a free slot, and the slot.
// It returns −1 if no bucket within reach has one. depth 0 means that a root has
// room and nothing need move.
func (s *search) run(g shelves, roots []hop, r reach) (leaf, slot int) {
	s.nodes = s.nodes[:0]
	for _, h := range roots {
		if free := g.free(h.bucket); free >= 0 {
			s.nodes = append(s.nodes[:0], node{bucket: h.bucket, parent: -1, choice: h.choice})
			return 0, free
		}
		s.nodes = append(s.nodes, node{bucket: h.bucket, parent: -1, choice: h.choice})
	}
	var hops [maxHashes]hop
	for at := 0; at < len(s.nodes); at++ {
		from := s.nodes[at]
		if int(from.depth) == r.depth {
			break // and so are all that follow
		}
		for i := range r.slots {
			for _, h := range hops[:g.others(from.bucket, i, &hops)] {
				if len(s.nodes) >= r.nodes {
					return -1, 0
				}
				s.nodes = append(s.nodes, node{
					bucket: h.bucket, parent: int32(at), depth: from.depth + 1,
					slot: uint8(i), choice: h.choice,
				})
				if free := g.free(h.bucket); free >= 0 {
					return len(s.nodes) - 1, free
				}
			}
		}
	}
	return -1, 0
}
