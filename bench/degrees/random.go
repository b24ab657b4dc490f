package main

// stream is a pseudo-random sequence, SplitMix64 (Steele, Lea, Flood 2014).
type stream uint64

func (s *stream) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// unit is uniform in (0, 1], in steps of 2^−53.
func (s *stream) unit() float64 { return float64(s.next()>>11+1) * 0x1p-53 }

// seedOf makes one seed of several numbers.
func seedOf(numbers ...uint64) uint64 {
	var s stream
	for _, n := range numbers {
		s = stream(s.next() ^ n)
	}
	return s.next()
}
