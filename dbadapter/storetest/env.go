package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// manyChanges is a log limit that no test reaches.
const manyChanges = 1 << 20

// env is one open namespace, with its observer checked at every commit.
type env struct {
	testing.TB
	harness   Harness
	store     dbadapter.Store
	namespace dbadapter.Namespace
	id        dbadapter.NamespaceID
	hasher    dbadapter.Hasher

	mu       sync.Mutex // guards what follows
	observed []dbadapter.Change
	digest   dbadapter.Digest
	records  int
}

func newEnv(t testing.TB, h Harness) *env { return newEnvWith(t, h, manyChanges, hasher()) }

func newEnvWith(t testing.TB, h Harness, logLimit int, hasher dbadapter.Hasher) *env {
	e := &env{TB: t, harness: h, store: h.Open(t, logLimit), hasher: hasher}
	t.Cleanup(func() { e.store.Close() })
	e.openNamespace(1)
	return e
}

func hasher() dbadapter.Hasher { return dbadapter.NewHasher(dbadapter.Secret{1, 2, 3}) }

func (e *env) openNamespace(number int) {
	e.Helper()
	e.id = dbadapter.NamespaceID{15: byte(number), 14: byte(number >> 8)}
	n, err := e.store.Namespace(context.Background(), e.id, e.hasher, e.observe)
	if err != nil {
		e.Fatal(err)
	}
	e.namespace = n
}

func (e *env) observe(changes []dbadapter.Change) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range changes {
		e.observed = append(e.observed, c)
		e.digest = e.digest.Add(c.Delta)
		e.records += c.Records
	}
}

// reopen closes the store and opens it, and the namespace, again.
func (e *env) reopen() {
	e.Helper()
	e.store = e.harness.Reopen(e, e.store)
	n, err := e.store.Namespace(context.Background(), e.id, e.hasher, e.observe)
	if err != nil {
		e.Fatal(err)
	}
	e.namespace = n
}

// apply applies writes that must not fail, and returns their results.
func (e *env) apply(writes ...write) []dbadapter.Outcome {
	e.Helper()
	outcomes, err := submit(context.Background(), e.namespace, e.hasher, writes)
	if err != nil {
		e.Fatalf("Apply: %v", err)
	}
	if len(outcomes) != len(writes) {
		e.Fatalf("Apply of %d writes gives %d outcomes", len(writes), len(outcomes))
	}
	return outcomes
}

// want applies one write and compares its result.
func (e *env) want(w write, want dbadapter.Result) {
	e.Helper()
	if got := e.apply(w)[0]; got.Result != want {
		e.Errorf("write %q of version %v: result %d, want %d", w.Record.Key, w.Record.Version, got.Result, want)
	}
}

func (e *env) snapshot() dbadapter.Snapshot {
	e.Helper()
	s, err := e.namespace.Snapshot()
	if err != nil {
		e.Fatalf("Snapshot: %v", err)
	}
	e.Cleanup(func() { s.Close() })
	return s
}

func isNotFound(err error) bool { return errors.Is(err, dbadapter.ErrNotFound) }

// value is what a snapshot has under a key; "(absent)", "(deleted)", or the value in quotes.
func value(t testing.TB, s dbadapter.Snapshot, key string) string {
	t.Helper()
	r, err := s.Get([]byte(key))
	switch {
	case isNotFound(err):
		return "(absent)"
	case err != nil:
		t.Fatalf("Get %q: %v", key, err)
	case string(r.Key) != key:
		t.Fatalf("Get %q returns the key %q", key, r.Key)
	case r.Deleted:
		return "(deleted)"
	}
	return fmt.Sprintf("%q", r.Value)
}

// at is a version at a second of the test's time.
func at(second int) dbadapter.Version {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return dbadapter.Version{Clock: dbadapter.TimestampAt(start.Add(time.Duration(second) * time.Second)), Writer: 1, Incarnation: 1}
}

// write is a dbadapter.Write whose record is not hashed yet: tests open
// namespaces with hashers of many kinds.
type write struct {
	Record dbadapter.Record
	If     *dbadapter.Version
	Must   bool
	Action dbadapter.Action
	Past   dbadapter.Timestamp
}

// submit hashes the records of the writes and applies them.
func submit(ctx context.Context, n dbadapter.Namespace, h dbadapter.Hasher, writes []write) ([]dbadapter.Outcome, error) {
	hashed := make([]dbadapter.Write, len(writes))
	for i, w := range writes {
		r, err := dbadapter.Hash(h, w.Record)
		if err != nil {
			return nil, err
		}
		hashed[i] = dbadapter.Write{Record: r, If: w.If, Must: w.Must, Action: w.Action, Past: w.Past}
	}
	return n.Apply(ctx, hashed)
}

func put(key, value string, v dbadapter.Version) write {
	return write{Record: dbadapter.Record{Key: []byte(key), Value: []byte(value), Version: v}}
}

func del(key string, v dbadapter.Version) write {
	return write{Record: dbadapter.Record{Key: []byte(key), Deleted: true, Version: v}}
}

// take removes a record as the action says.
func take(action dbadapter.Action, r dbadapter.Record) write { return write{Record: r, Action: action} }

// given makes a write conditional.
func given(held dbadapter.Version, w write) write {
	w.If = &held
	return w
}
