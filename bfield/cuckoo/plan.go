package cuckoo

import (
	"fmt"
	"math"
)

// table checks a configuration. It returns the Table that follows from it, without chunks.
func (c Config) table() (*Table, error) {
	if c.FalsePositive == 0 {
		c.FalsePositive = 0x1p-12
	}
	if c.Hashes == 0 {
		c.Hashes = 2
	}
	if c.Slots == 0 {
		c.Slots = 4
	}
	if c.Search == 0 {
		c.Search = searchNodes
	}
	refuse := func(format string, args ...any) (*Table, error) {
		return nil, fmt.Errorf("cuckoo: new table: %w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	switch {
	case c.Hashes < 2 || c.Hashes > maxHashes:
		return refuse("%d hash functions, of 2 to %d", c.Hashes, maxHashes)
	case c.Slots < 1 || c.Slots > maxSlots:
		return refuse("%d slots a bucket, of 1 to %d", c.Slots, maxSlots)
	case !(c.FalsePositive >= 0x1p-40 && c.FalsePositive <= 0.5):
		return refuse("a false positive rate of %v", c.FalsePositive)
	case c.Search < minSearch || c.Search > maxSearch:
		return refuse("a search of %d buckets, of %d to %d", c.Search, minSearch, maxSearch)
	}
	load := planned(c.Hashes, c.Slots)
	if c.Keys < 0 || c.Keys > full(maxBuckets, c.Slots, load) {
		return refuse("%d keys", c.Keys)
	}
	base := max(bucketsFor(c.Keys, c.Slots, load), tableBase)
	t := &Table{config: c, keys: max(c.Keys, full(base, c.Slots, load)), most: base}
	// The rate is about keys / (base · 2^f); see rate.
	fingerprint := int(math.Ceil(math.Log2(1 + float64(t.keys)/float64(base)/c.FalsePositive)))
	t.shape = shapeOf(c, fingerprint)
	if c.ValueBits < 0 || fingerprint > maxFingerprint || t.width > 64 {
		return refuse("%d bits of value and %d of fingerprint", c.ValueBits, fingerprint)
	}
	// Which descendant of a bucket an entry is in follows from its fingerprint.
	// With few bits left for that, some descendants get more than they hold.
	if grown := min(fingerprint/2, fingerprint-spareBits); !c.Fixed && grown > 0 {
		t.most = min(base<<grown, maxBuckets)
	}
	// As many as hold the entry at the load at which the table grows. One more
	// makes up for a plan that was filled to the brim.
	t.splits = 1 + int(math.Ceil(1/(float64(t.slots)*growing(t.hashes, t.slots))))
	t.grown(base, base)
	return t, nil
}

// grown makes it a table of base buckets that has grown to so many.
func (t *Table) grown(base, buckets uint64) {
	t.spread = spreadOf(base, buckets)
	t.limit()
}
