package reconcile

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/storetest"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// frozen is a set of records that never changes. Any number of sessions read it; what they
// let in goes into their trial.
type frozen struct {
	*set
	records []dbadapter.Record // by key
}

func freeze(hasher dbadapter.Hasher, records []dbadapter.Record) *frozen {
	keys := testKeys
	keys.Hasher = hasher
	f := &frozen{newSet(keys, 2048), merge(records, nil)}
	for _, r := range hashed(hasher, f.records...) {
		f.put(r)
	}
	return f
}

func (f *frozen) digest() dbadapter.Digest { return f.ranges.Total().Digest }

func (f *frozen) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(f.records, key, func(r dbadapter.Record, key []byte) int { return bytes.Compare(r.Key, key) })
}

// holds reports whether the set has just this record.
func (f *frozen) holds(r *dbadapter.Record) bool {
	at, ok := f.find(r.Key)
	return ok && r.Version == f.records[at].Version && r.SameContent(&f.records[at])
}

// trial is a frozen set as one session sees it, with an admission that checks
// clocks, writers and signatures, and notes what it lets in.
type trial struct {
	*frozen
	prefix  []byte
	applied map[string]dbadapter.Record
	reached int                          // records that came to the admission
	read    int                          // buckets read
	refused [5]int                       // by reason
	asked   func(dbadapter.Record) error // is it one that may come to the admission?
	err     error                        // of asked
}

var _ Replica = (*trial)(nil)

func (f *trial) Repair(dbadapter.Range, dbadapter.Sum) {}

func (f *trial) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	f.read += len(indices)
	return f.set.Buckets(indices)
}

func (f *trial) Apply(records []dbadapter.Record) ([]Verdict, error) {
	verdicts := make([]Verdict, len(records))
	for n := range records {
		r := &records[n]
		f.reached++
		if f.asked != nil && f.err == nil {
			f.err = f.asked(*r)
		}
		if verdicts[n].Reason = examine(r); verdicts[n].Reason != 0 {
			f.refused[verdicts[n].Reason]++
			continue
		}
		held, here := f.applied[string(r.Key)]
		if at, ok := f.find(r.Key); !here && ok {
			held, here = f.records[at], true
		}
		switch c := r.Compare(&held); {
		case !here || c > 0:
			verdicts[n].Result = dbadapter.Applied
			f.applied[string(r.Key)] = r.Clone()
		case c == 0:
			verdicts[n].Result = dbadapter.Same
		default:
			verdicts[n].Result = dbadapter.Dominated
		}
	}
	return verdicts, nil
}

// after is the digest of the set with all that was let in.
func (f *trial) after() dbadapter.Digest {
	d := f.digest()
	for key, r := range f.applied {
		if at, ok := f.find([]byte(key)); ok {
			d = d.Sub(f.keys.Hasher.Digest(&f.records[at]))
		}
		d = d.Add(f.keys.Hasher.Digest(&r))
	}
	return d
}

// The writers of the worlds: one whose key no hostile peer has, and one that
// may only read.
const (
	honestWriter = 7
	readingOnly  = 8
)

// signature is what stands for one here: only a side that knows the writer's key
// can make it. What Ed25519 does is tested with the admission of internal/node.
func signature(r *dbadapter.Record) []byte {
	b := fmt.Appendf(nil, "key of writer %d: %q %v ", r.Version.Writer, r.Key, r.Deleted)
	b, _ = r.Version.AppendBinary(b)
	sum := sha256.Sum256(append(b, r.Value...))
	return append(sum[:], sum[:]...)
}

// examine is the verdict of the test's own admission, 0 for a good record. It is a
// twin of internal/node's, made stupid on purpose: one writer, one limit of time,
// a hash for a signature.
func examine(r *dbadapter.Record) wire.Reason {
	switch now := at(24 * time.Hour).Clock; {
	case r.Version.Clock > now || r.Version.Clock < at(-24*365*time.Hour).Clock:
		return wire.ReasonClock
	case r.Version.Writer != honestWriter:
		return wire.ReasonWriter
	case !bytes.Equal(r.Signature, signature(r)):
		return wire.ReasonSignature
	}
	return 0
}

