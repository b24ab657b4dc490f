package bfield

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/syncd-io/syncd/bfield/internal/workers"
	"github.com/syncd-io/syncd/bfield/keyed"
)

// Answer is what a look-up knows.
type Answer uint8

const (
	// Absent: the key was never inserted. This is certain.
	Absent Answer = iota
	// Found: the value is that of the key, if the key was inserted. A key that
	// was not is answered so at the rate α.
	Found
	// Indeterminate: the key may have one of several values, or may never have
	// been inserted. Candidates lists the values. In a repaired field no inserted key
	// is answered so.
	Indeterminate
)

func (a Answer) String() string {
	if a <= Indeterminate {
		return [...]string{"absent", "found", "indeterminate"}[a]
	}
	return fmt.Sprintf("Answer(%d)", uint8(a))
}

var (
	// ErrValue is returned for a value of θ or more.
	ErrValue = errors.New("bfield: value out of range")
	// ErrContradiction is returned when one key was inserted with two values.
	ErrContradiction = errors.New("bfield: one key with two values")
	// ErrCascade is returned if arrays without end would be needed. It does not
	// happen with sensible plans.
	ErrCascade = errors.New("bfield: too many arrays")
)

// Field is a B-field. Any number of goroutines may look up at once; Add needs the
// field for itself. Use New, Build or Open.
type Field struct {
	seed
	plan    Plan
	workers int
	codes   uint64   // C(ν, κ)
	table   []uint64 // the code of each rank, if these are few

	// levels are the arrays of the cascade. A key is in levels[0]; if that is
	// indeterminate, also in levels[1], and so on.
	levels []array
	// repaired: no insertion since the cascade was last completed. Only then
	// does a miss in a secondary array mean that the key is absent.
	repaired bool
}

// entry is an inserted key and its value.
type entry struct {
	key   key
	value uint64
}

// tableCodes is the most codes that are kept ready: 16 KiB of them.
const tableCodes = 2048

// New returns an empty field. Add puts keys into it that arrive one by one. It keeps
// nothing of them: RepairedFrom is given them again. If all keys are at hand, Build is
// faster.
func New(c Config) (*Field, error) {
	plan, err := NewPlan(c)
	if err != nil {
		return nil, err
	}
	return newField(plan, c.Seed, c.Workers), nil
}

func newField(plan Plan, s uint64, most int) *Field {
	f := &Field{plan: plan, seed: seed(s), repaired: true}
	f.workers, _ = workers.Of(most) // Config.check has bounded it
	f.prepare()
	f.levels = []array{newArray(plan.arrayBits(plan.Keys), plan.Nu)}
	return f
}

// prepare derives from the plan what look-ups use.
func (f *Field) prepare() {
	p := &f.plan
	p.unasked = min(p.Hashes, bits.Len(uint(p.Nu/p.Kappa))+2)
	f.codes = Codes(p.Nu, p.Kappa)
	if f.codes <= tableCodes {
		f.table = make([]uint64, f.codes)
		for rank := range f.table {
			f.table[rank] = codeOf(uint64(rank), p.Nu, p.Kappa)
		}
	}
}

// Plan returns the plan that the field was made by. Its Keys are those of a Build that
// had more than planned.
func (f *Field) Plan() Plan { return f.plan }

// mark puts an entry into the primary array.
func (f *Field) mark(e entry) {
	f.repaired = false
	f.levels[0].insert(e.key, f.encode(e), f.plan.Hashes)
	f.levels[0].keys++
}

// encode returns the marker of an entry. It is the same in all arrays.
func (f *Field) encode(e entry) uint64 {
	rank := e.value + e.key.whitening(f.codes)
	if rank >= f.codes {
		rank -= f.codes
	}
	if f.table != nil {
		return f.table[rank]
	}
	return codeOf(rank, f.plan.Nu, f.plan.Kappa)
}

