package peer_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer"
)

func TestReaderReadsOnly(t *testing.T) {
	na, nb := open(t, peer.Config{}), open(t, peer.Config{})
	sa := create(t, na, peer.Policy{})
	sb := join(t, sa, nb, peer.RoleRead)
	put(t, sa, "k", "v")
	sync1(t, sb, na.ID())
	equal(t, sa, sb)
	if _, err := sb.Put(t.Context(), []byte("x"), nil); !errors.Is(err, peer.ErrDenied) {
		t.Errorf("a reader writes: %v", err)
	}
	if _, err := sb.Invite(t.Context(), peer.InviteOptions{}); !errors.Is(err, peer.ErrDenied) {
		t.Errorf("a reader invites: %v", err)
	}
	// It cannot give itself the right; a modified one convinces itself only.
	if err := sb.SetRole(t.Context(), nb.ID(), peer.RoleWrite); !errors.Is(err, peer.ErrDenied) {
		t.Errorf("a reader makes itself a writer: %v", err)
	}
	smuggled := dbadapter.Record{Key: []byte("x"), Version: dbadapter.Version{Clock: dbadapter.TimestampAt(time.Now()), Writer: nb.Writer(), Incarnation: 1}}
	signature, err := nb.Key().Sign(node.SignedBytes(sb.ID(), &smuggled))
	must(t, err)
	smuggled.Signature = signature
	must(t, sb.Force(t.Context(), smuggled))
	r, err := sb.Sync(t.Context(), na.ID(), peer.SyncOptions{})
	if !errors.Is(err, peer.ErrRejected) || r.Rejected != 1 || r.Verified {
		t.Errorf("report %+v, %v", r, err)
	}
	if _, err := sa.Get(t.Context(), []byte("x")); !errors.Is(err, peer.ErrNotFound) {
		t.Errorf("the reader's record is in: %v", err)
	}
	if got := sa.Rejected(); len(got) != 1 || string(got[0].Key) != "x" || got[0].Version.Writer != nb.Writer() {
		t.Errorf("rejected: %+v", got)
	}
	if sa.Info().Rejected != 1 {
		t.Error("Info does not count it")
	}
}

func TestWriterCannotInvite(t *testing.T) {
	_, _, _, sb := pair(t, peer.Config{}, peer.Config{}, peer.Policy{})
	if _, err := sb.Invite(t.Context(), peer.InviteOptions{}); !errors.Is(err, peer.ErrDenied) {
		t.Errorf("a writer invites: %v", err)
	}
}