// world is an honest session: two sets, what the initiator wished, and the
// frames of both sides.
type world struct {
	name   string
	wish   Options
	sides  [2]*frozen // the initiator's and the responder's
	frames [2][][]byte
	merged dbadapter.Digest
	ended  [2]Report
}

// options are those of one side of the world's session.
func (w *world) options(side int, nonce wire.Nonce) Options {
	o := Options{Keys: w.sides[side].keys, Self: []byte("a"), Remote: []byte("b"), Nonce: nonce}
	if side == 1 {
		o.Self, o.Remote = o.Remote, o.Self
		return o
	}
	o.Direction, o.Method, o.DryRun, o.Prefix, o.FirstCells = w.wish.Direction, w.wish.Method, w.wish.DryRun, w.wish.Prefix, w.wish.FirstCells
	o.Differs = w.wish.Differs
	return o
}

// begin starts one side of the world's session anew, with a remote of another
// name if that is not nil.
func (w *world) begin(side int, nonce wire.Nonce, remote []byte) (*Session, *trial, Options) {
	t := &trial{frozen: w.sides[side], prefix: w.wish.Prefix, applied: map[string]dbadapter.Record{}}
	o := w.options(side, nonce)
	o.Admit = admitting(t.Apply)
	if remote != nil {
		o.Remote = remote
	}
	if side == 0 {
		return Initiate(t, o), t, o
	}
	return Respond(opening(t), o), t, o
}

// shapes are the sessions that hostile vectors are made of.
var shapes = []struct {
	name                         string
	common, onlyA, onlyB, differ int
	spread                       time.Duration
	size                         int // of the values that differ
	weak                         bool
	coarse                       bool // checksums tell the time alone
	phantom                      bool // a's sketch has a pair of no record
	wish                         Options
}{
	{name: "same", common: 20},
	{name: "small", common: 20, onlyA: 3, onlyB: 3, differ: 3, spread: time.Hour},
	{name: "missing", common: 10, onlyA: 2, onlyB: 6},
	{name: "big", common: 60, onlyA: 60, onlyB: 60, differ: 20, spread: time.Hour, wish: Options{FirstCells: 32}},
	{name: "all", onlyB: 25},
	{name: "all to an empty side", onlyA: 25},
	{name: "all of both", common: 5, onlyA: 5, onlyB: 5, differ: 3, spread: time.Hour, wish: Options{Method: wire.MethodAll}},
	{name: "dry", common: 20, onlyA: 3, onlyB: 3, differ: 3, spread: time.Hour, wish: Options{DryRun: true}},
	{name: "pull", common: 20, onlyA: 3, onlyB: 3, differ: 3, spread: time.Hour, wish: Options{Direction: wire.Pull}},
	{name: "push", common: 20, onlyA: 3, onlyB: 3, differ: 3, spread: time.Hour, wish: Options{Direction: wire.Push}},
	{name: "prefix", common: 15, onlyA: 3, onlyB: 3, differ: 3, spread: time.Hour, wish: Options{Prefix: []byte("p/")}},
	{name: "ambiguous", common: 15, onlyA: 1, onlyB: 1, differ: 8, spread: time.Second},
	{name: "large", common: 15, onlyA: 1, onlyB: 1, differ: 8, spread: time.Hour, size: 1200},
	{name: "large and ambiguous", common: 15, differ: 6, spread: time.Second, size: 1200},
	{name: "buckets", common: 12, onlyA: 6, onlyB: 6, differ: 6, spread: time.Hour, weak: true},
	{name: "collisions", common: 12, onlyA: 2, onlyB: 2, differ: 4, spread: time.Second, coarse: true},
	{name: "phantom", common: 12, onlyA: 2, onlyB: 2, differ: 4, spread: time.Hour, phantom: true},
	{name: "listing", common: 20, onlyA: 3, onlyB: 3, differ: 6, spread: time.Hour, wish: Options{DryRun: true, Differs: takeAll}},
	{name: "listing of buckets", common: 12, onlyA: 6, onlyB: 6, differ: 6, spread: time.Hour, weak: true, wish: Options{DryRun: true, Differs: takeAll}},
	{name: "listing of all", onlyB: 25, wish: Options{DryRun: true, Differs: takeAll}},
	{name: "phantom, dry", common: 12, onlyA: 2, onlyB: 2, differ: 4, spread: time.Hour, phantom: true, wish: Options{DryRun: true}},
}

