package rateless

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// twin is the stupid twin of two sketches and a decoder: two maps, and sets of
// pairs for cells.
type twin struct {
	words        words
	theirs, ours map[Index]Checksum
}

// side is one side's pair in a cell.
type side struct {
	pair   Pair
	theirs bool
}

// sums adds up the pairs of a set that belong to cells [from, to), by the
// definition of a cell.
func (tw *twin) sums(set map[Index]Checksum, from, to int) []Cell {
	type sum struct {
		s1, s2 big.Int
		count  uint64
	}
	all := make([]sum, to)
	for k, v := range set {
		for _, at := range cellsOf(&tw.words, k, uint64(to)) {
			c := &all[at]
			c.s1.Add(&c.s1, new(big.Int).SetUint64(uint64(v)))
			c.s2.Add(&c.s2, new(big.Int).Mul(new(big.Int).SetUint64(uint64(k)), new(big.Int).SetUint64(uint64(v))))
			c.count++
		}
	}
	cells := []Cell{}
	for i := from; i < to; i++ {
		c := &all[i]
		cells = append(cells, Cell{
			S1:    c.s1.Mod(&c.s1, big.NewInt(p)).Uint64(),
			S2:    c.s2.Mod(&c.s2, big.NewInt(p)).Uint64(),
			Count: uint8(c.count % 16),
		})
	}
	return cells
}

// peel is what can be recovered from the first n cells by definition, and
// whether that is all: as long as some cell holds the pairs of one index only,
// that index is taken out of all cells.
func (tw *twin) peel(n int) (found map[Index]Difference, done bool) {
	cells := make([]map[side]bool, n)
	for i := range cells {
		cells[i] = map[side]bool{}
	}
	fill := func(set, other map[Index]Checksum, theirs bool) {
		for k, v := range set {
			if other[k] == v {
				continue // common pairs cancel
			}
			for _, at := range cellsOf(&tw.words, k, uint64(n)) {
				cells[at][side{Pair{Index: k, Checksum: v}, theirs}] = true
			}
		}
	}
	fill(tw.theirs, tw.ours, true)
	fill(tw.ours, tw.theirs, false)
	found = map[Index]Difference{}
	for progress := true; progress; {
		progress = false
		for _, cell := range cells {
			only := Index(0)
			for s := range cell {
				if only != 0 && only != s.pair.Index {
					only = 0
					break
				}
				only = s.pair.Index
			}
			if only == 0 {
				continue
			}
			difference := Difference{Index: only, Theirs: tw.theirs[only], Ours: tw.ours[only]}
			switch {
			case difference.Ours == 0:
				difference.Kind = MissingHere
			case difference.Theirs == 0:
				difference.Kind = MissingThere
			default:
				difference.Kind = Mismatched
			}
			found[only] = difference
			for _, other := range cells {
				delete(other, side{Pair{Index: only, Checksum: difference.Theirs}, true})
				delete(other, side{Pair{Index: only, Checksum: difference.Ours}, false})
			}
			progress = true
		}
	}
	done = n > 0
	for _, cell := range cells {
		done = done && len(cell) == 0
	}
	return found, done
}

func (tw *twin) lookup(indices []Index, sums []Checksum) error {
	for i, k := range indices {
		sums[i] = tw.ours[k]
	}
	return nil
}

// against compares a decoder that takes cells in the given bursts with the twin
// after each burst. A sum of several differences that passes for one by chance is taken
// out for a while: then the two have to agree again when the decoder is done.
// TestDecodes counts how often that comes to pass; strayed tells whether it did here.
func (tw *twin) against(key Key, theirs, ours *Sketch, bursts []int) (strayed bool, err error) {
	d := NewDecoder(ours, tw.lookup)
	d.gate = math.Inf(1) // the twin tests all cells
	at := 0
	for _, burst := range bursts {
		burst = min(burst, theirs.Len()-at)
		cells, err := theirs.Cells(at, at+burst)
		if err != nil {
			return false, err
		}
		if err := d.AddCells(cells); err != nil {
			return false, err
		}
		at += burst
		if err := bounded(d); err != nil {
			return false, err
		}
		if at < MinCells {
			continue
		}
		want, done := tw.peel(at)
		for _, got := range d.Differences() {
			if tw.theirs[got.Index] != got.Theirs || tw.ours[got.Index] != got.Ours {
				strayed = true
			}
		}
		if strayed = strayed || d.work.Undone+d.work.Refused > 0; strayed && !d.Done() {
			continue
		}
		if d.Done() != done || len(d.Differences()) != len(want) {
			return false, fmt.Errorf("after %d cells: done %v with %d differences, want %v with %d", at, d.Done(), len(d.Differences()), done, len(want))
		}
		for _, got := range d.Differences() {
			if want[got.Index] != got {
				return false, fmt.Errorf("after %d cells: found %+v, want %+v", at, got, want[got.Index])
			}
		}
	}
	return strayed, nil
}

