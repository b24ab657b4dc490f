package bfield

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/internal/seeded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, c Config, log Log, delay time.Duration) *Mutable {
	t.Helper()
	m, err := OpenMutable(MutableConfig{Config: c, Log: log, RepairDelay: delay})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestMutableTwin plays random operations against a map, with repairs,
// rebuilds and restarts between. After each repair the two agree in
// all; before it, no key is Absent that is there, and changes hold at once.
func TestMutableTwin(t *testing.T) {
	for name, c := range shapes {
		if c.Values == 1 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := seeded.New(t)
			c.Keys = 500
			path := filepath.Join(t.TempDir(), "log")
			log := logAt(t, path)
			c.Seed = 7
			m := open(t, c, log, -1)
			twin := map[uint64]uint64{}
			var all []uint64           // also those removed
			again := map[uint64]bool{} // inserted again since the last repair
			wrong := 0
			check := func(repaired bool) {
				t.Helper()
				ghosts := 0
				for _, k := range all {
					want, live := twin[k]
					v, a := m.Lookup(keyed.Number(k))
					switch {
					case !live && a != Absent:
						// After a rebuild it is a stranger: α is 0.005 at most, and
						// there are some hundred.
						if ghosts++; ghosts > 30 {
							t.Fatalf("removed key %d answers %d, %v, as %d others do", k, v, a, ghosts)
						}
					case live && a == Absent:
						t.Fatalf("key %d is absent", k)
					case live && repaired && (a != Found || v != want):
						t.Fatalf("key %d answers %d, %v after repair; its value is %d", k, v, a, want)
					case live && a == Found && v != want && !again[k]:
						// Possible, but rare: see the package's documentation.
						if wrong++; wrong > 20 {
							t.Fatalf("key %d answers %d; its value is %d; the %d-th such answer", k, v, want, wrong)
						}
					}
					if got := m.Candidates(keyed.Number(k)); live && !slices.Contains(got, want) && len(got) < MaxCandidates {
						t.Fatalf("key %d, value %d, has candidates %v", k, want, got)
					}
				}
			}
			for round := range 12 {
				for range 150 {
					k, v := random.Uint64(), random.Uint64N(c.Values)
					if len(all) > 0 && random.IntN(3) == 0 {
						k = all[random.IntN(len(all))]
					}
					_, live := twin[k]
					var err error
					switch op := random.IntN(8); {
					case live && op < 2:
						err = m.Remove(keyed.Number(k))
						delete(twin, k)
						if _, a := m.Lookup(keyed.Number(k)); a != Absent {
							t.Fatalf("key %d was removed and is %v", k, a)
						}
					case live && op < 4:
						err = m.Change(keyed.Number(k), v)
						twin[k] = v
						if got, a := m.Lookup(keyed.Number(k)); got != v || a != Found {
							t.Fatalf("key %d was changed to %d and answers %d, %v", k, v, got, a)
						}
					default:
						// Insert anew, or again, perhaps with another value.
						again[k] = again[k] || live
						err = m.InsertBatch(keyed.Numbers([]uint64{k}), []uint64{v})
						twin[k] = v
					}
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Contains(all, k) {
						all = append(all, k)
					}
				}
				check(false)
				clear(again)
				switch round % 3 {
				case 0, 1:
					if err := m.Repair(); err != nil {
						t.Fatal(err)
					}
					check(true)
				case 2:
					if err := m.Close(); err != nil {
						t.Fatal(err)
					}
					if err := log.Close(); err != nil {
						t.Fatal(err)
					}
					log = logAt(t, path)
					m = open(t, c, log, -1)
					check(true)
				}
			}
			if s := m.Stats(); s.Planned <= 500 {
				t.Errorf("the field never grew: %+v", s)
			}
		})
	}
}

