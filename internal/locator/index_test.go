package locator

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/keyhash"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/seeded"
)

// memory is a Disk that fails on demand.
type memory struct {
	mu        sync.Mutex
	files     map[string][]byte
	unread    map[string]bool
	unwritten func(name string) bool
	reads     func() // called before each
}

func newMemory() *memory { return &memory{files: map[string][]byte{}, unread: map[string]bool{}} }

var errDisk = errors.New("input/output error")

func (d *memory) Read(name string) ([]byte, error) {
	if d.reads != nil {
		d.reads()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unread[name] {
		return nil, errDisk
	}
	return d.files[name], nil
}

func (d *memory) Write(name string, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unwritten != nil && d.unwritten(name) {
		return errDisk
	}
	d.files[name], d.unread[name] = data, false
	return nil
}

// twin is an Index with plain maps of what it was given.
type twin struct {
	*Index
	t     *testing.T
	r     *rand.Rand
	disk  *memory
	seq   uint64
	sets  []map[dbadapter.Index]Code            // nil: not known
	then  []map[uint64]map[dbadapter.Index]Code // what each was, by the place
	keys  []dbadapter.Index
	count map[string]int
}

const twinLeast = 24 // so that fields are built often

func newTwin(t *testing.T, shards, keys int) *twin {
	w := &twin{t: t, r: seeded.New(t), disk: newMemory(), count: map[string]int{}}
	for range shards {
		w.sets = append(w.sets, nil)
		w.then = append(w.then, map[uint64]map[dbadapter.Index]Code{})
	}
	for range keys {
		w.keys = append(w.keys, dbadapter.Index(w.r.Uint64N(keyhash.P)))
	}
	w.open()
	return w
}

func (w *twin) open() {
	var err error
	if w.Index, err = Open(Config{Shards: len(w.sets), Seed: w.r.Uint64(), Disk: w.disk}); err != nil {
		w.t.Fatal(err)
	}
	w.least = twinLeast
}

func (w *twin) code() Code {
	if w.r.IntN(20) == 0 {
		return Shared
	}
	return Code(w.r.IntN(len(w.sets)))
}

func (w *twin) set() placement.Shard { return placement.Shard(w.r.IntN(len(w.sets))) }

// given notes that a set is so as of the place that is returned.
func (w *twin) given(s placement.Shard, is map[dbadapter.Index]Code) Place {
	w.seq++
	w.sets[s], w.then[s][w.seq] = is, maps.Clone(is)
	return Place{Host: "a host", Log: 7, Seq: w.seq}
}

func sortedEntries(is map[dbadapter.Index]Code) (es []Entry) {
	for index, c := range is {
		es = append(es, NewEntry(index, c))
	}
	slices.Sort(es)
	return es
}

func (w *twin) replace() {
	s, is := w.set(), map[dbadapter.Index]Code{}
	for range w.r.IntN(len(w.keys)) {
		is[w.keys[w.r.IntN(len(w.keys))]] = w.code()
	}
	was := w.sets[s]
	if err := w.Replace(s, w.given(s, is), sortedEntries(is)); err != nil {
		if !errors.Is(err, errDisk) {
			w.t.Fatal(err)
		}
		w.sets[s] = was
	}
}

func (w *twin) apply() {
	s := w.set()
	var changes []Entry
	is := maps.Clone(w.sets[s])
	for range w.r.IntN(30) {
		index, c := w.keys[w.r.IntN(len(w.keys))], w.code()
		if w.r.IntN(3) == 0 {
			c = Gone
		}
		changes = append(changes, NewEntry(index, c))
		if w.sets[s] == nil {
			continue
		}
		if is[index] = c; c == Gone {
			delete(is, index)
		}
	}
	at := Place{}
	if w.sets[s] != nil {
		at = w.given(s, is)
	}
	w.Apply(s, at, changes)
}

func (w *twin) work() {
	run := w.Work(w.r.IntN(2) == 0)
	if run == nil {
		return
	}
	if w.r.IntN(2) == 0 { // changes come while it reads copies
		w.disk.reads = func() {
			if w.r.IntN(3) == 0 {
				w.apply()
			}
			if w.r.IntN(9) == 0 && w.files.TryLock() { // not while it writes one
				w.files.Unlock()
				w.disk.reads = nil
				if w.replace(); w.r.IntN(2) == 0 {
					w.save()
				}
			}
		}
	}
	if err := run(); err != nil && !errors.Is(err, errDisk) {
		w.t.Fatal(err)
	}
	w.disk.reads = nil
}

func (w *twin) save() {
	if err := w.Save(); err != nil && !errors.Is(err, errDisk) {
		w.t.Fatal(err)
	}
}

// restart opens what is on disk, after an end in peace or without.
func (w *twin) restart(peace bool) {
	if peace {
		w.save()
	}
	if w.r.IntN(4) == 0 { // a file is damaged
		name := copyName(w.set())
		if data := slices.Clone(w.disk.files[name]); len(data) > 0 {
			data[w.r.IntN(len(data))] ^= 1 << w.r.IntN(8)
			w.disk.files[name] = data
		}
	}
	w.open()
	for s := range w.sets {
		at, ok := w.Place(placement.Shard(s))
		if w.sets[s] = nil; !ok {
			continue
		}
		is, was := w.then[s][at.Seq]
		if !was {
			w.t.Fatalf("set %d is as of %d, which it never was", s, at.Seq)
		}
		w.sets[s] = maps.Clone(is)
		w.count["resumed"]++
	}
}

// check holds the index against what it was given.
func (w *twin) check() {
	for s, l := range w.of {
		if l != nil && l != w.live {
			w.t.Fatalf("set %d keeps older layers in memory", s)
		}
	}
	for s, is := range w.sets {
		s := placement.Shard(s)
		if _, ok := w.Place(s); !ok { // by an error of the disk
			w.sets[s] = nil
			if where, _ := w.Lookup(s, w.keys[0]); where != Ask {
				w.t.Fatalf("set %d, which is not known: %v", s, where)
			}
			continue
		}
		if is == nil {
			w.t.Fatalf("set %d is known", s)
		}
		for _, index := range w.keys {
			c, there := is[index]
			where, shard := w.Lookup(s, index)
			w.count[fmt.Sprint(there, where)]++
			switch {
			case there && where == Nowhere, there && where == In && Code(shard) != c:
				w.t.Fatalf("index %d of set %d, which is in %d, is %v %d", index, s, c, where, shard)
			}
		}
		if w.r.IntN(20) > 0 {
			continue
		}
		got, err := w.Entries(s)
		if err != nil && !errors.Is(err, errDisk) || err == nil && !slices.Equal(got, sortedEntries(is)) {
			w.t.Fatalf("set %d has %d entries, not %d: %v", s, len(got), len(is), err)
		}
	}
}

// Whatever is given, whenever work is done, whatever the disk does and wherever it ends: what is
// there is never nowhere, nor in another shard; and a copy is what it was as of its place.
func TestIndexTwin(t *testing.T) {
	w := newTwin(t, 8, 300)
	for range 1500 {
		switch w.r.IntN(12) {
		case 0, 1:
			w.replace()
		case 2:
			if s := w.set(); w.r.IntN(4) == 0 {
				w.Drop(s)
				w.sets[s] = nil
			}
		case 3, 4, 5:
			w.work()
		case 6:
			if w.r.IntN(3) == 0 {
				w.restart(w.r.IntN(2) == 0)
			}
		case 7:
			w.disk.unwritten = nil
			if w.r.IntN(4) == 0 {
				bad := copyName(w.set())
				w.disk.unwritten = func(name string) bool { return name == bad }
			}
			if w.r.IntN(20) == 0 {
				w.disk.unread[copyName(w.set())] = true
			}
		default:
			w.apply()
		}
		w.check()
	}
	// In peace all of it is known, and little is asked for.
	w.disk.unwritten, w.disk.unread = nil, map[string]bool{}
	for s := range w.sets {
		is := map[dbadapter.Index]Code{w.keys[s]: 1}
		if err := w.Replace(placement.Shard(s), w.given(placement.Shard(s), is), sortedEntries(is)); err != nil {
			t.Fatal(err)
		}
	}
	for run := w.Work(false); run != nil; run = w.Work(false) {
		if err := run(); err != nil {
			t.Fatal(err)
		}
	}
	clear(w.count)
	w.check()
	if w.count["true in a shard"] < len(w.sets)-1 || w.Stats().Sets != len(w.sets) {
		t.Errorf("in peace: %v; %+v", w.count, w.Stats())
	}
}

// filled is an Index of keys under which many look-ups can be made, and what it was given.
func filled(t *testing.T, r *rand.Rand, shards, keys int) (*Index, []map[dbadapter.Index]Code) {
	x, err := Open(Config{Shards: shards, Seed: r.Uint64(), Disk: newMemory()})
	if err != nil {
		t.Fatal(err)
	}
	sets := make([]map[dbadapter.Index]Code, shards)
	for s := range sets {
		sets[s] = map[dbadapter.Index]Code{}
		for range keys / shards {
			sets[s][dbadapter.Index(r.Uint64N(keyhash.P))] = Code(r.IntN(shards))
		}
		if err := x.Replace(placement.Shard(s), Place{}, sortedEntries(sets[s])); err != nil {
			t.Fatal(err)
		}
	}
	workAll(t, x)
	return x, sets
}

func workAll(t *testing.T, x *Index) {
	for run := x.Work(false); run != nil; run = x.Work(false) {
		if err := run(); err != nil {
			t.Error(err)
			return
		}
	}
}

// What the documentation promises of bytes and of answers, with a sixteenth of new keys and
// nearly as many moves and deletions.
func TestIndexPromises(t *testing.T) {
	const shards, keys = 256, 400_000
	r := seeded.New(t)
	x, sets := filled(t, r, shards, keys)
	built := x.Stats().Rebuilt
	change := func(s int, e Entry) {
		x.Apply(placement.Shard(s), Place{Seq: 1}, []Entry{e})
		if sets[s][e.Index()] = e.Code(); e.Code() == Gone {
			delete(sets[s], e.Index())
		}
	}
	gone := make([][]dbadapter.Index, shards)
	for s := range sets {
		old := slices.Collect(maps.Keys(sets[s]))
		for i := range len(old) / 17 {
			change(s, NewEntry(dbadapter.Index(r.Uint64N(keyhash.P)), Code(r.IntN(shards))))
			c := Gone
			if i%2 == 0 {
				c = Code(r.IntN(shards))
			} else {
				gone[s] = append(gone[s], old[i])
			}
			change(s, NewEntry(old[i], c))
		}
		if run := x.Work(true); run != nil {
			if err := run(); err != nil {
				t.Fatal(err)
			}
		}
	}
	st := x.Stats()
	if st.Rebuilt != built {
		t.Fatalf("the field was built anew: %+v", st)
	}
	if per := float64(st.Bytes()) / keys; per > 4.6 { // 4.45 at 10^7, where least numbers count less
		t.Errorf("%.3f bytes a key: %+v", per, st)
	}
	for s, indices := range gone {
		for _, index := range indices {
			if where, _ := x.Lookup(placement.Shard(s), index); where != Nowhere {
				t.Fatalf("index %d of set %d, which is gone, is %v", index, s, where)
			}
		}
	}
	ask, wrong, n := 0, 0, 0
	for s := range sets {
		for index, c := range sets[s] {
			n++
			switch where, shard := x.Lookup(placement.Shard(s), index); {
			case where == Nowhere:
				t.Fatalf("index %d of set %d is nowhere", index, s)
			case where == Ask:
				ask++
			case Code(shard) != c:
				wrong++
			}
		}
	}
	if ask > n/50 || wrong > 3 {
		t.Errorf("of %d keys %d are to be asked for, and %d are in a wrong shard", n, ask, wrong)
	}
	strangers := 0
	for range n {
		if where, _ := x.Lookup(placement.Shard(r.IntN(shards)), dbadapter.Index(r.Uint64N(keyhash.P))); where != Nowhere {
			strangers++
		}
	}
	if strangers > n/4096*3/2 {
		t.Errorf("of %d indices that are not there %d are in a shard, or asked for", n, strangers)
	}
}

// Look-ups during all else: keys that nothing changes stay where they are.
func TestLookupDuringChanges(t *testing.T) {
	const shards = 4
	r := seeded.New(t)
	x, sets := filled(t, r, shards, 8000)
	x.writing.Lock()
	x.least = 200
	x.writing.Unlock()
	var done atomic.Bool
	var readers sync.WaitGroup
	asked := make([]int, 2)
	for i := range asked {
		readers.Go(func() {
			for !done.Load() {
				for s := range sets {
					for index, c := range sets[s] {
						where, shard := x.Lookup(placement.Shard(s), index)
						if where == Nowhere || where == In && Code(shard) != c {
							t.Errorf("index %d of set %d, which is in %d, is %v %d", index, s, c, where, shard)
							done.Store(true)
							return
						}
						asked[i]++
					}
				}
			}
		})
	}
	readers.Go(func() {
		for !done.Load() {
			if run := x.Work(true); run != nil {
				if err := run(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	before := x.Stats().Rebuilt
	for i := 0; (i < 20_000 || x.Stats().Rebuilt < before+3) && !done.Load(); i++ {
		e := NewEntry(dbadapter.Index(r.Uint64N(keyhash.P)), Code(r.IntN(shards)))
		s := placement.Shard(r.IntN(shards))
		if _, ok := sets[s][e.Index()]; ok {
			continue
		}
		x.Apply(s, Place{Seq: uint64(i)}, []Entry{e})
		if i%3 == 0 {
			x.Apply(s, Place{Seq: uint64(i)}, []Entry{NewEntry(e.Index(), Gone)})
		}
	}
	done.Store(true)
	readers.Wait()
	if asked[0] == 0 || asked[1] == 0 {
		t.Errorf("look-ups: %v", asked)
	}
}

// A disk that does not take one set: others are written all the same; what cannot be written stays
// in memory, within a bound, and has nothing built over and over.
func TestIndexOnAFullDisk(t *testing.T) {
	r := seeded.New(t)
	x, sets := filled(t, r, 8, 8000)
	x.least = 100
	d := x.config.Disk.(*memory)
	d.unwritten = func(name string) bool { return name == copyName(3) }
	for s := range sets {
		for index := range sets[s] {
			x.Apply(placement.Shard(s), Place{Seq: 1}, []Entry{NewEntry(index, Gone), NewEntry(dbadapter.Index(r.Uint64N(keyhash.P)), 1)})
		}
	}
	for range 20 {
		if run := x.Work(false); run != nil {
			_ = run()
		}
	}
	if st := x.Stats(); st.Changed != 2*len(sets[3]) || st.Rebuilt > 4 {
		t.Errorf("one set of eight cannot be written: %+v", st)
	}
	for i := range mostChanged + 2000 {
		x.Apply(3, Place{Seq: 2}, []Entry{NewEntry(dbadapter.Index(i%100), Code(i/100%8))})
	}
	if _, ok := x.Place(3); ok || x.Stats().Damaged != 1 || x.Stats().ChangedBytes > 1<<20 {
		t.Errorf("changes without a bound: %+v", x.Stats())
	}
}

// What is saved is what was given last, also where the place is as before; and a place alone is
// saved, too.
func TestSaveWithoutNewPlace(t *testing.T) {
	x, sets := filled(t, seeded.New(t), 2, 100)
	at := Place{Host: "a host", Log: 3, Seq: 4}
	x.Apply(1, at, nil)
	x.Apply(0, Place{}, []Entry{NewEntry(1, 1)})
	sets[0][1] = 1
	if err := x.Save(); err != nil {
		t.Fatal(err)
	}
	x, err := Open(x.config)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := x.Place(1); got != at || !ok {
		t.Errorf("the place is %v, not %v", got, at)
	}
	for s := range sets {
		if got, err := x.Entries(placement.Shard(s)); err != nil || !slices.Equal(got, sortedEntries(sets[s])) {
			t.Errorf("set %d has %d entries, not %d: %v", s, len(got), len(sets[s]), err)
		}
	}
}

// A set that is compared with that of another host takes no room in the field but for what is new, and no
// look-up of it waits for Work, also where it is half of all keys.
func TestDifference(t *testing.T) {
	x, sets := filled(t, seeded.New(t), 2, 20_000)
	before, own := x.Stats(), sortedEntries(sets[1])
	gone, moved := dbadapter.Index(0), dbadapter.Index(0)
	for index, c := range sets[1] {
		switch {
		case gone == 0:
			gone = index
			delete(sets[1], index)
		case moved == 0:
			moved, sets[1][index] = index, 1-c
		}
	}
	x.Apply(1, Place{Seq: 1}, difference(own, sortedEntries(sets[1])))
	where, shard := x.Lookup(1, moved)
	if where != In || Code(shard) != sets[1][moved] {
		t.Errorf("what has moved is %v %d", where, shard)
	}
	if where, _ := x.Lookup(1, gone); where != Nowhere {
		t.Errorf("what is gone is %v", where)
	}
	if st := x.Stats(); st.Added != before.Added || st.Rebuilt != before.Rebuilt || st.Exact > 2 || x.Work(false) != nil {
		t.Errorf("%+v, and before %+v", st, before)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []Config{{Shards: 0, Disk: newMemory()}, {Shards: placement.MaxShards + 1, Disk: newMemory()}, {Shards: 2}} {
		if _, err := Open(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	x, err := Open(Config{Shards: 2, Disk: newMemory()})
	if err != nil {
		t.Fatal(err)
	}
	for _, es := range [][]Entry{{NewEntry(5, 0), NewEntry(5, 1)}, {NewEntry(5, 0), NewEntry(4, 0)}, {NewEntry(5, 2)}, {NewEntry(5, Gone)}} {
		if err := x.Replace(0, Place{}, es); err == nil {
			t.Errorf("entries %v are taken", es)
		}
	}
	if st := x.Stats(); st.Sets != 0 || len(x.config.Disk.(*memory).files) != 0 {
		t.Errorf("a refused set has changed something: %+v", st)
	}
}
