package node

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/internal/syncing"
)

// cutStore fails each Apply once left have passed, as a process does that dies
// between two batches.
type cutStore struct {
	dbadapter.Namespace
	left int
}

var errCut = errors.New("cut")

func (s *cutStore) Apply(ctx context.Context, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
	if s.left == 0 {
		return nil, errCut
	}
	s.left--
	return s.Namespace.Apply(ctx, writes)
}

// clocked is a node with a clock that can be set, over a store that outlives it.
type clocked struct {
	now   time.Time
	draws uint64
	store *memdb.Store
	state *State // of the namespace, as it was founded
	cut   *cutStore
	*Namespace
}

func (m *clocked) open(t *testing.T) {
	t.Helper()
	key := vectorKey(7)
	n := New(Config{
		ID:     IDOf(key.Public().(ed25519.PublicKey)),
		Sign:   func(message []byte) ([]byte, error) { return ed25519.Sign(key, message), nil },
		Now:    func() time.Time { return m.now },
		Random: func(Purpose) uint64 { m.draws++; return m.draws },
		Places: syncing.Places{Sessions: 1, PerPeer: 1, Greetings: 1},
	})
	var err error
	if m.state == nil {
		m.state, err = n.Found(dbadapter.Secret{}, "notes", Policy{})
	}
	if err == nil {
		m.Namespace, err = n.Open(t.Context(), Opening{
			State: m.state, Save: func(*State) error { return nil },
			Store: func(ctx context.Context, id dbadapter.NamespaceID, h dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error) {
				ns, err := m.store.Namespace(ctx, id, h, observe)
				if id != dbadapter.NamespaceIDOf(dbadapter.Secret{}, m.state.Creator) {
					return ns, err // the control namespace
				}
				m.cut = &cutStore{ns, -1}
				return m.cut, err
			},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (m *clocked) put(t *testing.T, key, value string) (dbadapter.Version, error) {
	t.Helper()
	a, err := m.Sets()[0].Write(Draft{Record: dbadapter.Record{Key: []byte(key), Value: []byte(value)}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Hold()()
	writes, err := a.Writes()
	if err != nil {
		return dbadapter.Version{}, err
	}
	succeeds(t, second(a.Judge(m.Sets()[0].Store.Apply(t.Context(), writes))))
	return a.Version(0), nil
}

func (m *clocked) future(t *testing.T) (n int) {
	t.Helper()
	for _, err := range m.Sets()[0].Future(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// A version that others have accepted, from a clock that was fast by less than the
// skew, does not win over what was written after it and restamped.
func TestRestampWinsOverWhatOthersHold(t *testing.T) {
	m := &clocked{store: memdb.New(memdb.Options{})}
	m.now = noon.Add(DefaultMaxSkew - time.Minute)
	m.open(t)
	old, err := m.put(t, "k", "old")
	if err != nil {
		t.Fatal(err)
	}
	m.now = noon.Add(24 * time.Hour)
	succeeds(t, second(m.put(t, "k", "new")))
	m.now = noon.Add(time.Minute)
	if n, err := m.Restamp(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	r := records(m.Namespace)[0]
	if string(r.Value) != "new" || r.Version.Compare(old) <= 0 || m.Ahead() != 0 {
		t.Errorf("%q has version %s, after %s; %s ahead", r.Value, r.Version, old, m.Ahead())
	}
	if _, err := m.put(t, "k", "newer"); err != nil {
		t.Error(err)
	}
}

// A restamp that dies between two batches is finished by a second one; what is
// held keeps its content, and no version is used twice.
func TestRestampInBatches(t *testing.T) {
	m := &clocked{now: time.Unix(1_800_000_000, 0), store: memdb.New(memdb.Options{})}
	m.open(t)
	const long, small = 3, 10 // the long ones fill a batch each
	succeeds(t, second(m.put(t, "before", "right")))
	m.now = m.now.Add(365 * 24 * time.Hour)
	used := map[dbadapter.Version]string{}
	value := map[string]string{}
	for i := range long + small {
		key := fmt.Sprint("k", i)
		value[key] = strings.Repeat("v", i)
		if i < long {
			value[key] = strings.Repeat("v", dbadapter.MaxValue-i)
		}
		v, err := m.put(t, key, value[key])
		if err != nil {
			t.Fatal(err)
		}
		used[v] = key
	}
	m.now = m.now.Add(-365 * 24 * time.Hour)
	if _, err := m.put(t, "after", "refused"); !errors.Is(err, ErrFutureVersion) || !strings.Contains(err.Error(), "syncd restamp") {
		t.Errorf("a write after the clock was set right: %v", err)
	}
	if n := m.future(t); n != long+small {
		t.Errorf("%d records from the future", n)
	}

	m.cut.left = 1
	n, err := m.Restamp(t.Context())
	if !errors.Is(err, errCut) || n == 0 || m.Ahead() == 0 {
		t.Errorf("the first restamp, which dies: %d, %v, ahead by %s", n, err, m.Ahead())
	}
	m.store = m.store.Reopen()
	m.open(t)
	if m.Ahead() == 0 || m.future(t) != long+small-n {
		t.Errorf("reopened: ahead by %s, %d from the future", m.Ahead(), m.future(t))
	}
	rest, err := m.Restamp(t.Context())
	if err != nil || n+rest != long+small {
		t.Errorf("the second restamp: %d after %d, %v", rest, n, err)
	}
	v, err := m.put(t, "after", "accepted")
	if err != nil || v.Clock.Time().After(m.now.Add(DefaultMaxSkew)) {
		t.Errorf("a write after the restamp: %v, %v", v, err)
	}
	m.store = m.store.Reopen()
	m.open(t)
	if latest := m.Sets()[0].Store.Latest(); m.Ahead() != 0 || latest != v.Clock {
		t.Errorf("reopened: ahead by %s, the latest is of %s", m.Ahead(), latest.Time())
	}

	snap, err := m.Sets()[0].Store.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	members := m.Members()
	for key, want := range value {
		r, err := snap.Get([]byte(key))
		if err != nil {
			t.Fatal(err)
		}
		why := m.Sets()[0].examineAll(members, m.node.ID, m.now, hashed(m.Namespace, r))[0]
		if string(r.Value) != want || used[r.Version] != "" || why != nil {
			t.Errorf("%s has %d bytes, version %s, %v", key, len(r.Value), r.Version, why)
		}
		used[r.Version] = key
	}
	// A year later, in the process that has been restamped, the clock says again
	// what it said while it was wrong.
	m.now = m.now.Add(365 * 24 * time.Hour)
	for i := range 2 * small {
		v, err := m.put(t, fmt.Sprint("later", i), "")
		if err != nil || used[v] != "" {
			t.Errorf("version %s was used for %q, %v", v, used[v], err)
		}
	}
	if n, err := m.Restamp(t.Context()); n != 0 || err != nil {
		t.Errorf("a restamp of nothing: %d, %v", n, err)
	}
}

// In the process that has restamped, the clock comes to say again what it said
// while it was wrong: a second record does not get a version of then.
func TestRestampUsesNoVersionTwice(t *testing.T) {
	m := &clocked{now: time.Unix(1_800_000_000, 0), store: memdb.New(memdb.Options{})}
	m.open(t)
	m.now = m.now.Add(time.Hour)
	wrong, err := m.put(t, "k", "while it was wrong")
	if err != nil {
		t.Fatal(err)
	}
	m.now = m.now.Add(-time.Hour)
	if n, err := m.Restamp(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	m.now = m.now.Add(time.Hour)
	later, err := m.put(t, "k", "an hour later")
	if err != nil || later.Clock != wrong.Clock || later == wrong {
		t.Errorf("version %s was given before the restamp, and %s after it, %v", wrong, later, err)
	}
}

// Records of another member from the future are listed, and stay.
func TestRestampLeavesOthersAlone(t *testing.T) {
	m := &clocked{now: time.Unix(1_800_000_000, 0), store: memdb.New(memdb.Options{})}
	m.open(t)
	m.now = m.now.Add(time.Hour)
	other := dbadapter.Record{Key: []byte("other"), Version: dbadapter.Version{Clock: dbadapter.TimestampAt(m.now), Writer: 99, Incarnation: 1}}
	hashed, err := dbadapter.Hash(m.Sets()[0].Keys.Hasher, other)
	if err != nil {
		t.Fatal(err)
	}
	succeeds(t, second(m.Sets()[0].Store.Apply(t.Context(), []dbadapter.Write{{Record: hashed}})))
	succeeds(t, second(m.put(t, "own", "")))
	m.now = m.now.Add(-time.Hour)
	if n, err := m.Restamp(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for r := range m.Sets()[0].Future(t.Context()) {
		if string(r.Key) != "other" || r.Own {
			t.Errorf("from the future: %+v", r)
		}
	}
	if _, err := m.put(t, "own", ""); m.future(t) != 1 || !errors.Is(err, ErrFutureVersion) {
		t.Errorf("%d from the future, and a write gives %v", m.future(t), err)
	}
}
