package main

// simulator decodes differences by a law in the ideal way: it sees whether a
// cell holds one key, where a Decoder tests sums. Its memory serves all trials.
type simulator struct {
	law   law
	count []int32 // keys in a cell
	keys  []int32 // their numbers, added without carries
	queue []int
	cells []int32 // of one key
}

// trial is the number of cells after which d differences are decoded. Mappings
// are drawn to a limit, and drawn again, the same, to twice the limit if so few
// cells do not suffice.
func (s *simulator) trial(d int, seed uint64) int {
	for limit := d + d/2 + 32; ; limit *= 2 {
		if n, ok := s.decode(d, seed, limit); ok {
			return n
		}
	}
}

// decode adds cell after cell, and peels the first n of them with each.
func (s *simulator) decode(d int, seed uint64, limit int) (n int, ok bool) {
	if cap(s.count) < limit {
		s.count, s.keys = make([]int32, limit), make([]int32, limit)
	}
	count, keys := s.count[:limit], s.keys[:limit]
	clear(count)
	clear(keys)
	for k := range d {
		s.cells = s.law.cells(s.cells[:0], seed, k, limit)
		for _, at := range s.cells {
			count[at]++
			keys[at] ^= int32(k)
		}
	}
	left := d
	for n := range limit {
		s.queue = append(s.queue[:0], n)
		for len(s.queue) > 0 {
			at := s.queue[len(s.queue)-1]
			s.queue = s.queue[:len(s.queue)-1]
			if count[at] != 1 {
				continue
			}
			k := keys[at]
			left--
			s.cells = s.law.cells(s.cells[:0], seed, int(k), limit)
			for _, at := range s.cells {
				count[at]--
				keys[at] ^= k
				if count[at] == 1 && int(at) <= n {
					s.queue = append(s.queue, int(at))
				}
			}
		}
		if left == 0 {
			return n + 1, true
		}
	}
	return 0, false
}
