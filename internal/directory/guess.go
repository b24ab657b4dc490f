package directory

import (
	"maps"
	"slices"

	"github.com/syncd-io/syncd/bfield/locator"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

// MaxGuesses is how many indices Guesses are to hold at most, 8 bytes each.
const MaxGuesses = 1 << 20

// Guesses are indices of keys that a Locator has placed in one shard, which has records of them, but
// that may be wrong: its base names a shard by chance for an index that is not in it, the right one once
// in 4,096 times the number of shards; and the entry may be of another key that has the same index.
// Verify finds these out.
type Guesses struct {
	of map[placement.Shard][]dbadapter.Index // by the home
	n  int
}

// Add adds a key, by its home and its index there.
func (g *Guesses) Add(home placement.Shard, index dbadapter.Index) {
	if g.of == nil {
		g.of = map[placement.Shard][]dbadapter.Index{}
	}
	g.of[home] = append(g.of[home], index)
	g.n++
}

// Len is how many were added.
func (g *Guesses) Len() int { return g.n }

// Verify returns how many of the guesses are wrong. For an index that no copy of a set has Locate
// names no shard any more, until the host that the copy follows tells one, or a new base errs in
// it again. An index that was added more than once is shared from now on: of several keys one entry
// tells. A set of which there is no copy is passed over. Of each of the others the whole copy is
// read, one after the other, while none is written and no base is built.
func (l *Locator) Verify(g *Guesses) (wrong int, err error) {
	for _, home := range slices.Sorted(maps.Keys(g.of)) {
		n, err := l.verify(l.parts[home], g.of[home])
		if err != nil {
			return wrong, err
		}
		wrong += n
	}
	return wrong, nil
}

func (l *Locator) verify(p *part, indices []dbadapter.Index) (wrong int, err error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	c, ok, err := l.content(p)
	if err != nil || !ok {
		return 0, err
	}
	slices.Sort(indices)
	rest, several := distinct(indices)
	var strangers []dbadapter.Index
	for x := range merge(c.base, c.over) {
		for len(rest) > 0 && rest[0] < x.index() {
			strangers, rest = append(strangers, rest[0]), rest[1:]
		}
		if len(rest) > 0 && rest[0] == x.index() {
			rest = rest[1:]
		}
	}
	strangers = append(strangers, rest...)
	l.feeding.Lock()
	defer l.feeding.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.gen != c.gen {
		return 0, nil // another copy has taken its place
	}
	for _, index := range several {
		if !p.once.of[index] {
			p.once.add(index)
			wrong++
		}
	}
	for _, index := range strangers {
		i, changed := p.over.find(index)
		if changed && p.over[i].code() != Gone {
			continue // a key of this name has come since
		}
		if _, a := l.index.Lookup(mix(p.home, index)); a == locator.Likely {
			l.index.Remove(mix(p.home, index))
			wrong++
		}
	}
	return wrong, nil
}

// distinct returns each index once, ascending, and those of them that are there more than once.
func distinct(sorted []dbadapter.Index) (each, several []dbadapter.Index) {
	for i, index := range sorted {
		if i == 0 || index != sorted[i-1] {
			each = append(each, index)
		} else if len(several) == 0 || several[len(several)-1] != index {
			several = append(several, index)
		}
	}
	return each, several
}
