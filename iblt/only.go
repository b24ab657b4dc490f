package iblt

import "math/bits"

// maxHalvings bounds the ways in which a sum that wrapped around can be divided
// by an even count. Each factor 2 loses one bit, and both values of it are
// tried. 2^4 of them cover counts up to 31.
const maxHalvings = 4

// only returns the pair of which a cell holds nothing but copies, Count of
// them, or not ok. This is the test of section 3 in full: Count may be any
// number but zero, and the sums are divided by it. The quotients are a pair if
// their hashes, times Count, are the check sums. Unlike in the paper, the sums
// may have wrapped around.
//
// A cell that holds different pairs passes with a chance of 2^−CheckBits for
// each check. If Count has h factors 2, the chance is 4^h times that. The
// caller also finds out whether the cell is one of the pair's.
func (l *Layout) only(c *TableCell, at int32) (e hashed, ok bool) {
	d, copies := *c, uint64(c.Count)
	switch {
	case c.Count == 1:
	case c.Count == 0 || l.config.Checks == NoChecks:
		return e, false // without checks, a key deleted extraneously cannot be told
	case l.config.Sums == XOR:
		if c.Count != -1 {
			return e, false
		}
		copies = 1
	case c.Count < 0:
		d = TableCell{}
		d.sub(Wrapping, c)
		copies = -copies
	}
	keys := divide(d.KeySum&l.keyMask, copies, bits.Len64(l.keyMask))
	for i := range keys.n {
		x, ok := l.key(keys.quotient(i), at)
		if !ok {
			continue
		}
		e.x, e.g1 = x, 0
		if l.config.Checks != NoChecks || !l.config.Quotient {
			e.g1 = l.keys.sum(x)
		}
		if l.config.Checks == NoChecks {
			e.y = d.ValueSum
			return e, true
		}
		if e.keyCheck = e.g1; l.config.Checks == CheckProducts {
			e.keyCheck = product(x, d.ValueSum) // XOR: one copy
		}
		if (copies*e.keyCheck^d.KeyCheck)&l.keyCheckMask == 0 && l.onlyValue(&d, copies, &e) {
			return e, true
		}
	}
	return e, false
}

// onlyValue completes a pair whose key was found. Without a check of the
// value, several quotients cannot be told apart. The result is then the
// first, as if the sum had not wrapped around.
func (l *Layout) onlyValue(c *TableCell, copies uint64, e *hashed) bool {
	values := divide(c.ValueSum, copies, 64)
	for i := range values.n {
		e.y = values.quotient(i)
		if l.config.Checks == CheckKeys {
			return true
		}
		e.g2 = l.g2(e)
		if (copies*e.g2^c.ValueCheck)&l.valueCheckMask == 0 {
			return true
		}
	}
	return false
}

// quotients are the n numbers q with q·count = sum, modulo 2^width.
type quotients struct {
	first, step uint64
	n           int
}

func (q *quotients) quotient(i int) uint64 { return q.first + uint64(i)*q.step }

// divide divides modulo 2^width. An odd number has an inverse there. If the
// divisor has a factor 2^h, the sum must be a multiple of it, and h bits of
// the quotient are not known. With more than maxHalvings, only the quotient
// with zeros there is returned. It is right if the sum has not wrapped
// around.
func divide(sum, count uint64, width int) quotients {
	if count == 1 {
		return quotients{first: sum, n: 1}
	}
	h := bits.TrailingZeros64(count)
	if sum&(1<<h-1) != 0 || h >= width {
		return quotients{}
	}
	mask := ^uint64(0) >> (64 - width)
	q := quotients{first: sum * inverse(count>>h) & mask >> h, step: 1 << (width - h), n: 1}
	if h <= maxHalvings {
		q.n = 1 << h
	}
	return q
}

// inverse is the inverse of an odd number modulo 2^64, by Newton's iteration.
// a is its own inverse modulo 2^3, and each step doubles the exponent.
func inverse(a uint64) uint64 {
	x := a
	for range 5 {
		x *= 2 - a*x
	}
	return x
}
