package ribbon

// Overload and sizes. The BuRR paper (section 5 and its experiments) overloads:
// with more keys than slots nearly no slot stays empty. What does not fit goes
// on to the next level, where its slots cost as little.
const (
	// overload: a level has 15 slots for 16 keys (ε = -1/16), without tails.
	overloadSlots, overloadKeys = 15, 16

	// lastKeys is the most keys that the last level takes. It may not bump keys,
	// so it has a quarter more slots than keys (ε = +1/4), and salts.
	lastKeys  = 3000
	lastSlots = lastKeys + lastKeys/4

	// maxLevels bounds the levels. Each takes nine tenths of its keys or more, so
	// 10^9 keys need seven. Keys whose hashes are not spread need more.
	maxLevels = 16
)

// table is bumped ribbon retrieval (BuRR), a function from hashes to width
// bits. It is right for the keys it was built from and arbitrary for others.
// The first bits of the result are the fingerprint of the key itself.
type table struct {
	values       int // bits
	fingerprints int // bits
	levels       []level
}

func (t *table) width() int { return t.values + t.fingerprints }

// newTable builds a table of the n keys of a source, with as many levels as it takes, up
// to most. Of two levels, the second holds what the first one bumps without bumping (the
// slides' Bu¹RR). It has the room of a standard filter for a sixteenth of the keys.
func newTable(most, values, fingerprints, n, workers int, read source) (*table, error) {
	t := &table{values: values, fingerprints: fingerprints}
	memory := make([]entry, n)
	for n > 0 {
		slots, bump := lastLevelSlots(uint64(n)), len(t.levels)+1 < most && n > lastKeys
		if bump {
			slots = (uint64(n)*overloadSlots + overloadKeys - 1) / overloadKeys
		}
		bumped, err := t.addLevel(memory[:n], slots, bump, workers, read)
		if err != nil {
			return nil, err
		}
		n = len(bumped)
		read = func(into []entry, from int) { copy(into, bumped[from:]) }
	}
	return t, nil
}

// newStandard builds the table of a standard ribbon filter, which has one level and bumps
// nothing. The equations of all keys have their fingerprint for a result, in so many slots
// that there is a solution.
func newStandard(fingerprints, n, workers int, read source) (*table, error) {
	t := &table{fingerprints: fingerprints}
	if n == 0 {
		return t, nil
	}
	_, err := t.addLevel(make([]entry, n), standardSlots(uint64(n)), false, workers, read)
	return t, err
}

// addLevel builds the next level, of so many slots, in the given memory of one entry a
// key. It returns the entries that it bumped, if it may.
func (t *table) addLevel(memory []entry, slots uint64, bump bool, workers int, read source) (bumped []entry, err error) {
	s := solver{table: t, level: newLevel(slots, t.width()), bump: bump, workers: workers}
	if bump {
		s.level.codes = make([]uint64, codeWords(s.level.buckets))
	} else {
		s.level.salts = s.level.newSalts()
	}
	bumped, err = s.solve(memory, read)
	t.levels = append(t.levels, *s.level)
	return bumped, err
}

// standardSlots is (1+ε)·n with ε = 0.08. A window overflows somewhere with a
// probability that falls exponentially with ε·w. It grows with the length of a
// shard, not with n. Measured: 8 of 10 shards are solved without a salt.
func standardSlots(n uint64) uint64 { return n + n*8/100 }

// lastLevelSlots is the slots of a level that may not bump. What is one shard's edge to
// many keys is much of few, so that these have a quarter more.
func lastLevelSlots(n uint64) uint64 {
	if n > lastKeys {
		return standardSlots(n) + lastSlots - lastKeys
	}
	return (n*lastSlots + lastKeys - 1) / lastKeys
}

// newLevel returns an empty level, without codes or salts, of at least so many slots
// before its tails.
func newLevel(slots uint64, width int) *level {
	l := &level{buckets: max(1, (slots+bucketSlots-1)/bucketSlots)}
	l.words = make([]uint64, l.slots()/64*uint64(width))
	return l
}

// add counts the levels and bits of a table.
func (s *Stats) add(t *table) {
	s.Levels = max(s.Levels, len(t.levels))
	for _, l := range t.levels {
		s.Bits += 64 * (len(l.codes) + 3*len(l.salts) + len(l.words))
	}
}
