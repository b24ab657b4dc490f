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
)

// salvaged is a store that is damaged and made anew, and what was written to it.
type salvaged struct {
	hashers map[dbadapter.NamespaceID]dbadapter.Hasher
	want    map[dbadapter.NamespaceID]map[string]dbadapter.Hashed
	kept    map[dbadapter.NamespaceID]int
	logs    map[dbadapter.NamespaceID]dbadapter.LogID
}

const salvageRounds = 3

var (
	salvageFlips = flag.Int("flips", 4, "how many bits of each file TestSalvageFlips flips")
	salvageSeed  = flag.Uint64("flips.seed", 0, "which bits TestSalvageFlips flips; 0: any")
)

func newSalvaged() *salvaged {
	s := &salvaged{
		hashers: map[dbadapter.NamespaceID]dbadapter.Hasher{}, want: map[dbadapter.NamespaceID]map[string]dbadapter.Hashed{},
		kept: map[dbadapter.NamespaceID]int{}, logs: map[dbadapter.NamespaceID]dbadapter.LogID{},
	}
	for i := range byte(2) {
		id := dbadapter.NamespaceID{i + 1}
		s.hashers[id] = dbadapter.NewHasher(dbadapter.Secret{i + 1})
		s.want[id] = map[string]dbadapter.Hashed{}
	}
	return s
}

func (s *salvaged) known() (map[dbadapter.NamespaceID]dbadapter.Hasher, error) { return s.hashers, nil }

