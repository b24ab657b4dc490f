package rangesum

import (
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// A table and those that it was shared with say what plain maps say, whichever of
// them changes.
func TestSharesAreApart(t *testing.T) {
	const seed = 1
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	type twin struct {
		table *Table
		plain map[dbadapter.Range]dbadapter.Sum
	}
	twins := []twin{{&Table{}, map[dbadapter.Range]dbadapter.Sum{}}}
	for step := range 20_000 {
		n := random.IntN(len(twins))
		w := &twins[n]
		i := dbadapter.Index(1 + random.Uint64N(1<<42-12))
		if random.IntN(2) == 0 {
			i = dbadapter.Index(1 + random.Uint64N(1<<38)) // of a few ranges, so that they change often
		}
		r := dbadapter.RangeOf(i)
		s := dbadapter.Sum{Records: random.Uint64N(3), Digest: dbadapter.Digest{random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64()}}
		switch random.IntN(40) {
		case 0:
			copied := twin{w.table.Share(), map[dbadapter.Range]dbadapter.Sum{}}
			for r, s := range w.plain {
				copied.plain[r] = s
			}
			if len(twins) < 5 {
				twins = append(twins, copied)
			} else {
				twins[random.IntN(5)] = copied
			}
		case 1:
			w.table.Set(r, s)
			w.plain[r] = s
		case 2:
			w.table.Sub(i, s)
			w.plain[r] = w.plain[r].Sub(s)
		default:
			w.table.Add(i, s)
			w.plain[r] = w.plain[r].Add(s)
		}
		if step%50 != 0 {
			continue
		}
		from := dbadapter.Range(random.IntN(dbadapter.Ranges + 1))
		to := dbadapter.Range(random.IntN(dbadapter.Ranges + 1))
		for n, w := range twins {
			var want, all dbadapter.Sum
			for r, s := range w.plain {
				all = all.Add(s)
				if from <= r && r < to {
					want = want.Add(s)
				}
			}
			if got := w.table.Of(from, to); got != want {
				t.Fatalf("step %d: table %d has %v in [%d, %d), not %v", step, n, got, from, to, want)
			}
			if got := w.table.Total(); got != all {
				t.Fatalf("step %d: table %d has %v in all, not %v", step, n, got, all)
			}
		}
	}
}

// A shared table costs pointers: what is not written to is not copied.
func TestShareCopiesNoSums(t *testing.T) {
	var live Table
	for r := range dbadapter.Range(dbadapter.Ranges) {
		from, _ := r.Bounds()
		live.Add(from, dbadapter.Sum{Records: 1})
	}
	kept := live.Share()
	live.Add(1, dbadapter.Sum{Records: 1})
	live.Add(2, dbadapter.Sum{Records: 1})
	for g := range live.groups {
		if shared := live.groups[g] == kept.groups[g]; shared != (g > 0) {
			t.Errorf("group %d: shared is %v", g, shared)
		}
	}
}

// A write changes a sum; a sync copies the table once.
func BenchmarkTable(b *testing.B) {
	var live Table
	for r := range dbadapter.Range(dbadapter.Ranges) {
		from, _ := r.Bounds()
		live.Add(from, dbadapter.Sum{Records: 1})
	}
	b.Run("Add", func(b *testing.B) {
		i := dbadapter.Index(1)
		for b.Loop() {
			live.Add(i, dbadapter.Sum{Records: 1})
			i = (i*0x9e3779b97f4a7c15)>>17 + 1
		}
	})
	b.Run("Share", func(b *testing.B) {
		for b.Loop() {
			live.Share()
		}
	})
	b.Run("Of", func(b *testing.B) {
		for b.Loop() {
			live.Of(0, dbadapter.Ranges)
		}
	})
}
