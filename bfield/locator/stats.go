package locator

import "math"

// Stats are counts of a Locator.
type Stats struct {
	Base    int // keys of the base
	Exact   int // entries of the exact map, the tail's among them
	Tail    int // entries of the tail
	Field   int // keys in the field of new keys
	Several int // keys that the last feed put into several shards

	// Bytes, by part.
	BaseBytes    int
	RunBytes     int // of the exact map; of two while a base is rebuilt
	TailBytes    int
	FieldBytes   int
	SeveralBytes int // about

	// FalsePositive is the probability that Lookup names a shard, or OneOf, for a
	// key that was never fed: the base's 2^-f, and with a field the same once more,
	// which it reaches when it has all keys that it is planned for.
	FalsePositive float64
	Repaired      bool // OneOf is said of no key in the field

	Folds    int // times that the tail was merged into the run
	Rebuilds int
}

// Bytes is the sum over the parts.
func (s Stats) Bytes() int {
	return s.BaseBytes + s.RunBytes + s.TailBytes + s.FieldBytes + s.SeveralBytes
}

// severalBytes is about what a key takes in the map of several: the map's slot, a
// slice, and its two shards.
const severalBytes = 96

// Stats returns the counts. Changes wait for it, look-ups do not.
func (l *Locator) Stats() Stats {
	l.writing.Lock()
	defer l.writing.Unlock()
	v := l.view.Load()
	base := v.base.Stats()
	s := Stats{
		Base: base.Keys, Exact: v.tail.n + v.run.len() + v.older.len(), Tail: v.tail.n, Several: len(v.several),
		BaseBytes: base.Bits / 8, RunBytes: v.run.bytes() + v.older.bytes(), TailBytes: v.tail.bytes(),
		SeveralBytes: severalBytes * len(v.several), FalsePositive: base.FalsePositive, Repaired: true,
		Folds: l.folds, Rebuilds: l.rebuilds,
	}
	if v.field != nil {
		f := v.field.Stats()
		s.Field, s.FieldBytes, s.Repaired = int(f.Keys), int(f.Bits/8), f.Repaired
		s.FalsePositive = 1 - (1-s.FalsePositive)*(1-math.Ldexp(1, -l.config.FalsePositiveBits))
	}
	return s
}
