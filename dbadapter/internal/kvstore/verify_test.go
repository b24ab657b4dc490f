package kvstore

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// oneIndex is a hasher that puts all keys under one index.
type oneIndex struct{ dbadapter.Hasher }

func (oneIndex) Index([]byte) dbadapter.Index { return 7 }

// writeTo is a write that is hashed as the namespace demands.
func writeTo(n *namespace, key string, second int) []dbadapter.Write {
	w := write(key, second)
	w[0].Record = hashed(n.Hasher, w[0].Record.Record)
	return w
}

// reads are all ways to read the record "m", and what they must not say of it.
func reads(t *testing.T, n *namespace) map[string]error {
	t.Helper()
	v := snapshotOf(t, n)
	errs := map[string]error{}
	note := func(path string, r dbadapter.Record, err error) {
		if err == nil && bytes.Equal(r.Key, []byte("m")) {
			err = fmt.Errorf("it gives version %s", r.Version)
		}
		if err != nil {
			errs[path] = err
		}
	}
	r, err := v.Get([]byte("m"))
	note("Get", r, err)
	for path, at := range map[string][2][]byte{
		"Scan": {nil, nil}, "Scan of a prefix": {[]byte("m"), nil}, "Scan after a key": {nil, []byte("a")},
	} {
		for r, err := range v.Scan(t.Context(), at[0], at[1]) {
			note(path, r.Record, err)
		}
	}
	bucket, err := v.Bucket(n.Hasher.Index([]byte("m")))
	note("Bucket", dbadapter.Record{}, err)
	for _, r := range bucket {
		note("Bucket", r.Record, nil)
	}
	for second, path := range map[int]string{2: "Apply of an older version", 1000: "Apply of a newer version"} {
		_, err := n.Apply(t.Context(), writeTo(n, "m", second))
		note(path, dbadapter.Record{}, err)
	}
	_, err = n.Apply(t.Context(), append(writeTo(n, "good", 5), writeTo(n, "m", 1000)...))
	note("Apply of both", dbadapter.Record{}, err)
	after := snapshotOf(t, n)
	if held, err := after.Get([]byte("good")); err == nil {
		t.Errorf("a batch with a damaged key has written the one before it: %v", held.Version)
	}
	return errs
}

