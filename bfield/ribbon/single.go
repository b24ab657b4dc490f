package ribbon

// newStandard builds the table of a standard ribbon filter, which has one level and bumps
// nothing. The equations of all keys have their fingerprint for a result, in so many slots
// that there is a solution.
func newStandard(values, fingerprints, n, workers int, read source) (*table, error) {
	t := &table{values: values, fingerprints: fingerprints}
	if n == 0 {
		return t, nil
	}
	l := newLevel(standardSlots(n), t.width())
	l.salts = l.newSalts()
	s := solver{table: t, level: l, workers: workers}
	_, err := s.solve(make([]entry, n), read)
	t.levels = []level{*l}
	return t, err
}

// standardSlots is (1+ε)·n with ε = 0.08. A window overflows somewhere with a
// probability that falls exponentially with ε·w. It grows with the length of a
// shard, not with n. Measured: 8 of 10 shards are solved without a salt.
func standardSlots(n int) uint64 {
	return uint64(n) + uint64(n)*8/100
}
