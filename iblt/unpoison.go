package iblt

import (
	"errors"
	"fmt"
	"iter"
)

// ErrNoValueCheck tells that a table without hashvalueSum was asked for what
// needs it.
var ErrNoValueCheck = errors.New("the table has no checks of values")

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
	Passes     int        // passes over the local pairs
}

// Unpoison finishes what Subtract began, as the paper's "An Example
// Application" says. The table must hold the difference between a peer's pairs
// and the local ones, which are given by ours, key and value, each key once;
// it stays as it was.
//
// A key that both sides hold with different values poisons its cells: its
// value was inserted once and deleted once, and a listing cannot get it out,
// because the key itself cancelled. So each local pair is inserted again on
// trial: if one of its cells then holds one pair only, with the same key, that
// is the peer's pair. It is taken out, which may leave further cells with one
// pair; where nothing was found, the local pair is deleted again. The local
// pairs are passed over until a pass finds nothing, or nothing is left.
//
// A pass takes k hashes and k cells for each local pair, however few the
// differences are. A Decoder of coded cells reads the key out of the poisoned
// cell, by one division and one look-up; see docs/IBLT.md for both in figures.
//
// It fails with ErrNoValueCheck without CheckPairs: hashkeySum alone would
// accept any local pair of a poisoned cell.
func (t *Table) Unpoison(ours iter.Seq2[uint64, uint64]) (Reconciliation, error) {
	if t.layout.config.Checks != CheckPairs {
		return Reconciliation{}, fmt.Errorf("unpoison a table: configure it with CheckPairs: %w", ErrNoValueCheck)
	}
	left := t.Clone()
	p := left.newPeeling()
	p.scan()
	var r Reconciliation
	done := left.drained()
	for progress := true; progress && !done; {
		progress = false
		r.Passes++
		for x, y := range ours {
			theirs, ok := p.reinsert(x, y)
			if ok {
				r.Mismatched = append(r.Mismatched, Mismatch{Key: x, Theirs: theirs, Ours: y})
				progress = true
			}
		}
		done = left.drained()
	}
	r.Inserted, r.Deleted, r.Complete = p.found.Inserted, p.found.Deleted, done
	return r, nil
}

// reinsert looks for a cell that the local pair (x, y), inserted again, leaves
// with the peer's pair of the same key alone, and takes both out.
func (p *peeling) reinsert(x, y uint64) (theirs uint64, ok bool) {
	t := p.t
	l := t.layout
	e := l.hash(x, y)
	var room places
	all := t.places(&e, &room)
	for _, at := range all {
		// Only such a cell can come to hold one pair of this key: its count is
		// that of a deletion less, and so is its key's sum.
		if c := &t.cells[at.cell]; c.Count != 0 || c.KeySum&l.keyMask != 0 || c.ValueSum == 0 || p.budget == 0 {
			continue
		}
		trial := t.cells[at.cell]
		trial.add(l.config.Sums, at.code, &e, 1)
		pair, pure := l.only(&trial, at.cell)
		if !pure || pair.x != x {
			continue
		}
		p.budget--
		p.remove(&e, all, -1)
		p.remove(&pair, all, 1)
		p.drain()
		return pair.y, true
	}
	return 0, false
}