// bounded checks the promise of work.
func bounded(d *Decoder) error {
	cells, w := d.Cells(), d.work
	switch {
	case d.live > cells:
		return fmt.Errorf("%d differences from %d cells", d.live, cells)
	case w.Acts > actsACell*cells+1, len(d.found) > w.Acts, len(d.bans) > w.Undone, w.Undone+w.Refused > w.Acts:
		return fmt.Errorf("%d cells, %d found, %d bans: %+v", cells, len(d.found), len(d.bans), w)
	case w.Tests > cells+w.Walked+w.Acts, w.Lookups > w.Tests, w.Moves > w.Walked+3*actsACell*cells:
		return fmt.Errorf("%d cells: %+v", cells, w)
	case len(d.agenda.heads) > 2*cells+1, cap(d.queue) > 4*cells+64, cap(d.round.queue) > 4*cells+64, cap(d.waiting) > 4*cells+64, len(d.known.slots) > 4*actsACell*cells+64:
		return fmt.Errorf("%d cells: memory for %d, %d, %d, %d", cells, len(d.agenda.heads), cap(d.queue), cap(d.round.queue), len(d.known.slots))
	}
	nonzero, late, live := 0, 0, 0
	for i := range d.cells {
		if !d.cells[i].isZero() {
			nonzero++
			if i >= cells/2 {
				late++
			}
		}
	}
	degrees := 0
	for _, f := range d.Differences() {
		degrees += len(cellsOf(&d.words, f.Index, uint64(cells)))
		live++
	}
	if d.nonzero != nonzero || d.late != late || d.live != live {
		return fmt.Errorf("%d cells, %d late, %d pairs, counted %d, %d, %d", nonzero, late, live, d.nonzero, d.late, d.live)
	}
	if w.Walked < degrees || w.Undone+w.Refused == 0 && w.Walked != degrees {
		return fmt.Errorf("%d cells walked for pairs of %d cells in all", w.Walked, degrees)
	}
	return nil
}

func TestTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := Key{byte(rapid.IntRange(0, 255).Draw(t, "key"))}
		m := rapid.IntRange(1, 200).Draw(t, "m")
		tw := &twin{words: expand(key), theirs: map[Index]Checksum{}, ours: map[Index]Checksum{}}
		theirs, ours := NewSketch(key, m), NewSketch(key, m)
		// Few indices and checksums, among them the smallest and largest, so
		// that pairs meet.
		indices := rapid.SampledFrom([]Index{1, 2, 3, 5, 8, 13, p - 1, p - 2, 1 << 41, 1 << 24, 77, 78, 79, 80, 81})
		rests := rapid.SampledFrom([]uint64{0, 1, 2, 3, 1<<34 - 2, 1<<34 - 3, 1 << 33, 1 << 22})
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			set, sketch := tw.theirs, theirs
			if rapid.Bool().Draw(t, "ours") {
				set, sketch = tw.ours, ours
			}
			k, v := indices.Draw(t, "k"), Checksum(0)
			if rest := rests.Draw(t, "v"); rest > 0 {
				v = Seal(k, rest)
			}
			old, fresh := Pair{Index: k, Checksum: set[k]}, Pair{Index: k, Checksum: v}
			if rapid.Bool().Draw(t, "replace") {
				sketch.Replace(old, fresh)
			} else {
				sketch.Remove(old)
				sketch.Add(fresh)
			}
			if set[k] = v; v == 0 {
				delete(set, k)
			}
		}
		from := rapid.IntRange(0, m).Draw(t, "from")
		to := rapid.IntRange(from, m).Draw(t, "to")
		window := NewWindow(key, from, to)
		for k, v := range tw.ours {
			window.Add(Pair{Index: k, Checksum: v})
		}
		want := tw.sums(tw.ours, from, to)
		got, err := ours.Cells(from, to)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("cells [%d, %d): %v, %v, want %v", from, to, got, err, want)
		}
		if got := window.Prefix(to - from); !slices.Equal(got, want) {
			t.Fatalf("window [%d, %d): %v, want %v", from, to, got, want)
		}
		bursts := rapid.SliceOfN(rapid.IntRange(0, 40), 1, 12).Draw(t, "bursts")
		if _, err := tw.against(key, theirs, ours, bursts); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTwinLarge has sets large enough for the mappings of the classes.