// A member passes on records that their writer did not sign so, or not at all.
func TestForgedRecordsAreRejected(t *testing.T) {
	na, nb, sa, sb := pair(t, peer.Config{}, peer.Config{}, peer.Policy{})
	put(t, sa, "good", "of a")
	sync1(t, sb, na.ID())
	good, err := sb.Get(t.Context(), []byte("good"))
	must(t, err)
	later := func(v dbadapter.Version, by uint64) dbadapter.Version { v.Clock += dbadapter.Timestamp(by); return v }
	dated := dbadapter.Version{Clock: dbadapter.TimestampAt(good.Version.Clock.Time())}
	zeros := make([]byte, dbadapter.SignatureSize)
	forged := []dbadapter.Record{
		{Key: []byte("1 altered value"), Value: []byte("of b"), Version: good.Version, Signature: good.Signature},
		{Key: []byte("good"), Value: []byte("2 altered version"), Version: later(good.Version, 1), Signature: good.Signature},
		{Key: []byte("3 unsigned"), Version: good.Version},
		{Key: []byte("4 no such writer"), Version: dbadapter.Version{Clock: good.Version.Clock, Writer: 7}, Signature: zeros},
		{Key: []byte("5 dated, without a signer"), Version: dated, Signature: zeros},
		{Key: []byte("6 no writer, but a counter"), Version: later(dated, 1), Signature: zeros},
		{Key: []byte("7 no writer, but an incarnation"), Version: dbadapter.Version{Clock: dated.Clock, Incarnation: 1}, Signature: zeros},
	}
	must(t, sb.Force(t.Context(), forged...))
	r, err := sb.Sync(t.Context(), na.ID(), peer.SyncOptions{})
	if !errors.Is(err, peer.ErrRejected) || r.Rejected != len(forged) || r.Verified {
		t.Errorf("report %+v, %v", r, err)
	}
	rejected := sa.Rejected()
	if len(rejected) != len(forged) {
		t.Errorf("%d of %d are remembered: %+v", len(rejected), len(forged), rejected)
	}
	for _, r := range rejected {
		if r.Peer != nb.ID() || r.Reason == "" || r.Time.IsZero() {
			t.Errorf("rejected: %+v", r)
		}
	}
	if got := contents(t, sa); len(got) != 1 {
		t.Errorf("a holds %v", got)
	}
	// They do not travel again, but perhaps the one that is a mismatch.
	again, err := sb.Sync(t.Context(), na.ID(), peer.SyncOptions{})
	if !errors.Is(err, peer.ErrRejected) || again.Sent > 1 || again.Verified {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestFutureVersions(t *testing.T) {
	ca, cb := newTestClock(), newTestClock()
	na, nb, sa, sb := pair(t, peer.Config{Clock: ca.now}, peer.Config{Clock: cb.now}, peer.Policy{})
	cb.turn(peer.DefaultMaxSkew * 2)
	v := put(t, sb, "k", "from the future")
	r, err := sb.Sync(t.Context(), na.ID(), peer.SyncOptions{})
	if !errors.Is(err, peer.ErrRejected) || r.Rejected != 1 || r.Applied+int(sa.Info().Records) != 0 {
		t.Errorf("report %+v, %v", r, err)
	}
	if got := sa.Rejected(); len(got) != 1 || got[0].Version != v {
		t.Errorf("rejected: %+v", got)
	}
	// Time passes, and what was refused is offered again and taken.
	ca.turn(peer.DefaultMaxSkew * 2)
	cb.turn(peer.DefaultMaxSkew * 4)
	sync1(t, sa, nb.ID())
	equal(t, sa, sb)
	if got := sa.Rejected(); len(got) != 0 {
		t.Errorf("still rejected: %+v", got)
	}
	// a's next write exceeds what it has seen, though its clock lies behind.
	ca.turn(-peer.DefaultMaxSkew / 2)
	w := put(t, sa, "k", "after")
	if w.Compare(v) <= 0 {
		t.Errorf("version %s does not exceed %s", w, v)
	}
	// A version that the other members would refuse is not acknowledged.
	ca.turn(-24 * 365 * time.Hour)
	for what, err := range map[string]error{
		"put":    errOf(sa.Put(t.Context(), []byte("k"), []byte("too far"))),
		"delete": errOf(sa.Delete(t.Context(), []byte("k"))),
		"batch":  sa.Batch(t.Context(), func(b *peer.Batch) error { b.Put([]byte("k"), nil); b.Put([]byte("l"), nil); return nil }),
		"import": errOf(sa.Import(t.Context(), func(yield func(peer.Item, error) bool) { yield(peer.Item{Key: []byte("l")}, nil) })),
	} {
		if !errors.Is(err, peer.ErrFutureVersion) {
			t.Errorf("%s, a year behind what is held: %v", what, err)
		}
	}
	if rec, err := sa.Get(t.Context(), []byte("k")); err != nil || rec.Version != w || sa.Info().Records != 1 {
		t.Errorf("what was refused is there: %+v, %v", rec, err)
	}
	// With the clock set right, writes go on.
	ca.turn(24 * 365 * time.Hour)
	if x := put(t, sa, "k", "again"); x.Compare(w) <= 0 {
		t.Errorf("version %s does not exceed %s", x, w)
	}
}

func TestClockSetBack(t *testing.T) {
	dir, clock := t.TempDir(), newTestClock()
	n := open(t, peer.Config{Dir: dir, Clock: clock.now})
	ns := create(t, n, peer.Policy{})
	var last dbadapter.Version
	check := func(v dbadapter.Version) {
		t.Helper()
		if v.Compare(last) <= 0 {
			t.Errorf("version %s does not exceed %s", v, last)
		}
		last = v
	}
	for range 100 {
		check(put(t, ns, "k", "v"))
	}
	clock.turn(-peer.DefaultMaxSkew / 2)
	check(put(t, ns, "k", "v"))
	shut(t, n)
	n = open(t, peer.Config{Dir: dir, Clock: clock.now})
	ns = notes(t, n)
	before := last
	check(put(t, ns, "another key", "v")) // the one that is held says nothing of the clock
	if last.Incarnation == before.Incarnation {
		t.Error("two openings have one incarnation")
	}
	// Further back than the others allow, also before 2020, nothing is written.
	const years = 20 * 365 * 24 * time.Hour
	clock.turn(-years)
	shut(t, n)
	n = open(t, peer.Config{Dir: dir, Clock: clock.now})
	ns = notes(t, n)
	if _, err := ns.Put(t.Context(), []byte("k"), nil); !errors.Is(err, peer.ErrFutureVersion) {
		t.Errorf("a write 20 years behind what is held: %v", err)
	}
	if rec, err := ns.Get(t.Context(), []byte("another key")); err != nil || rec.Version != last || ns.Latest() != last.Clock {
		t.Errorf("held %+v, %v", rec, err)
	}
	clock.turn(years)
	check(put(t, ns, "k", "v"))
	clock.turn(-years)
	if _, err := n.CreateNamespace(t.Context(), "fresh", peer.Policy{}); !errors.Is(err, peer.ErrFutureVersion) {
		t.Errorf("a namespace made before 2020: %v", err)
	}
}

// What a writer wrote before it was made a reader stays, and is taken from any
// member; what it wrote since is refused.
func TestOldRecordsOfADemotedWriter(t *testing.T) {
	na, nb, sa, sb := pair(t, peer.Config{}, peer.Config{}, peer.Policy{})
	put(t, sb, "k", "of b")
	sync1(t, sb, na.ID())
	must(t, sa.SetRole(t.Context(), nb.ID(), peer.RoleRead))
	sync1(t, sb, na.ID()) // both hold it
	later := open(t, peer.Config{})
	sl := join(t, sa, later, peer.RoleRead)
	sync1(t, sl, na.ID())
	equal(t, sa, sl)
	if got := contents(t, sl); len(got) != 1 {
		t.Errorf("the newcomer holds %v", got)
	}
	if _, err := sb.Put(t.Context(), []byte("l"), nil); !errors.Is(err, peer.ErrDenied) {
		t.Errorf("a node that was made a reader writes: %v", err)
	}
}

// Without signatures, too, a version without a writer is that of a dated import.
func TestUnsignedDatedShape(t *testing.T) {
	na, _, sa, sb := pair(t, peer.Config{}, peer.Config{}, peer.Policy{Unsigned: true})
	at := dbadapter.TimestampAt(time.Now())
	err := sb.Force(t.Context(),
		dbadapter.Record{Key: []byte("dated"), Version: dbadapter.Version{Clock: at}},
		dbadapter.Record{Key: []byte("with a counter"), Version: dbadapter.Version{Clock: at + 1}},
		dbadapter.Record{Key: []byte("with an incarnation"), Version: dbadapter.Version{Clock: at, Incarnation: 1}})
	must(t, err)
	r, err := sb.Sync(t.Context(), na.ID(), peer.SyncOptions{})
	if !errors.Is(err, peer.ErrRejected) || r.Rejected != 2 || len(sa.Rejected()) != 2 {
		t.Errorf("report %+v, %v", r, err)
	}
	if _, err := sa.Get(t.Context(), []byte("dated")); err != nil {
		t.Error(err)
	}
}

func TestUnsigned(t *testing.T) {
	na, nb, sa, sb := pair(t, peer.Config{}, peer.Config{}, peer.Policy{Unsigned: true})
	nc := open(t, peer.Config{})
	sc := join(t, sa, nc, peer.RoleRead)
	put(t, sa, "a", "1")
	put(t, sb, "b", "2")
	sync1(t, sa, nb.ID())
	sync1(t, sc, na.ID())
	equal(t, sa, sb)
	equal(t, sa, sc)
	if rec, err := sb.Get(t.Context(), []byte("a")); err != nil || len(rec.Signature) != 0 || !sb.Policy().Unsigned {
		t.Errorf("record %+v, %v; info %+v", rec, err, sb.Info())
	}
	// No signature tells the writer of what a reader passes on, so it is refused.
	forged := dbadapter.Record{Key: []byte("c"), Version: dbadapter.Version{Clock: sa.Latest(), Writer: nb.Writer(), Incarnation: 1}}
	must(t, sc.Force(t.Context(), forged))
	if r, err := sc.Sync(t.Context(), na.ID(), peer.SyncOptions{}); !errors.Is(err, peer.ErrRejected) || r.Rejected != 1 {
		t.Errorf("report %+v, %v", r, err)
	}
}

func TestLimits(t *testing.T) {
	n := open(t, peer.Config{})
	ns := create(t, n, peer.Policy{})
	long, big := bytes.Repeat([]byte("k"), dbadapter.MaxKey), bytes.Repeat([]byte("v"), dbadapter.MaxValue)
	if _, err := ns.Put(t.Context(), long, big); err != nil {
		t.Errorf("the longest key with the largest value: %v", err)
	}
	for name, err := range map[string]error{
		"empty key":   errOf(ns.Put(t.Context(), nil, nil)),
		"long key":    errOf(ns.Put(t.Context(), append(long, 'k'), nil)),
		"large value": errOf(ns.Put(t.Context(), long, append(big, 'v'))),
		"long batch": ns.Batch(t.Context(), func(b *peer.Batch) error {
			for i := range dbadapter.MaxBatch + 1 {
				b.Put(fmt.Appendf(nil, "%d", i), nil)
			}
			return nil
		}),
		"large batch": ns.Batch(t.Context(), func(b *peer.Batch) error {
			b.Put([]byte("1"), big)
			b.Put([]byte("2"), big)
			return nil
		}),
	} {
		if !errors.Is(err, peer.ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := ns.Info().Records; got != 1 {
		t.Errorf("%d records", got)
	}
	for _, key := range []string{"/", "..", "a b", "\x00", "\xff\xfe", "../../etc/passwd"} {
		put(t, ns, key, key)
		if rec, err := ns.Get(t.Context(), []byte(key)); err != nil || string(rec.Value) != key {
			t.Errorf("key %q: %q, %v", key, rec.Value, err)
		}
	}
}

func TestBatch(t *testing.T) {
	n := open(t, peer.Config{})
	ns := create(t, n, peer.Policy{})
	old := put(t, ns, "old", "1")
	key := []byte("reused")
	err := ns.Batch(t.Context(), func(b *peer.Batch) error {
		b.PutIf([]byte("old"), []byte("2"), old)
		b.PutIf([]byte("new"), []byte("3"), dbadapter.Version{})
		b.Put(key, key)
		key[0] = 'X' // the batch has a copy
		return nil
	})
	must(t, err)
	if got := contents(t, ns); len(got) != 3 || got["reused"] == "" {
		t.Errorf("after a batch: %v", got)
	}
	before := contents(t, ns)
	err = ns.Batch(t.Context(), func(b *peer.Batch) error {
		b.Put([]byte("another"), nil)
		b.DeleteIf([]byte("old"), old)
		return nil
	})
	if !errors.Is(err, peer.ErrConflict) {
		t.Errorf("a batch with a failed condition: %v", err)
	}
	failure := errors.New("no")
	if err := ns.Batch(t.Context(), func(b *peer.Batch) error { b.Put([]byte("x"), nil); return failure }); !errors.Is(err, failure) {
		t.Errorf("a batch that failed: %v", err)
	}
	if got := contents(t, ns); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("a failed batch has written: %v", got)
	}
	if err := ns.Batch(t.Context(), func(b *peer.Batch) error { return nil }); err != nil {
		t.Errorf("an empty batch: %v", err)
	}
	for range 2 {
		_, err = ns.Delete(t.Context(), []byte("old"))
	}
	if !errors.Is(err, peer.ErrDeleted) {
		t.Errorf("the second delete: %v", err)
	}
	if _, err := ns.Delete(t.Context(), []byte("nothing")); !errors.Is(err, peer.ErrNotFound) {
		t.Errorf("delete of nothing: %v", err)
	}
}