// TestWrongRecord damages the entry of a record as a fault below Badger could: an
// older envelope of its key stands there, or the entry is missing, or its bucket
// does not name the key. Each way to read the key, or to write over it, is
// ErrCorrupt, whether or not other keys share its index.
func TestWrongRecord(t *testing.T) {
	s, err := openEngine(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := byte(0)
	for name, damage := range map[string]func(n *namespace, txn edits, older []byte) error{
		"older": func(n *namespace, txn edits, older []byte) error {
			return txn.Set(recordKey(n, "m"), older)
		},
		"missing": func(n *namespace, txn edits, _ []byte) error {
			return txn.Delete(recordKey(n, "m"))
		},
		"unknown": func(n *namespace, txn edits, _ []byte) error {
			index := n.Hasher.Index([]byte("m"))
			return txn.Set(appendIndexKey(nil, n.Number, index), appendBucket(nil, n.Number, index, 1, keyed("other")))
		},
	} {
		for shape, hasher := range map[string]dbadapter.Hasher{
			"alone":  dbadapter.NewHasher(dbadapter.Secret{1}),
			"shared": oneIndex{dbadapter.NewHasher(dbadapter.Secret{1})},
		} {
			t.Run(name+" "+shape, func(t *testing.T) {
				id++
				n := damagedNamespace(t, s, dbadapter.NamespaceID{id}, hasher, damage)
				errs := reads(t, n)
				for _, path := range []string{"Get", "Scan", "Scan of a prefix", "Scan after a key", "Bucket", "Apply of an older version", "Apply of a newer version", "Apply of both"} {
					// A scan of a part does not look for what is not there.
					if name == "missing" && (path == "Scan of a prefix" || path == "Scan after a key") {
						continue
					}
					if err := errs[path]; !errors.Is(err, dbadapter.ErrCorrupt) {
						t.Errorf("%s: %v, want ErrCorrupt", path, err)
					}
				}
			})
		}
	}
}

func recordKey(n *namespace, key string) []byte {
	return append(appendPrefix(nil, n.Number, kindRecord), key...)
}

// damagedNamespace holds the records b, m and z, of which m was written twice
// within 64 s and then damaged below the store.
func damagedNamespace(t *testing.T, s *Store, id dbadapter.NamespaceID, hasher dbadapter.Hasher, damage func(n *namespace, txn edits, older []byte) error) *namespace {
	t.Helper()
	opened, err := s.Namespace(t.Context(), id, hasher, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := opened.(*namespace)
	for _, k := range []string{"b", "m", "z"} {
		apply(t, n, writeTo(n, k, 1))
	}
	older, err := kv.Get(s.last.txn, recordKey(n, "m"))
	if err != nil {
		t.Fatal(err)
	}
	apply(t, n, writeTo(n, "m", 3))
	if err := update(s, func(txn edits) error { return damage(n, txn, older) }); err != nil {
		t.Fatal(err)
	}
	if err := s.committer.do(t.Context(), func() error { s.committer.publish(func() {}); return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestWrongRecordFarOn puts the older envelope behind those that a scan of all
// compares one by one: the scan ends with ErrCorrupt.
func TestWrongRecordFarOn(t *testing.T) {
	s, n := openTest(t, t.TempDir(), Options{}, nil)
	fillTest(t, n, checkedFirst+500)
	key := recordKey(n, fmt.Sprintf("key %08d", checkedFirst+400))
	older, err := kv.Get(s.last.txn, key)
	if err != nil {
		t.Fatal(err)
	}
	scan := func() (records int, err error) {
		v, err := n.Snapshot()
		if err != nil {
			return 0, err
		}
		defer v.Close()
		for _, err := range v.Scan(t.Context(), nil, nil) {
			if err != nil {
				return records, err
			}
			records++
		}
		return records, nil
	}
	apply(t, n, write(string(key[prefixSize:]), checkedFirst+401))
	if records, err := scan(); records != checkedFirst+500 || err != nil {
		t.Fatalf("before the damage: %d records, %v", records, err)
	}
	if err := update(s, func(txn edits) error { return txn.Set(key, older) }); err != nil {
		t.Fatal(err)
	}
	apply(t, n, write("key", 1))
	if _, err := scan(); !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Errorf("a scan of all over an older record far on ends with %v, want ErrCorrupt", err)
	}
}

// counting counts what a hasher is asked for.
type counting struct {
	dbadapter.Hasher
	digests *atomic.Int64
}

func (c counting) Digest(r *dbadapter.Record) dbadapter.Digest {
	c.digests.Add(1)
	return c.Hasher.Digest(r)
}

// TestApplyHashesOnce writes records that were hashed before: writing them
// hashes no record again. Writing over them hashes those that are held, once each,
// which verifies them.
func TestApplyHashesOnce(t *testing.T) {
	s, err := openEngine(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	hasher := counting{dbadapter.NewHasher(dbadapter.Secret{1}), new(atomic.Int64)}
	n, err := s.Namespace(t.Context(), dbadapter.NamespaceID{1}, hasher, nil)
	if err != nil {
		t.Fatal(err)
	}
	const records = 100
	for round, want := range []int64{0, records} {
		var writes []dbadapter.Write
		for i := range records {
			writes = append(writes, write(fmt.Sprint(i), round)...)
		}
		hasher.digests.Store(0)
		apply(t, n, writes)
		if got := hasher.digests.Load(); got != want {
			t.Errorf("round %d: %d records are hashed to write %d, want %d", round, got, records, want)
		}
	}
}

// A reader of the kept log misses an entry that is lost below the store.
func TestKeptEntryLost(t *testing.T) {
	s, n := openTest(t, t.TempDir(), Options{}, nil)
	for _, key := range []string{"a", "b"} {
		w := write(key, 1)[0]
		aside := w
		aside.Action = dbadapter.SetAside
		apply(t, n, []dbadapter.Write{w, aside})
	}
	err := s.committer.do(t.Context(), func() error {
		return s.remove([][]byte{keptKey(n.Number, layout.KindKept, dbadapter.KeptSetAside, 1)})
	})
	if err != nil {
		t.Fatal(err)
	}
	entries := 0
	for _, err = range n.Kept(t.Context()) {
		if err != nil {
			break
		}
		entries++
	}
	if entries != 1 || !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Errorf("%d entries, then %v; want one, then ErrCorrupt", entries, err)
	}
}
