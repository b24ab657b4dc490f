package kvstore

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/badgerkv"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/pebblekv"
)

// rescued is a store that is damaged and made anew, and what was written to it.
type rescued struct {
	hashers map[dbadapter.NamespaceID]dbadapter.Hasher
	want    map[dbadapter.NamespaceID]map[string]dbadapter.Hashed
	kept    map[dbadapter.NamespaceID]int
	logs    map[dbadapter.NamespaceID]dbadapter.LogID
	// ceilings are above what was written.
	ceilings map[dbadapter.NamespaceID]dbadapter.Timestamp
}

const rescueRounds = 3

var (
	rescueFlips = flag.Int("flips", 4, "how many bits of each file TestRescueFlips flips")
	rescueSeed  = flag.Uint64("flips.seed", 0, "which bits TestRescueFlips flips; 0: any")
)

func newRescued() *rescued {
	s := &rescued{
		hashers: map[dbadapter.NamespaceID]dbadapter.Hasher{}, want: map[dbadapter.NamespaceID]map[string]dbadapter.Hashed{},
		kept: map[dbadapter.NamespaceID]int{}, logs: map[dbadapter.NamespaceID]dbadapter.LogID{}, ceilings: map[dbadapter.NamespaceID]dbadapter.Timestamp{},
	}
	for i := range byte(2) {
		id := dbadapter.NamespaceID{i + 1}
		s.hashers[id] = dbadapter.NewHasher(dbadapter.Secret{i + 1})
		s.want[id] = map[string]dbadapter.Hashed{}
	}
	return s
}

func (s *rescued) known() (map[dbadapter.NamespaceID]dbadapter.Hasher, error) { return s.hashers, nil }