func takeAll(KeyDifference) (bool, error) { return true, nil }

// worlds records an honest session of each shape, several times.
func worlds(t testing.TB, times int) (all []*world) {
	for n := range times * len(shapes) {
		s := &shapes[n%len(shapes)]
		rng := rand.New(rand.NewPCG(uint64(n), 77))
		hasher := dbadapter.NewHasher(testSecret)
		if s.weak {
			hasher = storetest.Weak(hasher, 4)
		}
		if s.coarse {
			hasher = coarse{hasher}
		}
		// Keys are those of the shape: a record of another session of it may
		// be an older or newer version of one here.
		write := func(key string, i int, when time.Duration) dbadapter.Record {
			size := s.size
			if size == 0 || rng.IntN(4) == 0 {
				size = rng.IntN(20)
			}
			r := record(fmt.Sprintf("p/%s/%s/%d", s.name, key, i), strings.Repeat(string(rune('a'+rng.IntN(3))), size), at(when))
			r.Version.Incarnation = rng.Uint64()
			if rng.IntN(5) == 0 {
				r.Deleted, r.Value = true, nil
			}
			r.Signature = signature(&r)
			return r
		}
		recent := func() time.Duration { return time.Duration(rng.Int64N(int64(s.spread) + 1)) }
		var a, b []dbadapter.Record
		for i := range s.common {
			r := write("common", i, -time.Hour)
			a, b = append(a, r), append(b, r)
		}
		for i := range s.onlyA {
			a = append(a, write("a", i, recent()))
		}
		for i := range s.onlyB {
			b = append(b, write("b", i, recent()))
		}
		for i := range s.differ {
			ours, theirs := write("differ", i, recent()), write("differ", i, recent())
			if s.size > 0 && i%3 == 0 && !ours.Deleted {
				theirs.Value, theirs.Deleted = ours.Value, false
				theirs.Signature = signature(&theirs)
			}
			a, b = append(a, ours), append(b, theirs)
		}
		sides := [2]*frozen{freeze(hasher, a), freeze(hasher, b)}
		if s.phantom {
			sides[0].sketch.Add(sealed(dbadapter.Index(1+rng.Uint64N(rateless.P-1)), 5))
		}
		all = append(all, recordWorld(t, &world{
			name: s.name, wish: s.wish, sides: sides,
			merged: freeze(hasher, merge(a, b)).digest(),
		}))
	}
	return all
}

// worldNonces are those of the sessions recorded.
var worldNonces = [2]wire.Nonce{{1}, {2}}

// recordWorld runs the session that the world is about.
func recordWorld(t testing.TB, w *world) *world {
	sa, ta, _ := w.begin(0, worldNonces[0], nil)
	sb, tb, _ := w.begin(1, worldNonces[1], nil)
	defer sa.Close()
	defer sb.Close()
	var out outcome
	carry(t, sa, sb, &out, func(initiator bool, m wire.Message) wire.Message {
		from := 1
		if initiator {
			from = 0
		}
		w.frames[from] = append(w.frames[from], wire.Append(nil, m))
		return m
	})
	if sa.Err() != nil || sb.Err() != nil {
		t.Fatalf("%s: %v, %v", w.name, sa.Err(), sb.Err())
	}
	w.ended = [2]Report{sa.Report(), sb.Report()}
	if both := w.wish.Direction == wire.Both && !w.wish.DryRun; both && (ta.after() != w.merged || tb.after() != w.merged || !w.ended[0].Verified || !w.ended[1].Verified) {
		t.Fatalf("%s: an honest session does not end verified: %+v", w.name, w.ended)
	}
	return w
}
