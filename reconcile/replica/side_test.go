package replica

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/reconcile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// side is a namespace in a store, with the live sketch that follows it.
type side struct {
	t    testing.TB
	keys reconcile.Keys
	ns   dbadapter.Namespace
	live *Live
}

func newSide(t testing.TB) *side {
	t.Helper()
	s := &side{t: t, keys: reconcile.DeriveKeys(dbadapter.Secret{1, 2, 3}, nil)}
	s.live = New(s.keys)
	store := memdb.New(memdb.Options{})
	t.Cleanup(func() { store.Close() })
	ns, err := store.Namespace(t.Context(), s.keys.ID, s.keys.Hasher, s.live.Observe)
	if err != nil {
		t.Fatal(err)
	}
	s.ns = ns
	return s
}

// put commits the records.
func (s *side) put(records ...dbadapter.Record) {
	s.t.Helper()
	writes := make([]dbadapter.Write, len(records))
	for i, r := range records {
		hashed, err := dbadapter.Hash(s.keys.Hasher, r)
		if err != nil {
			s.t.Fatal(err)
		}
		writes[i].Record = hashed
	}
	if _, err := s.ns.Apply(context.Background(), writes); err != nil {
		s.t.Fatal(err)
	}
}

// pretend adds to the number of records that the live sketch is told.
func (s *side) pretend(records int) { s.live.ranges.Add(1, dbadapter.Sum{Records: uint64(records)}) }

// take removes the records under keys, of those that are held.
func (s *side) take(action dbadapter.Action, keys ...string) {
	snap, err := s.ns.Snapshot()
	if err != nil {
		s.t.Error(err)
		return
	}
	defer snap.Close()
	var writes []dbadapter.Write
	for _, key := range keys {
		if r, err := snap.Get([]byte(key)); err == nil {
			hashed, err := dbadapter.Hash(s.keys.Hasher, r)
			if err != nil {
				s.t.Error(err)
			}
			writes = append(writes, dbadapter.Write{Record: hashed, Action: action})
		}
	}
	if _, err := s.ns.Apply(context.Background(), writes); err != nil {
		s.t.Error(err)
	}
}

// fill commits n records whose keys begin with prefix.
func (s *side) fill(prefix string, n int) {
	s.t.Helper()
	var records []dbadapter.Record
	for i := range n {
		records = append(records, record(fmt.Sprint(prefix, i), "", at(0)))
		if len(records) == 1000 || i == n-1 {
			s.put(records...)
			records = records[:0]
		}
	}
}

// snapshot opens the side's snapshot.
func (s *side) snapshot() *Snapshot {
	s.t.Helper()
	snap, err := s.live.Snapshot(s.t.Context(), s.ns, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return snap
}

func record(key, value string, v dbadapter.Version) dbadapter.Record {
	return dbadapter.Record{Key: []byte(key), Value: []byte(value), Version: v}
}

// at is a version of the given time after the epoch of the tests.
func at(d time.Duration) dbadapter.Version {
	base := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	return dbadapter.Version{Clock: dbadapter.TimestampAt(base.Add(d)), Writer: 7, Incarnation: 9}
}

func seeded(t testing.TB, seed uint64) *rand.Rand {
	t.Helper()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
