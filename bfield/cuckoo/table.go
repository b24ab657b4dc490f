package cuckoo

import (
	"math"
	"math/bits"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// Config says how a Table is made. Keys of 0 is a small table.
type Config struct {
	// Keys is how many keys are planned. Up to these the Table does not grow.
	Keys int
	// FalsePositive is the highest rate at which a key that was never inserted is
	// found. It holds at the planned number of keys. Zero stands for 2^-12. A
	// rate of α takes about log2(B/α) bits a slot, B as in Slots.
	FalsePositive float64
	// ValueBits is the width of values, from 0 (a set) to 32 and more. The
	// fingerprint shares the slot of 64 bits with it.
	ValueBits int
	// Hashes (2 to 4) and Slots of a bucket (1 to 8) are the shape. Zero stands
	// for 2 and 4.
	Hashes, Slots int
	// Seed of the hash that places keys.
	Seed uint64
	// Fixed keeps the Table from growing; an insertion beyond what fits is
	// ErrFull. Growth to g times the planned keys multiplies the false positive
	// rate by g. With fingerprints of f bits it ends at 2^(f/2) or 2^(f−8) times,
	// whichever is less. At f = 11 that is eight times.
	Fixed bool
	// Search is how many buckets an insertion looks at before it gives up. Zero
	// stands for 16,384; with more, loads come closer to the limit.
	Search int
}

// Table maps keys to values of a few bits, approximately: it stores
// fingerprints, no keys. Every key that was inserted answers its value. One that
// was not is found now and then, at the rate that Stats tells. Any number of
// goroutines may read it at once, or one may change it.
//
// The zero Table can only be the receiver of UnmarshalBinary; New returns one
// that works.
type Table struct {
	config Config // with the defaults filled in
	spread
	shape
	chunks [][]uint64
	count  int    // entries, those of stash included
	keys   int    // up to these the table does not grow
	grow   int    // entries beyond which it does
	most   uint64 // buckets that it may grow to
	splits int    // how many buckets one insertion splits at most
	stash  []identity
	search search
	work   Work
}

// New returns an empty Table, or ErrConfig.
func New(config Config) (*Table, error) {
	t, err := config.table()
	if err != nil {
		return nil, err
	}
	for uint64(len(t.chunks))<<chunkBits < t.buckets {
		t.chunks = append(t.chunks, make([]uint64, t.chunkWords()))
	}
	return t, nil
}

// limit sets how many entries the buckets may have before more are added.
func (t *Table) limit() {
	t.grow = max(t.keys, full(t.buckets, t.slots, growing(t.hashes, t.slots)))
}

// Insert adds a key with its value. Inserting it again with the same value
// changes nothing. Errors: ErrRange, ErrConflict, ErrCrowded, ErrFull; the Table
// holds what it held then.
func (t *Table) Insert(key keyed.Key, value uint64) error {
	return t.insert(key.Hash(t.config.Seed), value)
}

// Lookup returns the value of a key, and whether it was found.
func (t *Table) Lookup(key keyed.Key) (value uint64, ok bool) {
	return t.find(t.identify(key.Hash(t.config.Seed)))
}

// Delete takes a key with this value out, and reports whether it was found.
//
// The entry may be another key's, which is then no longer found. A Table cannot
// tell a key that was never inserted from one that looks the same. So delete
// only what was inserted. The value is asked for as a safeguard. For uniform
// values of v bits, a stranger's deletion does harm at the false positive rate
// divided by 2^v. Keys that look the same and have the same value share an
// entry, and the deletion of one takes it from both.
func (t *Table) Delete(key keyed.Key, value uint64) bool {
	return t.remove(key.Hash(t.config.Seed), value)
}

// Len is the number of entries.
func (t *Table) Len() int { return t.count }

// Stats returns the Table's.
func (t *Table) Stats() Stats {
	slots := int(t.buckets) * t.slots
	return Stats{
		Len: t.count, Buckets: int(t.buckets), Slots: slots, Load: float64(t.count) / float64(max(slots, 1)),
		Stash: len(t.stash), Work: t.work,
		Bytes:           len(t.chunks)*(8*t.chunkWords()+24) + 16*cap(t.stash) + nodeBytes*cap(t.search.nodes),
		FingerprintBits: t.fingerprint,
		FalsePositive:   t.rate(),
	}
}

// rate is the probability that a stranger is found. Its bucket by the first hash
// function, mod base, and its fingerprint are one of base·(2^f − 1) identities.
// As many of them are taken as there are entries. Neither the number of hash
// functions nor growth adds another.
func (t *Table) rate() float64 {
	identities := float64(t.base) * float64(uint64(1)<<t.fingerprint-1)
	return -math.Expm1(-float64(t.count) / identities)
}

// reach bounds an insertion. It goes as deep as the searched buckets do when
// each leads on to new ones, and one deeper for those that lead back.
func (t *Table) reach() reach {
	ways := (t.hashes - 1) * t.slots
	depth := t.config.Search / t.hashes
	if ways > 1 {
		depth = bits.Len(uint(t.config.Search))/(bits.Len(uint(ways))-1) + 1
	}
	return reach{nodes: t.config.Search, depth: min(depth, maxDepth), slots: t.slots}
}
