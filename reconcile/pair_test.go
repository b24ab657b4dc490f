package reconcile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/reconcile/wire"
)

var (
	testSecret = dbadapter.Secret{1, 2, 3}
	testKeys   = DeriveKeys(testSecret, nil)
)

// side is one node as the core sees it: a store, and an admission that lets
// everything in.
type side struct {
	t        testing.TB
	name     string
	ns       dbadapter.Namespace
	keys     Keys
	admit    func([]dbadapter.Record) ([]Verdict, error)
	declined Declined
	prefix   []byte
	parts    int64
	first    int
	budget   *Budget
	elapsed  func() time.Duration
	giveWay  func()
	greets   func() wire.Greeting
	heeds    func(wire.Greeting) error
}

func newSide(t testing.TB, name string, hasher dbadapter.Hasher) *side {
	t.Helper()
	return newSideOf(t, name, hasher, testSecret)
}

// newSideOf is newSide with a secret of its own: it decides where keys fall.
func newSideOf(t testing.TB, name string, hasher dbadapter.Hasher, secret dbadapter.Secret) *side {
	t.Helper()
	s := &side{t: t, name: name, keys: DeriveKeys(secret, nil)}
	if hasher != nil {
		s.keys.Hasher = hasher
	}
	store := memdb.New(memdb.Options{})
	t.Cleanup(func() { store.Close() })
	ns, err := store.Namespace(context.Background(), s.keys.ID, s.keys.Hasher, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.ns = ns
	s.admit = s.write
	return s
}

// write commits the records as they are.
func (s *side) write(records []dbadapter.Record) ([]Verdict, error) {
	var verdicts []Verdict
	for part := range slices.Chunk(records, 1000) {
		writes := make([]dbadapter.Write, len(part))
		for i, r := range part {
			hashed, err := dbadapter.Hash(s.keys.Hasher, r)
			if err != nil {
				return nil, err
			}
			writes[i].Record = hashed
		}
		outcomes, err := s.ns.Apply(context.Background(), writes)
		if err != nil {
			return nil, err
		}
		for _, o := range outcomes {
			verdicts = append(verdicts, Verdict{Result: o.Result})
		}
	}
	return verdicts, nil
}

// declines makes the side refuse the records for which why has a reason.
func (s *side) declines(why func(*dbadapter.Record) wire.Reason) {
	s.admit = func(records []dbadapter.Record) ([]Verdict, error) {
		verdicts := make([]Verdict, len(records))
		var good []dbadapter.Record
		for n := range records {
			if verdicts[n].Reason = why(&records[n]); verdicts[n].Reason == 0 {
				good = append(good, records[n])
			}
		}
		written, err := s.write(good)
		for n := range verdicts {
			if verdicts[n].Reason == 0 && err == nil {
				verdicts[n], written = written[0], written[1:]
			}
		}
		return verdicts, err
	}
}

// refuseAll makes it refuse all.
func (s *side) refuseAll() {
	s.declines(func(*dbadapter.Record) wire.Reason { return wire.ReasonSignature })
}

// refuseBad makes it refuse the keys that begin with "bad".
func (s *side) refuseBad(why wire.Reason) {
	s.declines(func(r *dbadapter.Record) wire.Reason {
		if strings.HasPrefix(string(r.Key), "bad") {
			return why
		}
		return 0
	})
}

// decline makes it refuse one writer's records.
func (s *side) decline(writer dbadapter.WriterID) {
	s.declines(func(r *dbadapter.Record) wire.Reason {
		if r.Version.Writer == writer {
			return wire.ReasonWriter
		}
		return 0
	})
}

// declineKeys makes it decline what has a reason's name in its key.
func (s *side) declineKeys() {
	s.declines(func(r *dbadapter.Record) wire.Reason {
		switch key := string(r.Key); {
		case strings.Contains(key, "floor"):
			return wire.ReasonFloor
		case strings.Contains(key, "writer"):
			return wire.ReasonWriter
		}
		return 0
	})
}

func (s *side) put(records ...dbadapter.Record) {
	s.t.Helper()
	if _, err := s.write(records); err != nil {
		s.t.Fatal(err)
	}
}

// dump is everything the side holds.
func (s *side) dump() []dbadapter.Record {
	s.t.Helper()
	snap, err := s.ns.Snapshot()
	if err != nil {
		s.t.Fatal(err)
	}
	defer snap.Close()
	var all []dbadapter.Record
	for r, err := range snap.Scan(context.Background(), nil, nil) {
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, r.Record)
	}
	return all
}

// open opens a replica of what the side holds, or of a prefix of it.
func (s *side) open() *set { return s.openSpan(wire.Span{}) }

// openSpan is open, of a span.
func (s *side) openSpan(span wire.Span) *set {
	s.t.Helper()
	snap, err := s.ns.Snapshot()
	if err != nil {
		s.t.Fatal(err)
	}
	defer snap.Close()
	all := newSet(s.keys, 256)
	for r, err := range snap.Scan(context.Background(), s.prefix, nil) {
		if err != nil {
			s.t.Fatal(err)
		}
		if span.Holds(r.Index) {
			all.put(r)
		}
	}
	return all
}

