package iblt

import "math/bits"

// Layout is what a table's configuration decides: which cells a key goes into,
// and what it leaves there. It holds no cells, so that they can be elsewhere
// (see the example of oblivious selection). It is safe for concurrent use.
type Layout struct {
	config       TableConfig
	keys, values sipKey
	rounds       sipKey // of the permutations, with Quotient
	starts       []int  // of the subtables, and the end of the last
	shares       []uint32
	// The bits of KeySum, KeyCheck and ValueCheck that count.
	keyMask, keyCheckMask, valueCheckMask uint64
}

// NewLayout returns the Layout of a configuration, or ErrTableConfig.
func NewLayout(config TableConfig) (*Layout, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Layout{config: config, keyMask: ^uint64(0)}
	key, value := config.lengths()
	l.keyCheckMask, l.valueCheckMask = ^uint64(0)>>(64-key), ^uint64(0)>>(64-value)
	l.keys, l.values, l.rounds = tableKeys(config.Seed)
	parts := 1
	if config.Placement == Subtables {
		parts = config.Hashes
	}
	for i := range parts + 1 {
		l.starts = append(l.starts, i*config.Cells/parts)
	}
	if config.Quotient {
		quotients := ^uint64(0) / uint64(config.Cells/parts)
		l.keyMask = 1<<bits.Len64(quotients) - 1
	}
	var sum uint32
	for _, d := range config.Degrees {
		sum += uint32(d.Share)
		l.shares = append(l.shares, sum)
	}
	return l, nil
}

// Config returns the configuration, with the defaults filled in.
func (l *Layout) Config() TableConfig {
	c := l.config
	c.Degrees = append([]Degree(nil), c.Degrees...)
	return c
}

// place is a cell of a key, and what the cell keeps of the key. It keeps all
// of it, or with Quotient the part that the cell's number does not tell.
type place struct {
	cell int32
	code uint64
}

// places is room for the places of one key.
type places [MaxHashes]place

// hash returns the pair with its check hashes.
func (l *Layout) hash(x, y uint64) hashed {
	e := hashed{x: x, y: y}
	if l.config.Placement == Subtables && l.config.Checks == NoChecks && l.config.Quotient {
		return e // placed by permutations
	}
	e.g1 = l.keys.sum(x)
	e.keyCheck = e.g1
	if l.config.Checks == CheckProducts {
		e.keyCheck = product(x, y)
	}
	if l.valueCheckMask != 0 {
		e.g2 = l.g2(&e)
	}
	return e
}

// g2 is G2 of a pair whose G1 is known. For one x it is a keyed hash of y. For
// different x those hashes are independent.
func (l *Layout) g2(e *hashed) uint64 { return l.values.sum(e.y ^ bits.RotateLeft64(e.g1, 32)) }

// of returns the places of a pair, in order of the subtables.
func (l *Layout) of(e *hashed, room *places) []place {
	switch {
	case l.config.Quotient:
		return l.quotients(e.x, room)
	case l.config.Placement == Distinct:
		return l.distinct(e, room)
	}
	// A sequence of full hashes from the one of the key. Double hashing (a, a +
	// b, a + 2·b, …) would be cheaper and is not good enough. Two keys with the
	// same a and b modulo the size share all their cells. That has a chance of
	// 1/size², and with k independent hashes 1/size^k.
	at := e.g1
	for i := range l.config.Hashes {
		at += odd
		start := l.starts[i]
		offset, _ := bits.Mul64(mix64(at), uint64(l.starts[i+1]-start))
		room[i] = place{cell: int32(start) + int32(offset), code: e.x}
	}
	return room[:l.config.Hashes]
}

// distinct takes the first different cells of the key's sequence. The sequence
// runs through all numbers, so that it reaches each cell.
func (l *Layout) distinct(e *hashed, room *places) []place {
	at := e.g1
	size := uint64(l.config.Cells)
	want := l.degree(at)
	for n := 0; n < want; {
		at += odd
		cell, _ := bits.Mul64(mix64(at), size)
		if !holds(room[:n], int32(cell)) {
			room[n] = place{cell: int32(cell), code: e.x}
			n++
		}
	}
	return room[:want]
}

// degree is the number of cells of the key with the given hash.
func (l *Layout) degree(hash uint64) int {
	if len(l.shares) == 0 {
		return l.config.Hashes
	}
	total := l.shares[len(l.shares)-1]
	draw, _ := bits.Mul64(mix64(^hash), uint64(total))
	for i, end := range l.shares {
		if uint32(draw) < end {
			return l.config.Degrees[i].Hashes
		}
	}
	panic("iblt: a draw beyond the total of shares")
}

// holds reports whether one of the places is the cell.
func holds(in []place, cell int32) bool {
	for _, p := range in {
		if p.cell == cell {
			return true
		}
	}
	return false
}

// Places appends to dst the numbers of the cells that key x goes into.
func (l *Layout) Places(dst []int, x uint64) []int {
	var room places
	e := l.hash(x, 0)
	for _, p := range l.of(&e, &room) {
		dst = append(dst, int(p.cell))
	}
	return dst
}

// Apply adds times copies of the pair (x, y) to its cell number at; a negative
// number takes copies out. Zero leaves the cell as it is after the same work.
// It does nothing if at is not among the Places of x.
func (l *Layout) Apply(cell *TableCell, at int, x, y uint64, times int32) {
	var room places
	e := l.hash(x, y)
	for _, p := range l.of(&e, &room) {
		if int(p.cell) == at {
			cell.add(l.config.Sums, p.code, &e, int64(times))
		}
	}
}

// empty reports whether nothing is left in a cell, as far as the table looks.
func (l *Layout) empty(c *TableCell) bool {
	return l.reduced(c) == TableCell{}
}