// write writes a round: each key anew, and every seventh one, by round, collected or
// set aside.
func (s *salvaged) write(t *testing.T, store *Store, round int) {
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
			if round == salvageRounds-1 && i%7 == 3 {
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
			if _, err := n.Apply(t.Context(), some); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.SaveSummary(t.Context(), 1, []byte("a summary")); err != nil {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// check compares a store with what was written: what is not there must have been
// said, and nothing may be older. It returns how many records are missing.
func (s *salvaged) check(t *testing.T, store *Store, done *dbadapter.Salvaged) (missing int) {
	t.Helper()
	for id, h := range s.hashers {
		n, err := store.Namespace(t.Context(), id, h, nil)
		if err != nil {
			t.Errorf("namespace %x: %v", id[0], err)
			return
		}
		loss := done.Lost[id]
		named := map[string]bool{}
		for _, key := range loss.Keys {
			named[string(key)] = true
		}
		view, err := n.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		here, unnamed := 0, 0
		for key, want := range s.want[id] {
			r, err := view.Get([]byte(key))
			switch {
			case errors.Is(err, dbadapter.ErrNotFound) && named[key]:
			case errors.Is(err, dbadapter.ErrNotFound):
				unnamed++
			case err != nil:
				t.Errorf("%s: %v", key, err)
			case r.Version != want.Version && done.Older:
			case r.Version != want.Version || !bytes.Equal(r.Value, want.Value):
				t.Errorf("%s has the version %s, not %s", key, r.Version, want.Version)
			default:
				here++
			}
		}
		gone := len(s.want[id]) - here
		missing += gone
		if !done.Older && (loss.Records >= 0 && int(loss.Records) != gone || unnamed > 0 && loss.Records == 0) {
			t.Errorf("namespace %x: %d records are gone, %d of them unnamed, and it says %d", id[0], gone, unnamed, loss.Records)
		}
		found := 0
		for r, err := range view.Scan(t.Context(), nil, nil) {
			if err != nil {
				t.Errorf("scan: %v", err)
				break
			}
			if _, ok := s.want[id][string(r.Key)]; !ok && !done.Older {
				t.Errorf("%q came back", r.Key)
			}
			found++
		}
		if found != here && !done.Older {
			t.Errorf("%d records are there, and a scan finds %d", here, found)
		}
		for _, err := range n.Changes(t.Context(), view.Seq()) {
			t.Errorf("changes: %v", err)
		}
		if n.Log() == s.logs[id] {
			logged := uint64(0)
			for _, err := range n.Changes(t.Context(), 0) {
				if err == nil {
					logged++
				}
			}
			if gone > 0 || done.Older || logged != view.Seq() {
				t.Errorf("namespace %x: the id of the log is as before; %d records are gone, and %d of %d changes are there", id[0], gone, logged, view.Seq())
			}
		}
		kept := 0
		for _, err := range n.Kept(t.Context()) {
			if err != nil {
				t.Errorf("the kept log: %v", err)
				break
			}
			kept++
		}
		if !done.Older && loss.Records >= 0 && kept != s.kept[id]-loss.Kept+loss.SetAside {
			t.Errorf("the kept log has %d entries of %d; %d are said to be lost, and %d were set aside", kept, s.kept[id], loss.Kept, loss.SetAside)
		}
		view.Close()
		for _, want := range s.want[id] { // what is missing comes back
			if _, err := n.Apply(t.Context(), []dbadapter.Write{{Record: want}}); err != nil {
				t.Errorf("apply: %v", err)
			}
			break
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return missing
}

func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// writeSalvaged makes a closed store of all rounds.
func writeSalvaged(t *testing.T) (s *salvaged, dir string) {
	t.Helper()
	s, dir = newSalvaged(), t.TempDir()
	for round := range salvageRounds {
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

// A bit of a closed store is flipped at many places. What a salvage leaves is whole,
// and nothing is missing but what it says; a flip costs few records.
func TestSalvageFlips(t *testing.T) {
	seed := *salvageSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-flips.seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	s, dir := writeSalvaged(t)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	flips, lossy, lost, older := 0, 0, 0, 0
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		used := len(bytes.TrimRight(b, "\x00"))
		if used == 0 || f.Name() == formatFile {
			continue
		}
		for n := range *salvageFlips {
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
			done, err := Salvage(t.Context(), to, engine, Options{}, s.known, func(*dbadapter.Salvaged) error { return nil })
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			store, err := openEngine(to, Options{})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			missing := s.check(t, store, done)
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			if t.Failed() {
				t.Fatalf("%s: %+v", what, done)
			}
			if done.Older {
				older++
			}
			if missing > 0 {
				lossy++
				lost += missing
			}
			if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d flips, %d left older records, %d took records, %d in all", flips, older, lossy, lost)
}

// Without its list of tables a store over Badger that was closed in order is read whole; it
// says all the same that records may be older ones. Over Pebble nothing is read, and each
// namespace that is known says that it lacks what cannot be counted.
func TestSalvageWithoutList(t *testing.T) {
	s, dir := writeSalvaged(t)
	lists, err := filepath.Glob(filepath.Join(dir, "MANIFEST*"))
	if err != nil || len(lists) == 0 {
		t.Fatal(lists, err)
	}
	for _, path := range lists {
		if err := os.Truncate(path, 9); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := openEngine(dir, Options{}); !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Fatalf("it is opened: %v", err)
	}
	done, err := Salvage(t.Context(), dir, engine, Options{}, s.known, func(*dbadapter.Salvaged) error { return nil })
	if err != nil || len(done.Damage) == 0 || !done.Older {
		t.Fatalf("%+v, %v", done, err)
	}
	store, err := openEngine(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	want, lost := 0, 0
	if engine.Name() == "pebble" {
		for _, all := range s.want {
			want += len(all)
		}
		lost = len(s.want)
	}
	if missing := s.check(t, store, done); missing != want {
		t.Errorf("%d records are missing, want %d: %+v", missing, want, done.Lost)
	}
	for id, loss := range done.Lost {
		if lost--; loss.Records >= 0 {
			t.Errorf("namespace %x says that it lacks %d", id[0], loss.Records)
		}
	}
	if lost != 0 {
		t.Errorf("losses: %+v", done.Lost)
	}
}
