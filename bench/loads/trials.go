package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/syncd-io/syncd/bfield/cuckoo"
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/internal/trials"
)

// shape is a kind of table, and what is known of its largest load.
type shape struct {
	hashes, slots int
	slides        float64 // Sanders, "Space efficient hash tables", capacity limits; 0 where they give no limit
	theory        float64 // see loads in package cuckoo
}

func (s shape) String() string { return fmt.Sprintf("H = %d, B = %d", s.hashes, s.slots) }

var shapes = []shape{
	{2, 1, .5, .5},
	{2, 2, .897, .89701},
	{2, 3, .959, .95915},
	{2, 4, .980, .98037},
	{2, 5, .989, .98955},
	{2, 6, .994, .99407},
	{2, 7, .996, .99649},
	{2, 8, .998, .99785},
	{3, 1, .918, .91794},
	{3, 2, .988, .98820},
	{3, 3, .997, .99729},
	{3, 4, .9992, .99925},
	{4, 1, .977, .97677},
	{4, 2, .998, .99824},
	{4, 3, .998, .99980},
	{4, 4, .99997, .99997},
}

// bounded is how many buckets an insertion into a Table may look at by default.
const bounded = 1 << 14

// exhaustive is enough for all buckets: a search meets many of them again.
func (o options) exhaustive() int { return min(4*o.slots, 1<<24) }

// table is one whose slots are about those of the options, for one trial.
func (o options) table(s shape, search, trial int) (*cuckoo.Table, *rand.Rand, error) {
	seed := o.seed<<32 | uint64(trial)
	// The planned load is lower than what is measured, so some 5 % fewer keys
	// are planned than there are slots; Stats tells how many there are.
	t, err := cuckoo.New(cuckoo.Config{
		Keys: int(float64(o.slots) * s.theory * .95), Hashes: s.hashes, Slots: s.slots,
		FalsePositive: 0x1p-28, Seed: seed, Fixed: true, Search: search,
	})
	return t, rand.New(rand.NewPCG(seed, uint64(s.hashes<<8|s.slots))), err
}

// figure is a mean with the half width of its 95 % interval.
type figure struct{ mean, half, least float64 }

func figureOf(xs []float64) figure {
	f := figure{least: math.Inf(1)}
	for _, x := range xs {
		f.mean += x / float64(len(xs))
		f.least = min(f.least, x)
	}
	sum := 0.0
	for _, x := range xs {
		sum += (x - f.mean) * (x - f.mean)
	}
	n := float64(len(xs))
	f.half = 2.1 * math.Sqrt(sum/(n-1)/n) // Student's t for 20 trials
	return f
}

// reached is the load at the first insertion without room, by search.
type reached struct {
	shape
	bounded, exhaustive figure
}

func (o options) loads() ([]reached, error) {
	rows := make([]reached, len(shapes))
	for i, s := range shapes {
		rows[i].shape = s
		for _, v := range []struct {
			search int
			to     *figure
		}{{bounded, &rows[i].bounded}, {o.exhaustive(), &rows[i].exhaustive}} {
			loads := make([]float64, o.trials)
			err := o.each(func(trial int) error {
				t, r, err := o.table(s, v.search, trial)
				for err == nil && t.Stats().Stash == 0 {
					err = t.Insert(keyed.Number(r.Uint64()), 0)
				}
				if err == nil {
					stats := t.Stats()
					loads[trial] = float64(stats.Len-1) / float64(stats.Slots)
				}
				return err
			})
			if err != nil {
				return nil, fmt.Errorf("%v: %w", s, err)
			}
			*v.to = figureOf(loads)
		}
	}
	return rows, nil
}

// each runs the trials on all cores.
func (o options) each(trial func(int) error) error {
	return trials.Run(o.trials, func() func(int) error { return trial })
}

// costShapes are those of the chart, which has eight colours for their two
// curves each.
var costShapes = []shape{shapes[3], shapes[5], shapes[8], shapes[11]}

// inverses are the values of 1/ε at which insertions are measured. At the last,
// the largest loads of single tables, which spread around theory, begin to count.
var inverses = []float64{2, 4, 8, 16, 32, 64, 128, 256}

// cost is what an insertion takes around a load.
type cost struct {
	inverse         float64 // 1/ε
	searched, moved figure
}

type costs struct {
	shape
	rows []cost
}

// costs fills tables and measures windows of insertions: around load theory − ε,
// a fifth of ε wide to each side. The tables are four times as large as those of
// loads, so that their limits spread half as much. A window that not all trials
// came through is left out.
func (o options) costs() ([]costs, error) {
	o.slots *= 4
	all := make([]costs, len(costShapes))
	for i, s := range costShapes {
		all[i].shape = s
		searched, moved := make([][]float64, len(inverses)), make([][]float64, len(inverses))
		for j := range inverses {
			searched[j], moved[j] = make([]float64, o.trials), make([]float64, o.trials)
		}
		err := o.each(func(trial int) error {
			t, r, err := o.table(s, o.exhaustive(), trial)
			if err != nil {
				return err
			}
			slots := float64(t.Stats().Slots)
			fill := func(load float64) error {
				for t.Len() < int(load*slots) {
					if err := t.Insert(keyed.Number(r.Uint64()), 0); err != nil {
						return err
					}
				}
				return nil
			}
			for j, inverse := range inverses {
				err := fill(s.theory - 1.2/inverse)
				before := t.Stats()
				if err == nil {
					err = fill(s.theory - 0.8/inverse)
				}
				if errors.Is(err, cuckoo.ErrFull) {
					searched[j][trial] = math.NaN()
					continue
				} else if err != nil {
					return err
				}
				after := t.Stats()
				n := float64(after.Len - before.Len)
				searched[j][trial] = float64(after.Work.Searched-before.Work.Searched) / n
				moved[j][trial] = float64(after.Work.Moved-before.Work.Moved) / n
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("%v: %w", s, err)
		}
		for j, inverse := range inverses {
			if c := (cost{inverse, figureOf(searched[j]), figureOf(moved[j])}); !math.IsNaN(c.searched.mean) && 1.2/inverse < s.theory {
				all[i].rows = append(all[i].rows, c)
			}
		}
	}
	return all, nil
}
