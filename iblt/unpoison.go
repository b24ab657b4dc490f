package iblt

import (
	"fmt"
	"iter"
)

// maxPasses bounds the passes over the local pairs. Honest tables take a few, and
// some tens near the threshold. With 1,000 mismatches in 1,250 cells and 3
// hashes, they take 11 to 39. A forged one could have each pass find one
// mismatch, and so take as many as it has cells.
const maxPasses = 256

// Mismatch is a key that two tables hold with different values.
type Mismatch struct {
	Key          uint64
	Theirs, Ours uint64
}

// Reconciliation is the difference between a table and a local set of pairs.
type Reconciliation struct {
	Inserted   []Entry    // theirs only
	Deleted    []Entry    // ours only
	Mismatched []Mismatch // both, with different values
	Complete   bool       // these are all
	Passes     int        // passes over the local pairs, with Unpoison
}

// Unpoison finishes what Subtract began, as the paper's "An Example
// Application" says. The table must hold the difference between a peer's pairs
// and the local ones; it stays as it was. ours yields the local pairs, each
// key once.
//
// A key that both sides hold with different values poisons its cells. Its
// value was inserted once and deleted once, and the key itself cancelled, so
// that a listing cannot find it. So each local pair is inserted again on
// trial. If one of its cells then holds one pair only, with the same key, that
// is the peer's pair. It is taken out, which may leave further cells with one
// pair. Where nothing was found, the local pair is deleted again. Passes over
// the local pairs end when one finds nothing or nothing is left. They also end
// after 256, which no honest table was seen to need.
//
// A pass takes k hashes and k cells for each local pair, however few the
// differences are. Solve takes a division and a look-up for each difference;
// docs/PAPER.md has both in figures.
//
// It fails with ErrNoValueCheck without CheckPairs or CheckProducts:
// hashkeySum alone would accept any local pair of a poisoned cell.
func (t *Table) Unpoison(ours iter.Seq2[uint64, uint64]) (Reconciliation, error) {
	if t.layout.valueCheckMask == 0 {
		return Reconciliation{}, fmt.Errorf("unpoison a table: configure it with CheckPairs or CheckProducts: %w", ErrNoValueCheck)
	}
	left := t.Clone()
	p := left.newPeeling()
	p.scan()
	var r Reconciliation
	done := left.drained()
	for progress := true; progress && !done && r.Passes < maxPasses; {
		progress = false
		r.Passes++
		for x, y := range ours {
			progress = p.reinsert(x, y) || progress
		}
		done = left.drained()
	}
	p.reconciled(&r, done)
	return r, nil
}

// reconciled completes r by what was found.
func (p *peeling) reconciled(r *Reconciliation, complete bool) {
	r.Inserted, r.Deleted, r.Mismatched = p.found.Inserted, p.found.Deleted, p.mismatched
	r.Complete = complete
}

// reinsert inserts the local pair (x, y) again, and looks for a cell that then
// holds only the peer's pair of the same key. It takes both pairs out.
func (p *peeling) reinsert(x, y uint64) bool {
	t := p.t
	l := t.layout
	e := l.hash(x, y)
	var room places
	all := t.places(&e, &room)
	for _, at := range all {
		// Only a cell whose count and key sum are zero can hold one pair of this key
		// after the insertion.
		if c := &t.cells[at.cell]; c.Count != 0 || c.KeySum&l.keyMask != 0 || c.ValueSum == 0 || p.budget == 0 {
			continue
		}
		trial := t.cells[at.cell]
		trial.add(l.config.Sums, at.code, &e, 1)
		pair, pure := l.only(&trial, at.cell)
		if !pure || pair.x != x {
			continue
		}
		p.exchanged(all, &pair, &e)
		p.drain()
		return true
	}
	return false
}

// Solve finishes what Subtract began without a pass over the local pairs. ours
// looks up the local value of a key. The table must hold the difference between
// a peer's pairs and the local ones, each key once on each side. It stays as it
// was.
//
// Take a cell that holds one key x, with the peer's value a and the local
// value b. All that is left of the sums is
//
//	count 0    keySum 0    valueSum a − b    product x·(a − b)
//
// Here + and − are exclusive or. The key is product/valueSum, a look-up gives b,
// and a is valueSum + b. It is a pair of values if hashvalueSum is G2(x, a) −
// G2(x, b) and x belongs to the cell. Taking it out may leave further cells with
// one pair or one such key.
//
// It takes O(m) time and at most as many look-ups as it tests cells. It fails
// with ErrNoProducts without CheckProducts.
func (t *Table) Solve(ours func(x uint64) (y uint64, ok bool)) (Reconciliation, error) {
	if t.layout.config.Checks != CheckProducts {
		return Reconciliation{}, fmt.Errorf("solve a table: configure it with CheckProducts: %w", ErrNoProducts)
	}
	left := t.Clone()
	p := left.newPeeling()
	p.lookup = ours
	p.scan()
	var r Reconciliation
	p.reconciled(&r, left.drained())
	return r, nil
}

// divide takes a key with two values out of its cells if it is all that the
// cell holds.
func (p *peeling) divide(c *TableCell, at int32) {
	l := p.t.layout
	if c.KeySum&l.keyMask != 0 || c.ValueSum == 0 {
		return
	}
	p.tests++
	x := product(c.KeyCheck, reciprocal(c.ValueSum))
	key := hashed{x: x, g1: l.keys.sum(x)} // as far as the places need it
	var room places
	all := p.t.places(&key, &room)
	if !holds(all, at) {
		return
	}
	y, ok := p.lookup(x)
	if !ok {
		return
	}
	ours, theirs := l.hash(x, y), l.hash(x, y^c.ValueSum)
	if (ours.g2^theirs.g2^c.ValueCheck)&l.valueCheckMask == 0 {
		p.exchanged(all, &theirs, &ours)
	}
}
