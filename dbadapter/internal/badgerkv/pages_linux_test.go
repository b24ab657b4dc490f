package badgerkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/kvstore"
)

// shownTable is what the kernel says of a mapped table.
type shownTable struct {
	resident int64 // bytes
	random   bool  // it is read without read-ahead
}

// shown reads /proc/self/smaps, by table.
func shown(t testing.TB, dir string) map[uint64]shownTable {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	out := map[uint64]shownTable{}
	var id uint64
	var in bool
	for _, line := range strings.Split(string(smaps), "\n") {
		name, rest, _ := strings.Cut(line, ":")
		if strings.Contains(name, "-") {
			id, _, in = parseMapping(line, dir)
			continue
		}
		if !in {
			continue
		}
		shown := out[id]
		switch name {
		case "Rss":
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			shown.resident += kb << 10
		case "VmFlags":
			shown.random = slices.Contains(strings.Fields(rest), "rr")
		}
		out[id] = shown
	}
	return out
}

// spy keeps the database that it opens.
type spy struct {
	Engine
	db *db
}

func (s *spy) Open(dir string) (_ kv.DB, err error) {
	s.db, err = s.Engine.open(dir, false)
	return s.db, err
}

func openStore(t testing.TB, dir string) (*kvstore.Store, *db, dbadapter.Namespace) {
	t.Helper()
	engine := &spy{Engine: Engine{NoSync: true}}
	s, err := kvstore.Open(dir, engine, kvstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	n, err := s.Namespace(context.Background(), dbadapter.NamespaceID{1}, dbadapter.NewHasher(dbadapter.Secret{1}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, engine.db, n
}

func write(h dbadapter.Hasher, key string, value []byte) dbadapter.Write {
	r, err := dbadapter.Hash(h, dbadapter.Record{
		Key: []byte(key), Value: value,
		Version: dbadapter.Version{Clock: dbadapter.TimestampAt(time.Unix(1_780_000_000, 0)), Writer: 1},
	})
	if err != nil {
		panic(err)
	}
	return dbadapter.Write{Record: r}
}

// fillTables writes records of some 1,000 bytes and compacts, so that they are in
// tables.
func fillTables(t testing.TB, s *kvstore.Store, n dbadapter.Namespace, records int) {
	t.Helper()
	h := dbadapter.NewHasher(dbadapter.Secret{1})
	for at := 0; at < records; {
		var batch []dbadapter.Write
		for ; at < records && len(batch) < 1000; at++ {
			batch = append(batch, write(h, fmt.Sprintf("key %08d", at), bytes.Repeat([]byte{byte(at)}, 1000)))
		}
		if _, err := n.Apply(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestTablesAreReadAtRandom: no table is read ahead of look-ups, neither one that was
// there when the store was opened nor one that was made since; a long scan has its
// own back to read-ahead while it runs.
func TestTablesAreReadAtRandom(t *testing.T) {
	const records = 2 * longScan
	dir := t.TempDir()
	s, d, n := openStore(t, dir)
	fillTables(t, s, n, records)
	d.pages.look()
	random := func(when string, want bool) {
		t.Helper()
		tables := d.badger.Tables()
		kernel := shown(t, dir)
		if len(tables) == 0 {
			t.Fatal("the store has no table")
		}
		found := 0
		for _, table := range tables {
			if shown, ok := kernel[table.ID]; ok && shown.random == want {
				found++
			}
		}
		if want && found < len(tables) || !want && found == 0 {
			t.Errorf("%s: %d of %d tables have random=%v", when, found, len(tables), want)
		}
	}
	random("made", true)
	v, err := n.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	count := 0
	for _, err := range v.Scan(t.Context(), nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if count++; count == records*3/4 {
			random("within a scan", false)
			d.pages.mu.Lock()
			d.pages.looked = time.Time{}
			d.pages.mu.Unlock()
			d.pages.look()
			random("within a scan, looked at again", false)
		}
	}
	random("after a scan", true)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, d, _ = openStore(t, dir)
	random("opened", true)
}

// TestLetGo: the process gives up what it holds of the tables, again and again while
// tables come and go, and reads the same afterwards.
func TestLetGo(t *testing.T) {
	const records = 4000
	dir := t.TempDir()
	s, d, n := openStore(t, dir)
	fillTables(t, s, n, records)
	v, err := n.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	scan := func() error {
		count := 0
		for _, err := range v.Scan(t.Context(), nil, nil) { // compares with the head's sum
			if err != nil {
				return err
			}
			count++
		}
		if count != records {
			return fmt.Errorf("%d records", count)
		}
		return nil
	}
	held := func() (sum int64) {
		for _, table := range shown(t, dir) {
			sum += table.resident
		}
		return sum
	}
	if err := scan(); err != nil {
		t.Fatal(err)
	}
	if held := held(); held < 1<<20 {
		t.Fatalf("after a scan %d bytes are held: there is nothing to let go", held)
	}
	// Badger compacts on its own meanwhile: tables that it reads, or has made and not yet
	// taken in, are held until it is done.
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		d.pages.letGo()
		if left := held(); left == 0 {
			break
		} else if time.Now().After(until) {
			t.Fatalf("%d bytes are held still", left)
		}
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				d.pages.letGo()
				d.pages.look()
			}
		}
	}()
	for i := range 2 {
		if _, err := n.Apply(t.Context(), []dbadapter.Write{write(dbadapter.NewHasher(dbadapter.Secret{1}), fmt.Sprint("beside ", i), nil)}); err != nil {
			t.Error(err)
		}
		if err := errors.Join(s.Compact(t.Context()), scan()); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	<-done
}

func TestParseMapping(t *testing.T) {
	for _, c := range []struct {
		line string
		id   uint64
	}{
		{"7f81c8000000-7f81c8800000 rw-s 00000000 fe:00 1835   /a b/store/000042.sst", 42},
		{"7f81c8000000-7f81c8800000 rw-s 00000000 fe:00 1835   /a b/store/1000042.sst", 1000042},
		{"7f81c8000000-7f81c8800000 rw-s 00000000 fe:00 1835   /a b/store/000042.sst (deleted)", 0},
		{"7f81c8000000-7f81c8800000 rw-s 00000000 fe:00 1835   /a b/store/42.sst", 0},
		{"7f81c8000000-7f81c8800000 rw-s 00000000 fe:00 1835   /a b/store/00042.mem", 0},
		{"7f81c8000000-7f81c8800000 rw-s 00000000 fe:00 1835   /a b/store/x/000042.sst", 0},
		{"7f81c8000000-7f81c8800000 rw-s 00000000 fe:00 1835   /b/a b/store/000042.sst", 0},
		{"7f81c8800000-7f81c8000000 rw-s 00000000 fe:00 1835   /a b/store/000042.sst", 0},
		{"c000000000-c000400000 rw-p 00000000 00:00 0          [anon: Go: heap]", 0},
		{"", 0},
	} {
		id, m, ok := parseMapping(c.line, "/a b/store")
		if ok != (c.id != 0) || ok && (id != c.id || m != mapping{0x7f81c8000000, 0x7f81c8800000}) {
			t.Errorf("%q: %d %x %v", c.line, id, m, ok)
		}
	}
}