// decode returns the value of a marker; it may be θ or more, which no inserted
// key has.
func (f *Field) decode(k key, code uint64) uint64 {
	rank, w := rankOf(code), k.whitening(f.codes)
	if rank < w {
		rank += f.codes
	}
	return rank - w
}

// Lookup returns the value of a key. If the answer is not Found, the value is 0.
func (f *Field) Lookup(key keyed.Key) (uint64, Answer) { return f.lookup(f.keyOf(key)) }

func (f *Field) lookup(k key) (uint64, Answer) {
	return f.judge(k, f.levels[0].common(k, f.mask(), &f.plan))
}

// mask is ν ones.
func (f *Field) mask() uint64 { return ^uint64(0) >> (64 - f.plan.Nu) }

// fewer reports whether less than kappa bits are ones. κ is 1 or 2 as a rule.
func fewer(acc uint64, kappa int) bool {
	switch kappa {
	case 1:
		return acc == 0
	case 2:
		return acc&(acc-1) == 0
	}
	return bits.OnesCount64(acc) < kappa
}

// judge answers from what is common to the windows in the primary array.
func (f *Field) judge(k key, acc uint64) (uint64, Answer) {
	if fewer(acc, f.plan.Kappa) {
		return 0, Absent
	}
	left, answer := f.descend(k, acc)
	if answer != Found {
		return 0, answer
	}
	value := f.decode(k, left)
	if value < f.plan.Values {
		return value, Found
	}
	// A code that stands for no value. In the primary array no inserted key shows
	// it, as its own marker would be among the ones. In a secondary one, a key
	// that is not yet repaired may.
	if left == acc || f.repaired {
		return 0, Absent
	}
	return 0, Indeterminate
}

// descend goes through the secondary arrays as long as more than κ ones are
// left. It returns those left with at least κ. A key has one marker in all its
// arrays, so the ones must be common to all of them. The paper looks at each
// array alone. That leaves more keys indeterminate, and can answer a key that
// is not yet repaired with another one's value.
func (f *Field) descend(k key, acc uint64) (uint64, Answer) {
	for level := 1; ; level++ {
		if bits.OnesCount64(acc) == f.plan.Kappa {
			return acc, Found
		}
		if level == len(f.levels) {
			return acc, Indeterminate
		}
		next := f.levels[level].common(k.at(level), acc, &f.plan)
		if fewer(next, f.plan.Kappa) {
			// Not in this array. Either the key was never inserted, or it
			// turned indeterminate after the array was made.
			if f.repaired {
				return 0, Absent
			}
			return acc, Indeterminate
		}
		acc = next
	}
}

// Candidates returns the values that a key may have, in no special order. There is
// no value if it is absent, one if it is found, and several if it is
// indeterminate. The value of an inserted key is among them, unless the codes that
// the common ones allow are very many. No more than MaxCandidates values are
// returned, and no more than 64 times as many codes are tried. Without a repair they
// are those of the primary array, also for keys that Lookup finds.
func (f *Field) Candidates(key keyed.Key) []uint64 {
	k := f.keyOf(key)
	acc := f.levels[0].common(k, f.mask(), &f.plan)
	if fewer(acc, f.plan.Kappa) {
		return nil
	}
	if f.repaired {
		var answer Answer
		if acc, answer = f.descend(k, acc); answer == Absent {
			return nil
		}
	}
	var places []int
	for rest := acc; rest != 0; rest &= rest - 1 {
		places = append(places, bits.TrailingZeros64(rest))
	}
	var values []uint64
	// All ways to choose κ of the ones, spread over their places; not all need
	// stand for a value.
	choices := min(Codes(len(places), f.plan.Kappa), 64*MaxCandidates)
	for rank := uint64(0); rank < choices && len(values) < MaxCandidates; rank++ {
		code := uint64(0)
		for rest := codeOf(rank, len(places), f.plan.Kappa); rest != 0; rest &= rest - 1 {
			code |= 1 << places[bits.TrailingZeros64(rest)]
		}
		if value := f.decode(k, code); value < f.plan.Values {
			values = append(values, value)
		}
	}
	return values
}
