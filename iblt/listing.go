package iblt

// Entry is a pair of a listing.
type Entry struct {
	Key, Value uint64
	// Count is how many times more often the pair was inserted than deleted, or
	// for a deleted one the reverse. It is at least 1.
	Count int
}

// Listing is what came out of a table.
type Listing struct {
	// Inserted are the pairs in the table, Deleted those that were deleted
	// more often than inserted. Their order means nothing, but is always the
	// same for the same cells.
	Inserted, Deleted []Entry
	// Complete tells that nothing is left: these are all pairs of the table. If
	// it is false, they are some of them ("list-incomplete" in the paper). There
	// are too many, or some keys have several values.
	Complete bool
}

// ListEntries lists the pairs of the table, which stays as it was, in O(m) time
// for m cells. With distinct keys, fewer than Capacity, it is complete but for
// a chance of O(n^(2−k)) for n keys (Theorem 1). Keys with several values are
// not listed; the others are, almost always, if those are few (Theorem 2).
func (t *Table) ListEntries() Listing { return t.Clone().Drain() }

// Drain lists like ListEntries, and takes what it lists out of the table. What
// remains is the 2-core, the pairs that have no cell for themselves. It spares
// the copy if the table is not needed any more.
func (t *Table) Drain() Listing {
	p := t.newPeeling()
	p.scan()
	return p.listing(t.drained())
}

// drained reports whether all cells are empty.
func (t *Table) drained() bool {
	for from, to := range t.live {
		for i := from; i < to; i++ {
			if !t.layout.empty(&t.cells[i]) {
				return false
			}
		}
	}
	return true
}

// peeling is a listing in progress. It finds cells that hold one pair and
// takes the pair out, which may leave others with one pair.
type peeling struct {
	t       *Table
	found   Listing
	queue   []int32 // cells that have changed since they were tested
	scanned int32   // cells from here on are still to be tested for the first time
	copies  bool    // cells with a count other than 1 and −1 are tested too
	// budget is how many more pairs may come out. A pair that is really there
	// leaves its cell empty for good, so there are never more such pairs than
	// cells. Forged cells could otherwise yield one pair again and again,
	// inserted by one cell and deleted by the next.
	budget int
	tests  int // cells tested, at most 2·m + k·m

	// lookup is our value of a key, for Solve alone. With it, cells that hold one
	// key with two values are tested too.
	lookup     func(x uint64) (y uint64, ok bool)
	mismatched []Mismatch
}

func (t *Table) newPeeling() *peeling {
	p := &peeling{t: t}
	for from, to := range t.live {
		p.budget += to - from
	}
	return p
}

// scan tests each cell, and the cells that change by what it yields. Most
// cells with a count beyond 1 get down to 1 by that. Only those that remain
// are divided by the count.
func (p *peeling) scan() {
	p.scanAll()
	if c := &p.t.layout.config; c.Sums == Wrapping && c.Checks != NoChecks {
		p.copies = true
		p.scanAll()
	}
}

func (p *peeling) scanAll() {
	for from, to := range p.t.live {
		for i := from; i < to; i++ {
			p.scanned = int32(i) + 1
			p.queue = append(p.queue, int32(i))
			p.drain()
		}
	}
}

// drain works through the queue.
func (p *peeling) drain() {
	for len(p.queue) > 0 {
		last := len(p.queue) - 1
		at := p.queue[last]
		p.queue = p.queue[:last]
		p.test(at)
	}
}

// test takes the pair of a cell out of all its cells if it is the only one.
func (p *peeling) test(at int32) {
	t := p.t
	c := &t.cells[at]
	if c.Count == 0 && p.lookup != nil && p.budget > 0 {
		p.divide(c, at)
		return
	}
	if c.Count == 0 || p.budget == 0 || !p.copies && c.Count != 1 && c.Count != -1 {
		return
	}
	p.tests++
	e, ok := t.layout.only(c, at)
	if !ok {
		return
	}
	var room places
	all := t.places(&e, &room)
	if !holds(all, at) {
		return // no pair, but a sum that looks so, or a forged one
	}
	p.take(&e, all, int64(c.Count))
}

// take lists count copies of a pair and takes them out of its cells.
func (p *peeling) take(e *hashed, from []place, count int64) {
	p.budget--
	if count > 0 {
		p.found.Inserted = append(p.found.Inserted, Entry{Key: e.x, Value: e.y, Count: int(count)})
	} else {
		p.found.Deleted = append(p.found.Deleted, Entry{Key: e.x, Value: e.y, Count: -int(count)})
	}
	p.remove(e, from, count)
}

// remove takes count copies of a pair out of its cells.
func (p *peeling) remove(e *hashed, from []place, count int64) {
	for _, at := range from {
		p.t.cells[at.cell].add(p.t.layout.config.Sums, at.code, e, -count)
		p.changed(at.cell)
	}
}

// changed has a cell tested again, unless its first test is still to come.
func (p *peeling) changed(at int32) {
	if at < p.scanned && (p.t.cells[at].Count != 0 || p.lookup != nil) {
		p.queue = append(p.queue, at)
	}
}

// exchanged notes a key that both sides hold with different values. It takes
// both pairs out of their cells: theirs was inserted, ours deleted.
func (p *peeling) exchanged(from []place, theirs, ours *hashed) {
	p.budget--
	p.mismatched = append(p.mismatched, Mismatch{Key: ours.x, Theirs: theirs.y, Ours: ours.y})
	sums := p.t.layout.config.Sums
	for _, at := range from {
		c := &p.t.cells[at.cell]
		c.add(sums, at.code, theirs, -1)
		c.add(sums, at.code, ours, 1)
		p.changed(at.cell)
	}
}

func (p *peeling) listing(complete bool) Listing {
	p.found.Complete = complete
	return p.found
}
