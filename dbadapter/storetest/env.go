package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// manyChanges is a log limit that no test reaches.
const manyChanges = 1 << 20

// env is one open namespace, and what it must hold.
type env struct {
	testing.TB
	harness   Harness
	store     dbadapter.Store
	namespace dbadapter.Namespace
	id        dbadapter.NamespaceID
	hasher    dbadapter.Hasher
	twin      *twin

	mu       sync.Mutex // guards what follows
	observed []dbadapter.Change
}

func newEnv(t testing.TB, h Harness) *env { return newEnvWith(t, h, manyChanges, hasher()) }

func newEnvWith(t testing.TB, h Harness, logLimit int, hasher dbadapter.Hasher) *env {
	e := &env{TB: t, harness: h, store: h.Open(t, logLimit), hasher: hasher}
	t.Cleanup(func() { e.store.Close() })
	e.begin(1)
	return e
}

func hasher() dbadapter.Hasher { return dbadapter.NewHasher(dbadapter.Secret{1, 2, 3}) }

// begin opens a namespace that holds nothing.
func (e *env) begin(number int) {
	e.Helper()
	e.id = dbadapter.NamespaceID{15: byte(number), 14: byte(number >> 8)}
	e.twin, e.observed = newTwin(e.hasher), nil
	e.open()
}

// neighbour begins another namespace of the store.
func (e *env) neighbour(number int, hasher dbadapter.Hasher) *env {
	e.Helper()
	other := &env{TB: e.TB, harness: e.harness, store: e.store, hasher: hasher}
	other.begin(number)
	return other
}

// open opens the namespace, which holds what the twin holds.
func (e *env) open() {
	e.Helper()
	n, err := e.store.Namespace(context.Background(), e.id, e.hasher, func(changes []dbadapter.Change) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.observed = append(e.observed, changes...)
	})
	if err != nil {
		e.Fatal(err)
	}
	e.namespace = n
}

// reopen closes the store and opens it, and the namespace, again.
func (e *env) reopen() {
	e.Helper()
	e.store = e.harness.Reopen(e, e.store)
	e.open()
}

// apply applies writes to the namespace and to the twin, and fails if they end otherwise.
func (e *env) apply(writes ...write) []dbadapter.Outcome {
	e.Helper()
	outcomes, err := e.tryApply(writes)
	if err != nil {
		e.Fatal(err)
	}
	return outcomes
}

// tryApply is apply that returns what is otherwise.
func (e *env) tryApply(writes []write) ([]dbadapter.Outcome, error) {
	got, err := submit(context.Background(), e.namespace, e.hasher, writes)
	want, stopped := e.twin.apply(writes)
	if !errors.Is(err, stoppedBy(stopped)) {
		return nil, fmt.Errorf("Apply gives error %w, want %w", err, stoppedBy(stopped))
	}
	if !slices.Equal(got, want) {
		return nil, fmt.Errorf("Apply gives %+v, want %+v", got, want)
	}
	return got, nil
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