// write writes a round: each key anew, and every seventh one, by round, collected or
// set aside.
func (s *rescued) write(t *testing.T, store *Store, round int) {
	t.Helper()
	for id, h := range s.hashers {
		n, err := store.Namespace(t.Context(), id, h, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.logs[id] = n.Log()
		var writes, removes []dbadapter.Write
		for i := range 150 {
			size := 30 + i
			if i == 20 {
				size = inline - 10 // it is cut in two
			}
			r, err := dbadapter.Hash(h, dbadapter.Record{
				Key: fmt.Appendf(nil, "%d of %x", i, id[0]), Value: bytes.Repeat([]byte{byte(round)}, size), Deleted: false,
				Version: dbadapter.Version{Clock: dbadapter.TimestampAt(time.UnixMilli(1_780_000_000_000+int64(i))) + dbadapter.Timestamp(round)<<40, Writer: 1, Incarnation: 1},
			})
			if err != nil {
				t.Fatal(err)
			}
			writes = append(writes, dbadapter.Write{Record: r})
			s.want[id][string(r.Key)] = r
			if round == rescueRounds-1 && i%7 == 3 {
				remove := dbadapter.Write{Record: r, Action: dbadapter.Collect}
				if i%2 == 0 {
					remove.Action = dbadapter.SetAside
					s.kept[id]++
				}
				removes = append(removes, remove)
				delete(s.want[id], string(r.Key))
			}
		}
		for _, some := range [][]dbadapter.Write{writes[:50], writes[50:100], writes[100:], removes} {
			apply(t, n, some)
		}
		if err := n.Raise(t.Context(), n.Ceiling()+7); err != nil {
			t.Fatal(err)
		}
		s.ceilings[id] = n.Ceiling()
		if err := n.SaveSummary(t.Context(), 1, []byte("a summary")); err != nil {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// check compares a store with what was written: nothing is another one, or came back. It
// returns how many records are missing.
func (s *rescued) check(t *testing.T, store *Store, r Rescued) (missing int) {
	t.Helper()
	for id, h := range s.hashers {
		n, err := store.Namespace(t.Context(), id, h, nil)
		if err != nil {
			t.Errorf("namespace %x: %v", id[0], err)
			return
		}
		view, err := n.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		here, conflicts := 0, 0
		for got, err := range view.Scan(t.Context(), nil, nil) {
			if err != nil {
				t.Errorf("scan: %v", err)
				break
			}
			if want, ok := s.want[id][string(got.Key)]; !ok || got.Version != want.Version || !bytes.Equal(got.Value, want.Value) {
				t.Errorf("%q has the version %s; it was written: %t, with %s", got.Key, got.Version, ok, want.Version)
			}
			here++
		}
		gone := len(s.want[id]) - here
		missing += gone
		if says, known := r.Missing[id]; !known || says != int64(gone) && says != -1 {
			t.Errorf("namespace %x: %d records are missing, and it says %d", id[0], gone, says)
		}
		for _, err := range n.Kept(t.Context()) {
			if err != nil {
				t.Errorf("the kept log: %v", err)
				break
			}
			conflicts++
		}
		if conflicts > s.kept[id] || r.Missing[id] == 0 && conflicts < s.kept[id]-1 {
			t.Errorf("the kept log has %d entries of %d", conflicts, s.kept[id])
		}
		if gone == 0 && r.Missing[id] == 0 && n.Ceiling() != s.ceilings[id] {
			t.Errorf("the ceiling is %d, and was %d", n.Ceiling(), s.ceilings[id])
		}
		if n.Log() == s.logs[id] {
			t.Error("the log has the id of the damaged one")
		}
		view.Close()
		for _, want := range s.want[id] { // what is missing comes back
			if _, err := n.Apply(t.Context(), []dbadapter.Write{{Record: want}}); err != nil {
				t.Errorf("apply: %v", err)
			}
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return missing
}

// rescue makes a store anew, and opens the new one.
func (s *rescued) rescue(t *testing.T, dir string) (store *Store, r Rescued) {
	t.Helper()
	var synced kv.Engine = badgerkv.Engine{} // one that does not sync takes a damaged log for one that was cut short
	if engine.Name() == pebblekv.Name {
		synced = pebblekv.Engine{}
	}
	to := t.TempDir()
	err := Rescue(t.Context(), dir, to, synced, Options{}, s.known, func(of Rescued) error { r = of; return nil })
	if err == nil {
		store, err = openEngine(to, Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return store, r
}

func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// writeRescued makes a closed store of all rounds.
func writeRescued(t *testing.T) (s *rescued, dir string) {
	t.Helper()
	s, dir = newRescued(), t.TempDir()
	for round := range rescueRounds {
		store, err := openEngine(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.write(t, store, round)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return s, dir
}

// Of a sound store all is carried over.
func TestRescueAll(t *testing.T) {
	s, dir := writeRescued(t)
	store, r := s.rescue(t, dir)
	defer store.Close()
	if missing := s.check(t, store, r); missing != 0 || r.Why != nil {
		t.Errorf("%d records are missing: %+v", missing, r)
	}
}

// A store that a process has open is not rescued.
func TestRescueOpen(t *testing.T) {
	s, dir := writeRescued(t)
	store, err := openEngine(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	to := filepath.Join(t.TempDir(), "to")
	if err := Rescue(t.Context(), dir, to, engine, Options{}, s.known, nil); !errors.Is(err, dbadapter.ErrLocked) {
		t.Error(err)
	}
	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		t.Error("it has begun")
	}
}

// A bit of a closed store is flipped at many places. What is carried over is what was written,
// and nothing is missing but what it says; a flip within a block costs few records.
func TestRescueFlips(t *testing.T) {
	seed := *rescueSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-flips.seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	s, dir := writeRescued(t)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	flips, lossy, lost, nothing := 0, 0, 0, 0
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		used := len(bytes.TrimRight(b, "\x00"))
		if used == 0 || f.Name() == "KEYREGISTRY" { // of it Badger says so itself, and leaves goroutines behind
			continue
		}
		for n := range *rescueFlips {
			at, bit := random.IntN(used), byte(1)<<random.IntN(8)
			if n%2 == 1 { // what leads to all else stands at the end of a table
				at = used - 1 - random.IntN(min(used, 2_000))
			}
			what := fmt.Sprintf("bit %#x of byte %d of %s (of %d)", bit, at, f.Name(), used)
			to := t.TempDir()
			copyFiles(t, dir, to)
			damaged := bytes.Clone(b)
			damaged[at] ^= bit
			if err := os.WriteFile(filepath.Join(to, f.Name()), damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			flips++
			store, r := s.rescue(t, to)
			missing := s.check(t, store, r)
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			if t.Failed() {
				t.Fatalf("%s: %+v", what, r)
			}
			if r.Why != nil {
				nothing++
			} else if missing > 0 {
				lossy++
				lost += missing
			}
			if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d flips: of %d nothing was read, %d took records, %d in all", flips, nothing, lossy, lost)
}

// Without its list of tables, or a table, nothing is read, and each namespace says that it lacks
// what cannot be counted.
func TestRescueNothing(t *testing.T) {
	s, dir := writeRescued(t)
	for _, name := range []string{"MANIFEST*", "*.sst"} {
		to := t.TempDir()
		copyFiles(t, dir, to)
		files, err := filepath.Glob(filepath.Join(to, name))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, path := range files {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := openEngine(to, Options{}); !errors.Is(err, dbadapter.ErrCorrupt) {
			t.Fatalf("it is opened: %v", err)
		}
		store, r := s.rescue(t, to)
		if missing := s.check(t, store, r); missing == 0 || r.Why == nil || r.Missing[dbadapter.NamespaceID{1}] != -1 {
			t.Errorf("without %s %d records are missing: %+v", name, missing, r)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
