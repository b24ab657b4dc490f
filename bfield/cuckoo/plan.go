package cuckoo

import (
	"fmt"
	"math"
)

// plan is what follows from a configuration.
type plan struct {
	config Config // with the defaults filled in
	shape  shape
	base   uint64
	most   uint64 // buckets to which the table may grow
	keys   int
}

// plan checks a configuration.
func (c Config) plan() (plan, error) {
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
	refuse := func(format string, args ...any) (plan, error) {
		return plan{}, fmt.Errorf("cuckoo: new table: %w: %s", ErrConfig, fmt.Sprintf(format, args...))
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
	p := plan{config: c, base: max(bucketsFor(c.Keys, c.Slots, load), tableBase)}
	p.keys = max(c.Keys, full(p.base, c.Slots, load))
	// The rate is about keys / (base · 2^f); see rate.
	fingerprint := int(math.Ceil(math.Log2(1 + float64(p.keys)/float64(p.base)/c.FalsePositive)))
	p.shape = shapeOf(c, fingerprint)
	if c.ValueBits < 0 || fingerprint > maxFingerprint || p.shape.width > 64 {
		return refuse("%d bits of value and %d of fingerprint", c.ValueBits, fingerprint)
	}
	// Which descendant of a bucket an entry is in follows from its fingerprint.
	// With few bits left for that, some descendants get more than they hold.
	p.most = p.base
	if grown := min(fingerprint/2, fingerprint-spareBits); !c.Fixed && grown > 0 {
		p.most = min(p.base<<grown, maxBuckets)
	}
	return p, nil
}

// table is one without chunks that has grown to so many buckets.
func (p *plan) table(buckets uint64) *Table {
	t := &Table{config: p.config, spread: spreadOf(p.base, buckets), shape: p.shape, keys: p.keys, most: p.most}
	// As many as hold the entry at the load at which the table grows. One more
	// makes up for a plan that was filled to the brim.
	t.splits = 1 + int(math.Ceil(1/(float64(p.shape.slots)*growing(p.shape.hashes, p.shape.slots))))
	t.limit()
	return t
}