// state is the digest and the number of all that the side holds.
func (s *side) state() (digest dbadapter.Digest, records uint64) {
	for _, r := range s.dump() {
		digest = digest.Add(s.keys.Hasher.Digest(&r))
		records++
	}
	return digest, records
}

func (s *side) options(remote *side, o Options) Options {
	o.Keys, o.Self, o.Remote, o.Admit = s.keys, []byte(s.name), []byte(remote.name), admitting(s.admit)
	copy(o.Nonce[:], s.name)
	o.Declined, o.Budget, o.Elapsed, o.GiveWay = &s.declined, s.budget, s.elapsed, s.giveWay
	o.Prefix, o.Greeting, o.Heed = s.prefix, s.greets, s.heeds
	o.PartsFrom = s.parts
	if o.FirstCells == 0 {
		o.FirstCells = s.first
	}
	return o
}

// outcome is how a sync ended on both sides.
type outcome struct {
	a, b       Report
	errA, errB error
	log        []string // the kinds of the messages, in order
}

// tap sees, and may change, each message on its way; nil drops the line.
type tap func(fromInitiator bool, m wire.Message) wire.Message

// run carries the messages of one sync between two sides, through their
// encoding.
func run(t testing.TB, a, b *side, o Options, tap tap) (out outcome) {
	t.Helper()
	va, vb := a.openSpan(o.Span), b.openSpan(o.Span)
	defer va.Close()
	defer vb.Close()
	sa, sb := Initiate(va, a.options(b, o)), Respond(opening(vb), b.options(a, Options{}))
	defer sa.Close()
	defer sb.Close()
	carry(t, sa, sb, &out, tap)
	out.a, out.b, out.errA, out.errB = sa.Report(), sb.Report(), sa.Err(), sb.Err()
	return out
}

// synced is run, of a sync that must end well on both sides.
func synced(t testing.TB, a, b *side, o Options, tap tap) outcome {
	t.Helper()
	out := run(t, a, b, o, tap)
	if out.errA != nil || out.errB != nil {
		t.Fatal(out.errA, out.errB, out.log)
	}
	return out
}

// carry runs two sessions until neither wants anything. A side that waits is
// left until it has mail; when both wait, or the other side is over, its line
// breaks.
func carry(t testing.TB, sa, sb *Session, out *outcome, tap tap) {
	t.Helper()
	sides := [2]*courier{{s: sa}, {s: sb}}
	sides[0].peer, sides[1].peer = sides[1], sides[0]
	for !sides[0].over || !sides[1].over {
		moved := false
		for n, c := range sides {
			for c.step(t, n == 0, out, tap) {
				moved = true
			}
		}
		if !moved {
			for _, c := range sides {
				c.mail = append(c.mail, parcel{})
			}
		}
	}
}

type parcel struct {
	m    wire.Message
	size int
}

// courier carries for one session.
type courier struct {
	s       *Session
	peer    *courier
	mail    []parcel
	waiting bool
	over    bool
}

// step does one thing for the session, and reports whether it could.
func (c *courier) step(t testing.TB, initiator bool, out *outcome, tap tap) bool {
	if c.over {
		return false
	}
	if c.waiting {
		if len(c.mail) == 0 {
			if !c.peer.over {
				return false
			}
			c.mail = append(c.mail, parcel{})
		}
		if p := c.mail[0]; p.m != nil {
			c.s.Deliver(p.m, p.size)
		} else {
			c.s.Fail(errLine)
		}
		c.mail, c.waiting = c.mail[1:], false
	}
	switch e := c.s.Next(); e.Want {
	case WantNothing:
		c.over = true
	case WantReceive:
		c.waiting = true
	case WantSend:
		m, n, err := wire.Read(bytes.NewReader(slices.Clone(e.Frame)))
		if err != nil || n != len(e.Frame) {
			t.Fatalf("%T does not survive its encoding: %v", e.Message, err)
		}
		from := "B"
		if initiator {
			from = "A"
		}
		out.log = append(out.log, from+strings.TrimPrefix(fmt.Sprintf("%T", m), "*wire."))
		if tap != nil {
			m = tap(initiator, m)
		}
		c.peer.mail = append(c.peer.mail, parcel{m, n})
	}
	return true
}

var errLine = errors.New("the line broke")

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

// wantEqual fails unless both sides hold the same.
func wantEqual(t testing.TB, a, b *side) {
	t.Helper()
	da, db := a.dump(), b.dump()
	if len(da) != len(db) {
		t.Fatalf("%d records against %d", len(da), len(db))
	}
	for i := range da {
		x, y := da[i], db[i]
		if !bytes.Equal(x.Key, y.Key) || x.Version != y.Version || !x.SameContent(&y) {
			t.Fatalf("record %d: %q %v against %q %v", i, x.Key, x.Version, y.Key, y.Version)
		}
	}
}
