package iblt

// TableCell is a cell of the paper's table: sums over the pairs (x, y) that
// were inserted into it, less those that were deleted. The TableConfig says
// how they add up, and which of them are kept.
type TableCell struct {
	Count      int32  // Σ 1, modulo 2^32
	KeySum     uint64 // Σ x, or what is left of x with Quotient
	ValueSum   uint64 // Σ y
	KeyCheck   uint64 // Σ G1(x), the paper's hashkeySum; or Σ x·y with CheckProducts
	ValueCheck uint64 // Σ G2(x, y), the paper's hashvalueSum
}

// hashed is a pair with its two check hashes.
//
// The paper takes G2 of the value alone, and this table takes it of the pair.
// Otherwise a cell would look empty into which (1, a) and (2, b) were
// inserted, and from which (1, b) and (2, a) were deleted.
type hashed struct {
	x, y     uint64
	g1, g2   uint64
	keyCheck uint64 // what a cell adds to its KeyCheck: g1, or x·y with CheckProducts
}

// add adds times copies of a pair to a cell; code is what the cell keeps of
// its key. A negative number takes copies out. It is a longer number than Count,
// which has no 2^31 to take out −2^31 copies with.
func (c *TableCell) add(sums Sums, code uint64, e *hashed, times int64) {
	c.Count += int32(times)
	if sums == XOR {
		// An even number of copies cancels. Parity decides without a branch, so that
		// nothing shows whether a pair was added.
		mask := -(uint64(times) & 1)
		c.KeySum ^= code & mask
		c.ValueSum ^= e.y & mask
		c.KeyCheck ^= e.keyCheck & mask
		c.ValueCheck ^= e.g2 & mask
		return
	}
	n := uint64(times)
	c.KeySum += n * code
	c.ValueSum += n * e.y
	c.KeyCheck += n * e.keyCheck
	c.ValueCheck += n * e.g2
}

// sub takes the content of d out of c.
func (c *TableCell) sub(sums Sums, d *TableCell) {
	c.Count -= d.Count
	if sums == XOR {
		c.KeySum ^= d.KeySum
		c.ValueSum ^= d.ValueSum
		c.KeyCheck ^= d.KeyCheck
		c.ValueCheck ^= d.ValueCheck
		return
	}
	c.KeySum -= d.KeySum
	c.ValueSum -= d.ValueSum
	c.KeyCheck -= d.KeyCheck
	c.ValueCheck -= d.ValueCheck
}
