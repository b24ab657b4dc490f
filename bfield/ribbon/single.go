package ribbon

import (
	"errors"
	"math/bits"
)

// Filters of one level, which bump nothing.

// newHomogeneous builds the table of a homogeneous ribbon filter: the equations
// of all keys have the result zero, and slots that they leave free are random.
func newHomogeneous(values, fingerprints, n, workers int, read source) (*table, error) {
	t := &table{values: values, fingerprints: fingerprints}
	if n == 0 {
		return t, nil
	}
	l := newLevel(homogeneousSlots(n, t.width()), t.width())
	s := solver{table: t, level: l, homogeneous: true, workers: workers}
	_, err := s.solve(make([]entry, n), read)
	t.levels = []level{*l}
	return t, err
}

// homogeneousSlots is (1+ε)·n with ε = (4 + f/4)/w: the wider the fingerprint,
// the more a crowded stretch of the ribbon adds to a rate that is small
// elsewhere. At w = 64 and f = 8 that makes 8.75 bits a key, where Dillinger,
// Hübschle-Schneider, Sanders and Walzer (SEA 2022) put this filter; measured,
// the rate is then 2^-f within 2 %.
func homogeneousSlots(n, f int) uint64 {
	return uint64(n) + uint64(n)*uint64(16+f)/(4*window)
}

// newStandard builds the table of a standard ribbon filter: the equations of
// all keys have their fingerprint for a result, in so many slots that there is
// a solution. It tries salt after salt, with a hundredth more slots each time.
func newStandard(values, fingerprints, n, workers int, read source) (*table, error) {
	t := &table{values: values, fingerprints: fingerprints}
	if n == 0 {
		return t, nil
	}
	memory := make([]entry, n)
	for try := range uint64(lastRetries) {
		l := newLevel(standardSlots(n)+uint64(n)*try/100, t.width())
		l.salt = try
		s := solver{table: t, level: l, workers: workers}
		_, err := s.solve(memory, read)
		if !errors.Is(err, errUnsolved) {
			t.levels = []level{*l}
			return t, err
		}
	}
	return nil, errUnsolved
}

// standardSlots is (1+ε)·n. A window overflows somewhere with a probability
// that grows with n and falls exponentially with ε·w, so ε is linear in log n.
// Measured: with this one, the first salt suffices in 7 to 9 builds of 10 for
// n from 2^14 to 2^20; below, the tail helps.
func standardSlots(n int) uint64 {
	perMille := max(40, 8*bits.Len(uint(n))-68)
	return uint64(n) + uint64(n)*uint64(perMille)/1000
}
