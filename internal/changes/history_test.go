package changes

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/dbadapter/storetest"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/replica"
)

// watchedStore is a set whose history is known: what each key held after each
// change.
type watchedStore struct {
	t      *testing.T
	random *rand.Rand
	db     *memdb.Store
	keys   reconcile.Keys
	source *Source
	now    time.Time
	limit  int
	size   int // of the values: a window takes few large ones

	changes []dbadapter.Change
	after   []map[string]string // after[i] is what the keys of changes[i] held after it
	shared  map[string]bool     // keys that have ever shared their index
	clock   dbadapter.Timestamp
	left    []dbadapter.Hashed // records that were removed or replaced: they can come back
	hub     []*window          // what watchers share
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

const goneState = "gone"

func stateOf(r *dbadapter.Record) string {
	if r == nil {
		return goneState
	}
	return fmt.Sprintf("%v %s %v", r.Version, bytes.TrimRight(r.Value, "\x00"), r.Deleted)
}

func newWatchedStore(t *testing.T, random *rand.Rand) *watchedStore {
	s := &watchedStore{
		t: t, random: random, limit: 1 + random.IntN(60), now: time.Unix(1_800_000_000, 0),
		shared: map[string]bool{}, clock: 1 << 60, size: random.IntN(2) * random.IntN(windowBytes),
	}
	s.db = memdb.New(memdb.Options{LogLimit: s.limit})
	s.keys = reconcile.DeriveKeys(dbadapter.Secret{1}, []byte("creator"))
	if bits := random.IntN(9); bits < 8 {
		s.keys.Hasher = storetest.Weak(s.keys.Hasher, bits)
	}
	s.source = &Source{
		Hasher: s.keys.Hasher, Now: func() time.Time { return s.now },
		Reserved: func([]byte) bool { return false }, Behind: func(after []byte) []byte { return after },
	}
	s.open()
	return s
}

// open opens the store, which starts it again if it was open.
func (s *watchedStore) open() {
	s.db = s.db.Reopen()
	s.source.Live = replica.New(s.keys)
	store, err := s.db.Namespace(s.t.Context(), s.keys.ID, s.keys.Hasher, s.observe)
	if err != nil {
		s.t.Fatal(err)
	}
	s.source.Store = store
	snap := s.snapshot()
	defer snap.Close()
	if err := s.source.Live.Load(s.t.Context(), snap, nil); err != nil {
		s.t.Fatal(err)
	}
	s.hub = nil
}

func (s *watchedStore) observe(changes []dbadapter.Change) {
	s.source.Live.Observe(changes)
	s.changes = append(s.changes, changes...)
}

// write commits a batch of random writes.
func (s *watchedStore) write() {
	snap := s.snapshot()
	defer snap.Close()
	var writes []dbadapter.Write
	for range 1 + s.random.IntN(4) {
		key := fmt.Appendf(nil, "%c%d", "ab"[s.random.IntN(2)], s.random.IntN(12))
		held, err := snap.Get(key)
		there := err == nil
		s.clock += dbadapter.Timestamp(1+s.random.IntN(3)) << 20
		r := dbadapter.Record{Key: key, Version: dbadapter.Version{Clock: s.clock, Writer: 1, Incarnation: 1}, Deleted: s.random.IntN(3) == 0}
		if !r.Deleted {
			r.Value = append(fmt.Append(nil, s.random.IntN(1000)), make([]byte, s.size)...)
		}
		w := dbadapter.Write{Record: s.hash(r)}
		switch pick := s.random.IntN(10); {
		case pick < 3 && there:
			w = dbadapter.Write{Record: s.hash(held), Action: dbadapter.Collect + dbadapter.Action(s.random.IntN(2))}
			s.left = append(s.left, w.Record)
		case pick == 3 && there:
			w.Record.Version.Clock = held.Version.Clock - 1
			w = dbadapter.Write{Record: s.hash(w.Record.Record), If: &held.Version, Action: dbadapter.Replace}
			s.left = append(s.left, s.hash(held))
		case pick < 6 && len(s.left) > 0: // a peer brings it back
			w = dbadapter.Write{Record: s.left[s.random.IntN(len(s.left))]}
		}
		writes = append(writes, w)
	}
	before := len(s.changes)
	if _, err := s.source.Store.Apply(s.t.Context(), writes); err != nil && !errors.Is(err, dbadapter.ErrConflict) {
		s.t.Fatal(err)
	}
	now := s.snapshot()
	defer now.Close()
	for _, c := range s.changes[before:] {
		state := map[string]string{}
		for _, key := range c.Keys {
			state[string(key)] = s.held(now, string(key))
			s.shared[string(key)] = s.shared[string(key)] || c.Shared || len(c.Keys) > 1
		}
		s.after = append(s.after, state)
		if bucket := must(now.Bucket(c.Index)); len(bucket) > 1 {
			for i := range bucket {
				s.shared[string(bucket[i].Key)] = true
			}
		}
	}
}

func (s *watchedStore) hash(r dbadapter.Record) dbadapter.Hashed {
	return must(dbadapter.Hash(s.keys.Hasher, r))
}

func (s *watchedStore) snapshot() dbadapter.Snapshot { return must(s.source.Store.Snapshot()) }

func (s *watchedStore) held(snap dbadapter.Snapshot, key string) string {
	r, err := snap.Get([]byte(key))
	if errors.Is(err, dbadapter.ErrNotFound) {
		return goneState
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return stateOf(&r)
}

// restore takes the store back to what it held: its log begins anew.
func (s *watchedStore) restore() {
	snap := s.snapshot()
	defer snap.Close()
	s.db = memdb.New(memdb.Options{LogLimit: s.limit})
	s.changes, s.after = nil, nil
	s.open()
	var writes []dbadapter.Write
	for r, err := range snap.Scan(s.t.Context(), nil, nil) {
		if err != nil {
			s.t.Fatal(err)
		}
		writes = append(writes, dbadapter.Write{Record: r})
	}
	for len(writes) > 0 {
		n := dbadapter.OneBatch(writes)
		must(s.source.Store.Apply(s.t.Context(), writes[:n]))
		writes = writes[n:]
	}
	for _, c := range s.changes {
		state := map[string]string{}
		for _, key := range c.Keys {
			state[string(key)] = s.held(snap, string(key))
		}
		s.after = append(s.after, state)
	}
}

// share reads a window that all watchers can take.
func (s *watchedStore) share() {
	at := s.source.end()
	if len(s.hub) > 0 {
		at = s.hub[len(s.hub)-1].to
	}
	w, err := s.source.readFrom(s.t.Context(), s.source.Store.Log(), at)
	if errors.Is(err, ErrCursorExpired) {
		s.hub = nil
		return
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if w.to > w.from {
		s.hub = append(s.hub, w)
	}
}
