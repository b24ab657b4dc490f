package ribbon

// Filters of one level, which bump nothing.

// newHomogeneous builds the table of a homogeneous ribbon filter: the equations
// of all keys have the result zero, and slots that they leave free are random.
func newHomogeneous(values, fingerprints, n, workers int, read source) (*table, error) {
	return newSingle(homogeneousSlots(n, values+fingerprints), true, values, fingerprints, n, workers, read)
}

// newStandard builds the table of a standard ribbon filter: the equations of
// all keys have their fingerprint for a result, in so many slots that there is
// a solution.
func newStandard(values, fingerprints, n, workers int, read source) (*table, error) {
	return newSingle(standardSlots(n), false, values, fingerprints, n, workers, read)
}

func newSingle(slots uint64, homogeneous bool, values, fingerprints, n, workers int, read source) (*table, error) {
	t := &table{values: values, fingerprints: fingerprints}
	if n == 0 {
		return t, nil
	}
	l := newLevel(slots, t.width())
	l.salts = l.newSalts()
	s := solver{table: t, level: l, homogeneous: homogeneous, workers: workers}
	_, err := s.solve(make([]entry, n), read)
	t.levels = []level{*l}
	return t, err
}

// homogeneousSlots is (1+ε)·n with ε = (4 + f/4)/w: the wider the fingerprint,
// the more a crowded stretch of the ribbon adds to a rate that is small
// elsewhere. At w = 64 and f = 8 that makes 8.75 bits a key, where Dillinger,
// Hübschle-Schneider, Sanders and Walzer (SEA 2022) put this filter.
func homogeneousSlots(n, f int) uint64 {
	return uint64(n) + uint64(n)*uint64(16+f)/(4*window)
}

// standardSlots is (1+ε)·n with ε = 0.08. A window overflows somewhere with a
// probability that falls exponentially with ε·w and grows with the length of a
// shard, not with n. Measured: 8 of 10 shards are solved without a salt.
func standardSlots(n int) uint64 {
	return uint64(n) + uint64(n)*8/100
}

// crowded says whether a shard of a homogeneous filter accepts too many
// strangers. Where more keys crowd than columns, the only solution is zeros, and
// every stranger is accepted; at ε = 0.094 that befalls one shard in ten or
// twenty, for some hundred slots, and unnoticed it would raise the filter's mean
// rate from 0.39 % to 0.42 % (measured at 40 × 330,000 keys).
//
// A stranger's row picks bits of f columns at random. If the columns have rank
// q there, all picks give zero with probability 2^-q, not 2^-f. It is enough to
// look at each block, since a crowded stretch is longer.
func (b *builder) crowded(shard int) bool {
	width, words := b.table.width(), b.blocks(shard)
	excess := 0.0
	for len(words) > 0 {
		excess += float64(uint64(1)<<(width-rank(words[:width]))) - 1
		words = words[width:]
	}
	return excess > mostExcess*float64(len(b.band)/64)
}

// mostExcess is the part by which strangers may raise the rate of a shard.
const mostExcess = 0.01

// rank returns how many of the words, as vectors of bits, are independent.
func rank(words []uint64) (n int) {
	var basis [maxFingerprint]uint64
	for _, w := range words {
		for _, v := range basis[:n] {
			// v's highest bit is not in w afterwards, whether it was before
			// or not.
			w = min(w, w^v)
		}
		if w != 0 {
			basis[n] = w
			n++
		}
	}
	return n
}
