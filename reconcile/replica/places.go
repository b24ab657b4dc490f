package replica

import (
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A large sync of a prefix opens a replica for each of its parts. The first one reads all
// keys with the prefix and notes where they lie. Each of the others reads the records
// there that are in its own ranges.

// places are where the records with a prefix lie: the index of each, and those of all
// records that were written since the noting began. A replica reads what its own
// snapshot holds there, so that an index too many costs a look-up and changes nothing.
type places struct {
	prefix string
	// known: the scan that notes the places has ended. Before that they are those of
	// what was written meanwhile.
	known bool
	// tooMany: they are more than may be noted, and none is.
	tooMany bool
	// used says that a replica has asked for them since the last Live.Rest.
	used   bool
	groups [dbadapter.RangeGroups][]dbadapter.Index // in no order; an index may repeat
	count  int
}

func (p *places) add(i dbadapter.Index) {
	g := &p.groups[dbadapter.RangeOf(i)/dbadapter.RangesInGroup]
	*g = append(*g, i)
	p.count++
}

// clear forgets the places, and notes that they are too many.
func (p *places) clear() {
	p.groups, p.count, p.tooMany = [dbadapter.RangeGroups][]dbadapter.Index{}, 0, true
}

// note begins to note the places of a prefix. It must come before the snapshot that is
// scanned for them: the commits that this does not hold are noted as they come. It
// returns nil where they are noted already, or are too many.
func (l *Live) note(prefix []byte) *places {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.find(prefix) >= 0 {
		return nil
	}
	if len(l.places) == maxPrefixes {
		l.places = slices.Delete(l.places, 0, 1)
	}
	p := &places{prefix: string(prefix), used: true}
	l.places = append(l.places, p)
	return p
}

// find is where the places of a prefix are; mu is held.
func (l *Live) find(prefix []byte) int {
	return slices.IndexFunc(l.places, func(p *places) bool { return p.prefix == string(prefix) })
}

// noted ends the noting of p with the places that the scan has found; nil says that it
// has not ended well.
func (l *Live) noted(p *places, found []dbadapter.Index) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.places, p)
	switch {
	case at < 0 || p.tooMany: // or they gave way to other prefixes
	case found == nil:
		l.places = slices.Delete(l.places, at, at+1)
	default:
		p.known = true
		for _, i := range found {
			p.add(i)
		}
		l.bound()
	}
}

// many ends the noting of p: its prefix has too many records.
func (l *Live) many(p *places) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.clear()
}

// bound forgets the places that are more than may be noted, those that were used last at
// last. mu is held.
func (l *Live) bound() {
	count := 0
	for at, p := range slices.Backward(l.places) {
		switch {
		case p.count > l.mostPlaces:
			p.clear()
		case count+p.count > l.mostPlaces:
			l.places = slices.Delete(l.places, at, at+1)
		default:
			count += p.count
		}
	}
}

// written notes where a commit has written; mu is held. Which of the keys under an index
// it has written is not told, so that each index counts.
func (l *Live) written(changes []dbadapter.Change) {
	for _, p := range l.places {
		if p.tooMany {
			continue
		}
		for i := range changes {
			p.add(changes[i].Index)
		}
	}
	if len(l.places) > 0 {
		l.bound()
	}
}

// placed are the places of a prefix in a span, ascending. It must come after the
// snapshot that is read there.
func (l *Live) placed(prefix []byte, span wire.Span) (in []dbadapter.Index, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.find(prefix)
	if at < 0 {
		return nil, false
	}
	p := l.places[at]
	l.places = append(slices.Delete(l.places, at, at+1), p)
	p.used = true
	if !p.known || p.tooMany {
		return nil, false
	}
	first, end := span.All()
	for g := first / dbadapter.RangesInGroup; g <= (end-1)/dbadapter.RangesInGroup; g++ {
		for _, i := range p.groups[g] {
			if span.Holds(i) {
				in = append(in, i)
			}
		}
	}
	slices.Sort(in)
	return slices.Compact(in), true
}

// Rest forgets what is remembered for large syncs of prefixes and was not asked for since
// the last Rest.
func (l *Live) Rest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.places = slices.DeleteFunc(l.places, func(p *places) bool {
		idle := !p.used && (p.known || p.tooMany)
		p.used = false
		return idle
	})
}
