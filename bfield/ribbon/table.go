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

// newTable builds a table of the n keys of a source, with as many levels as it takes.
func newTable(values, fingerprints, n, workers int, read source) (*table, error) {
	return newLevels(maxLevels, values, fingerprints, n, workers, read)
}

// newTwoLayers builds a table of two levels at most. What the first one bumps, the
// second holds without bumping (the slides' Bu¹RR). It has the room of a standard
// filter for a sixteenth of the keys.
func newTwoLayers(values, fingerprints, n, workers int, read source) (*table, error) {
	return newLevels(2, values, fingerprints, n, workers, read)
}

func newLevels(most, values, fingerprints, n, workers int, read source) (*table, error) {
	t := &table{values: values, fingerprints: fingerprints}
	memory := make([]entry, n)
	for n > 0 {
		bumped, err := t.addLevel(memory[:n], len(t.levels)+1 < most, workers, read)
		if err != nil {
			return nil, err
		}
		n = len(bumped)
		read = func(into []entry, from int) { copy(into, bumped[from:]) }
	}
	return t, nil
}

// addLevel builds the next level, in the given memory of one entry a key. It
// returns the entries that it bumped. It bumps if it may and there are many.
func (t *table) addLevel(memory []entry, may bool, workers int, read source) (bumped []entry, err error) {
	n := uint64(len(memory))
	s := solver{table: t, workers: workers}
	if s.bump = may && n > lastKeys; s.bump {
		s.level = newLevel((n*overloadSlots+overloadKeys-1)/overloadKeys, t.width())
		s.level.codes = make([]uint64, codeWords(s.level.buckets))
	} else {
		s.level = newLevel(lastLevelSlots(n), t.width())
		s.level.salts = s.level.newSalts()
	}
	bumped, err = s.solve(memory, read)
	t.levels = append(t.levels, *s.level)
	return bumped, err
}

// lastLevelSlots is the slots of a level that may not bump. What is one shard's edge to
// many keys is much of few, so that these have a quarter more.
func lastLevelSlots(n uint64) uint64 {
	if n > lastKeys {
		return standardSlots(int(n)) + lastSlots - lastKeys
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

// done computes the overhead over width bits a key.
func (s *Stats) done(width int) Stats {
	if s.Keys > 0 {
		s.Overhead = float64(s.Bits)/float64(width)/float64(s.Keys) - 1
	}
	return *s
}