func TestTwinLarge(t *testing.T) {
	const seed = 11
	strayed := 0
	for trial := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, trial))
		key, m := Key{byte(trial)}, 700
		s := diverge(r, key, m, r.IntN(100), r.IntN(120), r.IntN(120), r.IntN(240))
		tw := &twin{words: expand(key), theirs: map[Index]Checksum{}, ours: s.local}
		for k, v := range s.local {
			tw.theirs[k] = v
		}
		for k, d := range s.want {
			if tw.theirs[k] = d.Theirs; d.Theirs == 0 {
				delete(tw.theirs, k)
			}
		}
		if got, want := s.theirs.Prefix(m), tw.sums(tw.theirs, 0, m); !slices.Equal(got, want) {
			t.Fatalf("trial %d: cells differ", trial)
		}
		var bursts []int
		for total := 0; total < m; total += bursts[len(bursts)-1] {
			bursts = append(bursts, 1+r.IntN(150))
		}
		astray, err := tw.against(key, s.theirs, s.ours, bursts)
		if err != nil {
			t.Fatalf("trial %d of seed %d: %v", trial, seed, err)
		}
		if astray {
			strayed++
		}
	}
	if strayed > 5 {
		t.Errorf("%d of 20 trials went astray (seed %d)", strayed, seed)
	}
}

// TestEverySmallDifference tries each two sets of at most four indices, with two
// checksums.
func TestEverySmallDifference(t *testing.T) {
	indices := []Index{1, 2, 3, p - 1}
	sets := []map[Index]Checksum{{}}
	for _, k := range indices {
		for _, set := range sets {
			for _, v := range []Checksum{Seal(k, 1), Seal(k, 1<<34-2)} {
				with := map[Index]Checksum{k: v}
				for other, sum := range set {
					with[other] = sum
				}
				sets = append(sets, with)
			}
		}
	}
	for _, theirs := range sets {
		for _, ours := range sets {
			a, b := NewSketch(Key{}, 20), NewSketch(Key{}, 20)
			for k, v := range theirs {
				a.Add(Pair{Index: k, Checksum: v})
			}
			for k, v := range ours {
				b.Add(Pair{Index: k, Checksum: v})
			}
			tw := &twin{words: expand(Key{}), theirs: theirs, ours: ours}
			if _, err := tw.against(Key{}, a, b, []int{1, 2, 9, 8}); err != nil {
				t.Fatalf("theirs %v, ours %v: %v", theirs, ours, err)
			}
		}
	}
}

// FuzzTwin reads changes of two small sets, and the bursts, from bytes.
func FuzzTwin(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 1, 2, 0, 2, 9}, uint8(30))
	f.Add([]byte{1, 200, 7, 0, 200, 9, 0, 3, 3, 1, 3, 3}, uint8(1))
	f.Fuzz(func(t *testing.T, changes []byte, burst uint8) {
		const m = 128
		key := Key{burst}
		tw := &twin{words: expand(key), theirs: map[Index]Checksum{}, ours: map[Index]Checksum{}}
		theirs, ours := NewSketch(key, m), NewSketch(key, m)
		for ; len(changes) >= 3; changes = changes[3:] {
			set, sketch := tw.theirs, theirs
			if changes[0]&1 == 1 {
				set, sketch = tw.ours, ours
			}
			k, rest := Index(changes[1])+1, uint64(changes[2])
			if changes[0]&2 == 2 {
				k = p - k
			}
			v := Checksum(0)
			if changes[0]&4 == 4 && rest != 0 {
				rest = 1<<34 - 1 - rest
			}
			if rest != 0 {
				v = Seal(k, rest)
			}
			sketch.Replace(Pair{Index: k, Checksum: set[k]}, Pair{Index: k, Checksum: v})
			if set[k] = v; v == 0 {
				delete(set, k)
			}
		}
		var bursts []int
		for total := 0; total < m; total += int(burst%64) + 1 {
			bursts = append(bursts, int(burst%64)+1)
		}
		if len(bursts) > 16 {
			bursts = append(bursts[:15], m) // the twin is slow
		}
		if _, err := tw.against(key, theirs, ours, bursts); err != nil {
			t.Fatal(err)
		}
	})
}
