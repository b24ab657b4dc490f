package locator

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/ribbon"
)

// Delta is where the keys go that are new since the base was built.
type Delta uint8

const (
	// ExactDelta puts them into the exact map: 7.5 bytes each or so, and each
	// answers Exact.
	ExactDelta Delta = iota
	// FieldDelta puts them into a B-field: half of that. They answer Likely,
	// and the part β of them OneOf until Repair; it adds its own false positives
	// to the base's.
	FieldDelta
)

// Config says what a Locator is for. The zero value of a field means its default.
type Config struct {
	// Shards is how many shards there are: 1 to MaxShards. It is needed.
	Shards int
	// FalsePositiveBits is f: of a key that was never fed, the base names a
	// shard with probability 2^-f. 1 to MaxFalsePositiveBits; the default is 12.
	FalsePositiveBits int
	// Delta is where new keys go.
	Delta Delta
	// Seed of the hashes; a random one that others do not know keeps them from
	// choosing keys that are answered wrongly, or that crowd.
	Seed uint64
	// Workers is how many goroutines build a base at once, up to 256; the default is
	// GOMAXPROCS. It is not saved.
	Workers int
}

var (
	// ErrConfig means that no Locator is as configured.
	ErrConfig = errors.New("locator: impossible configuration")
	// ErrShard means that there is no such shard.
	ErrShard = errors.New("locator: no such shard")
	// ErrFormat means that bytes are no saved Locator.
	ErrFormat = errors.New("locator: not a saved locator")
	// ErrContradiction means that a feed gave more than MaxSeveral keys several
	// shards each.
	ErrContradiction = errors.New("locator: a feed that contradicts itself")
)

// Locator says in which shard a key is. Any number of goroutines may look up,
// without a lock, whatever else goes on; calls that change it take turns.
type Locator struct {
	config Config
	plan   func() (bfield.Plan, error) // of the delta's field, for one key

	// What look-ups read: it never changes, but for its tail. It is replaced as
	// a whole, under writing.
	view atomic.Pointer[view]

	writing    sync.Mutex // guards what follows, and writing to the tail
	rebuilding bool       // then the exact map takes every change as it is
	repairing  bool       // then it takes new keys too
	folds      int
	rebuilds   int

	maintaining sync.Mutex // one Rebuild or Repair at a time; taken before writing
}

// view is all that a look-up asks, from top to bottom.
type view struct {
	tail  *tail
	run   *run
	older *run // of before the rebuild that goes on; else nil
	base  *ribbon.Map
	field *bfield.Field // FieldDelta's; nil while it has no key

	// several are the shards of keys that the last feed put into several; in
	// the exact map their code is that of severalShards.
	several map[uint64][]Shard
}

// New returns an empty Locator.
func New(c Config) (*Locator, error) {
	if c.FalsePositiveBits == 0 {
		c.FalsePositiveBits = defaultFalsePositiveBits
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	base, _, err := ribbon.BuildMapFrom(c.base(), func(func(_, _ uint64) bool) error { return nil }, 0)
	if err != nil {
		return nil, err
	}
	l := newLocator(c, &view{tail: newTail(0), base: base})
	if c.Delta == FieldDelta {
		if _, err := l.plan(); err != nil {
			return nil, fmt.Errorf("%w (%w)", ErrConfig, err)
		}
	}
	return l, nil
}

func (c Config) check() error {
	switch {
	case c.Shards < 1 || c.Shards > MaxShards:
		return fmt.Errorf("%w: %d shards; 1 to %d are possible", ErrConfig, c.Shards, MaxShards)
	case c.FalsePositiveBits < 1 || c.FalsePositiveBits > MaxFalsePositiveBits:
		return fmt.Errorf("%w: a false positive rate of 2^-%d; 2^-1 to 2^-%d are possible", ErrConfig, c.FalsePositiveBits, MaxFalsePositiveBits)
	case c.Delta > FieldDelta:
		return fmt.Errorf("%w: delta %d", ErrConfig, c.Delta)
	case c.Workers < 0 || c.Workers > bfield.MaxWorkers:
		return fmt.Errorf("%w: %d workers", ErrConfig, c.Workers)
	}
	return nil
}

func newLocator(c Config, v *view) *Locator {
	l := &Locator{config: c}
	l.plan = sync.OnceValues(func() (bfield.Plan, error) { return bfield.NewPlan(c.field(1)) })
	l.view.Store(v)
	return l
}

// base is how the base is built.
func (c Config) base() ribbon.Config {
	return ribbon.Config{
		ValueBits: max(1, bits.Len(uint(c.Shards-1))), FingerprintBits: c.FalsePositiveBits,
		Seed: keyed.Number(seedOfBase).Hash(c.Seed), Workers: c.Workers,
	}
}

// field is how the delta's field is made for a number of keys.
func (c Config) field(keys uint64) bfield.Config {
	return bfield.Config{
		Keys: keys, Values: uint64(c.Shards), FalsePositive: math.Ldexp(1, -c.FalsePositiveBits),
		Seed: keyed.Number(seedOfField).Hash(c.Seed), Workers: c.Workers,
	}
}

// The structures hash under seeds of their own, so that a key which is answered
// wrongly by one is not by the other.
const (
	seedOfBase = iota
	seedOfField
)

// Codes of entries: 0 to Shards − 1 are shards.
func (c Config) gone() uint32          { return uint32(c.Shards) }
func (c Config) severalShards() uint32 { return uint32(c.Shards) + 1 }
func (c Config) codeBits() uint        { return uint(bits.Len32(c.severalShards())) }

// exact asks the exact map.
func (v *view) exact(key uint64) (code uint32, ok bool) {
	if code := v.tail.get(key); code != 0 {
		return code&^below - 1, true
	}
	if code, ok := v.run.get(key); ok {
		return code, true
	}
	return v.older.get(key)
}

// lower is what the layers below the exact map say of a hash.
func (v *view) lower(hash uint64) (Shard, Answer) {
	if s, ok := v.base.Lookup(keyed.Number(hash)); ok {
		return Shard(s), Likely
	}
	return v.delta(hash)
}

func (v *view) delta(hash uint64) (Shard, Answer) {
	if v.field == nil {
		return 0, Nowhere
	}
	s, answer := v.field.Lookup(keyed.Number(hash))
	switch answer {
	case bfield.Found:
		return Shard(s), Likely
	case bfield.Indeterminate:
		return 0, OneOf
	}
	return 0, Nowhere
}