func TestMutableErrors(t *testing.T) {
	c := shapes["two bits"]
	c.Keys = 100
	if _, err := OpenMutable(MutableConfig{Config: c}); !errors.Is(err, ErrConfig) {
		t.Errorf("opening without a log: %v", err)
	}
	if _, err := OpenMutable(MutableConfig{Log: &listLog{}}); !errors.Is(err, ErrConfig) {
		t.Errorf("opening without a plan: %v", err)
	}
	// Under another seed each key of the log would be Absent.
	other := c
	other.Seed = 8
	if _, err := OpenMutable(MutableConfig{Config: other, Log: logAt(t, filepath.Join(t.TempDir(), "log"))}); !errors.Is(err, ErrLog) {
		t.Errorf("opening a log of seed 7 under seed 8: %v", err)
	}
	log := &listLog{}
	m := open(t, c, log, -1)
	if err := m.Insert(keyed.Bytes([]byte("k")), 256); !errors.Is(err, ErrValue) || log.Len() != 0 {
		t.Errorf("inserting value 256 of 256: %v, %d records", err, log.Len())
	}
	if err := m.InsertBatch(keyed.ByteStrings([][]byte{nil}), nil); !errors.Is(err, ErrConfig) {
		t.Errorf("inserting a key without a value: %v", err)
	}
	if err := m.InsertBatch(keyed.List{}, []uint64{1}); !errors.Is(err, ErrConfig) {
		t.Errorf("inserting a value without a key: %v", err)
	}
	// What cannot be logged is not inserted.
	log.failing = errors.New("disk full")
	if err := m.Insert(keyed.Bytes([]byte("k")), 1); !errors.Is(err, log.failing) {
		t.Errorf("inserting with a full disk: %v", err)
	}
	if _, a := m.Lookup(keyed.Bytes([]byte("k"))); a != Absent {
		t.Errorf("a key that was not logged is %v", a)
	}
	log.failing = nil
	if err := m.InsertBatch(keyed.ByteStrings([][]byte{[]byte("k"), []byte("l")}), []uint64{1, 2}); err != nil {
		t.Fatal(err)
	}
	if err := m.Remove(keyed.Bytes([]byte("l"))); err != nil {
		t.Fatal(err)
	}
	// A rebuild whose log cannot be replaced changes nothing.
	log.failing = errors.New("disk full")
	if err := m.rebuild(false); !errors.Is(err, log.failing) {
		t.Errorf("a rebuild with a full disk: %v", err)
	}
	log.failing = nil
	check := func() {
		t.Helper()
		v, k := m.Lookup(keyed.Bytes([]byte("k")))
		if _, l := m.Lookup(keyed.Bytes([]byte("l"))); v != 1 || k != Found || l != Absent {
			t.Errorf("k and l answer %d, %v and %v", v, k, l)
		}
	}
	check()
	if err := m.rebuild(false); err != nil {
		t.Fatal(err)
	}
	check()
	if log.replaced != 1 || log.Len() != 1 {
		t.Errorf("after a rebuild the log has %d records, replaced %d times", log.Len(), log.replaced)
	}
	if err := m.Change(keyed.Bytes([]byte("k")), 5); err != nil {
		t.Fatal(err)
	}
	if v, a := m.Lookup(keyed.Bytes([]byte("k"))); v != 5 || a != Found {
		t.Errorf("a changed key answers %d, %v", v, a)
	}
	if got := m.Candidates(keyed.Bytes([]byte("k"))); !slices.Equal(got, []uint64{5}) {
		t.Errorf("a changed key has candidates %v", got)
	}
	if got := m.Candidates(keyed.Bytes([]byte("l"))); got != nil {
		t.Errorf("a removed key has candidates %v", got)
	}
	// Logs that no Mutable wrote.
	for name, r := range map[string]Record{"operation": {Op: 9}, "no operation": {}, "value": {Op: Inserted, Value: 256}} {
		if _, err := OpenMutable(MutableConfig{Config: c, Log: &listLog{list: []Record{r}}}); !errors.Is(err, ErrLog) {
			t.Errorf("a record with a bad %s: %v", name, err)
		}
	}
}

// TestClosed closes beside a repair, and then calls what uses the log: after
// Close no call uses the log, and the log may be closed.
func TestClosed(t *testing.T) {
	c, log := shapes["two bits"], &listLog{}
	c.Keys = 1000
	m := open(t, c, log, -1)
	for k := range uint64(10) {
		if err := m.Insert(keyed.Number(k), 1); err != nil {
			t.Fatal(err)
		}
	}
	entered, read := make(chan struct{}), atomic.Bool{}
	log.reading = func(i int) {
		if i == 9 && !read.Load() {
			close(entered)
			<-m.stop // Close has begun
			for range 1000 {
				runtime.Gosched()
			}
			read.Store(true)
		}
	}
	go func() { m.Repair() }()
	<-entered
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if !read.Load() {
		t.Error("Close is back and a repair still reads the log")
	}
	for what, err := range map[string]error{"insert": m.Insert(keyed.Number(1), 1), "repair": m.Repair()} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: error %v", what, err)
		}
	}
}
