package reconcile

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

var (
	vectors    = flag.Int("vectors", 20_000, "number of hostile vectors in TestHostileVectors")
	vectorSeed = flag.Uint64("vectorseed", 1, "seed of the hostile vectors")
	vectorOnly = flag.Int("vector", -1, "run this hostile vector alone")
)

// What a session may take at most, whatever comes. Cells that it was asked for
// are in what it has sent: 16 bytes each, made, copied and framed.
const (
	allocBase    = 256<<10 + hashesBytes
	allocPerByte = 96
	allocPerSent = 16
	eventsBase   = 64 + 2*MaxCells/wire.MaxCells + maxRounds
)

// errVectors are all errors that a hostile peer may lead to.
var errVectors = []struct {
	name string
	err  error
}{
	{"not verified", ErrNotVerified},
	{"denied", ErrDenied},
	{"version", ErrVersion},
	{"protocol", ErrProtocol},
	{"busy", ErrBusy},
	{"limit", ErrLimit},
	{"peer", ErrPeer},
	{"removed", ErrRemoved},
	{"lists differ", ErrListsDiffer},
	{"twin", ErrTwin},
	{"frame", wire.ErrFrame},
	{"frame cut", io.ErrUnexpectedEOF},
	{"line ended", io.EOF},
}

// Any number of vectors: the frames of one side of an honest session, damaged,
// are delivered to the other side, begun anew. Its session ends with a named
// error or well, within bounded events, memory and look-ups; what it lets in
// was asked for; and it says verified only if the two sets are equal.
func TestHostileVectors(t *testing.T) {
	pool := worlds(t, 5)
	truths := map[dbadapter.Digest]*frozen{}
	for _, w := range pool {
		truths[w.sides[0].digest()], truths[w.sides[1].digest()] = w.sides[0], w.sides[1]
	}
	before := runtime.NumGoroutine()
	count := map[string]int{}
	first, last := 0, *vectors
	if *vectorOnly >= 0 {
		first, last = *vectorOnly, *vectorOnly+1
	}
	for n := first; n < last; n++ {
		v := newVector(pool, truths, n)
		if err := v.run(); err != nil {
			t.Fatalf("%s, %s to the %s: %v\nreplay: go test ./reconcile -run TestHostileVectors -vectorseed %d -vector %d",
				v.d.w.name, v.kind(), []string{"initiator", "responder"}[v.side], err, *vectorSeed, n)
		}
		v.count(count)
	}
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines before, %d after", before, now)
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		t.Logf("%8d %s", count[name], name)
	}
	if framed := count["past framing"]; *vectorOnly < 0 && framed*2 < *vectors {
		t.Errorf("%d of %d vectors pass framing; at least half should", framed, *vectors)
	}
}

// vector is one hostile peer.
type vector struct {
	d    damager
	side int // the side that listens: 0 the initiator, 1 the responder
	// stranger: it does not know the secret, and its proofs are old ones;
	// itself: they are its own, from when it knew it.
	// liar: it fits its residual to the lie, so that only what it sends
	// afterwards can give it away.
	stranger, itself, liar bool
	stream                 []byte

	truths map[dbadapter.Digest]*frozen

	// What happened.
	session   *Session
	trial     *trial
	delivered int64
	framing   bool // a frame was malformed or cut
	inTold    map[dbadapter.Index]wire.Role
	left      []dbadapter.Range
	relisted  map[dbadapter.Range]bool
	all       bool
	unsaid    bool // records stayed with the peer that only it knows
	proved    bool // the residuals were compared, and equal
	altered   bool // the cells are not those of the peer's set
	getsNone  bool // of a responder whose initiator only pulls
	announced dbadapter.Digest
	events    int
}

func newVector(pool []*world, truths map[dbadapter.Digest]*frozen, n int) *vector {
	rng := rand.New(rand.NewPCG(*vectorSeed, uint64(n)))
	v := &vector{truths: truths, inTold: map[dbadapter.Index]wire.Role{}, side: rng.IntN(2)}
	v.d = damager{rng: rng, pool: pool, w: pool[rng.IntN(len(pool))], from: 1 - v.side}
	v.stranger, v.liar = rng.IntN(16) == 0, rng.IntN(4) == 0
	v.stream = bytes.Join(v.d.spoil(v.d.w.frames[1-v.side]), nil)
	return v
}

func (v *vector) kind() string {
	switch {
	case v.stranger:
		return "a stranger"
	case v.liar:
		return "a liar"
	}
	return "a member"
}

// run delivers the vector and checks what came of it.
func (v *vector) run() error {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	total := mem.TotalAlloc
	var nonce wire.Nonce
	if v.stranger {
		for i := range nonce {
			nonce[i] = byte(v.d.rng.Uint32())
		}
	} else {
		nonce = worldNonces[v.side] // a member can make its hashes fit any nonce
	}
	var o Options
	var name []byte
	if v.stranger && !v.itself {
		name = []byte("mallory")
	}
	v.session, v.trial, o = v.d.w.begin(v.side, nonce, name)
	v.trial.asked = v.asked
	defer v.session.Close()
	if err := v.deliver(o); err != nil {
		return err
	}
	runtime.ReadMemStats(&mem)
	return v.check(mem.TotalAlloc - total)
}

func (v *vector) deliver(o Options) error {
	in := bytes.NewReader(v.stream)
	var residual dbadapter.Digest
	for {
		if v.events++; v.events > eventsBase+int(v.delivered) {
			return fmt.Errorf("no end after %d events and %d bytes", v.events, v.delivered)
		}
		switch e := v.session.Next(); e.Want {
		case WantNothing:
			return nil
		case WantSend:
			if v.side == 1 {
				v.note(e.Message)
			}
			switch m := e.Message.(type) {
			case *wire.Result:
				residual = m.Residual
			case *wire.Listing:
				v.listed(m)
			}
		case WantReceive:
			m, n, err := wire.Read(in)
			v.delivered += int64(n)
			if err != nil {
				v.framing = v.framing || errors.Is(err, wire.ErrFrame) || errors.Is(err, io.ErrUnexpectedEOF)
				v.session.Fail(err)
				continue
			}
			if !v.stranger {
				prove(m, o, o.Nonce)
			}
			if v.side == 0 {
				v.note(m)
			}
			v.meet(m, residual)
			v.session.Deliver(m, n)
		}
	}
}

// meet fits a liar's residual to the lie, and notes what the peer claims.
// residual is the one that the session has sent.
func (v *vector) meet(m wire.Message, residual dbadapter.Digest) {
	switch m := m.(type) {
	case *wire.Hello:
		v.announced, v.getsNone = m.Digest, m.Direction == wire.Pull
		own, _ := v.d.w.sides[0].sketch.Cells(0, len(m.Cells))
		v.altered = v.altered || !slices.Equal(m.Cells, own)
	case *wire.Cells, *wire.Marks:
		v.altered = true
	case *wire.Listing:
		v.listed(m)
	case *wire.Welcome:
		v.announced = m.Digest
	case *wire.Result:
		told := v.told()
		if v.liar {
			m.Residual, m.Told = v.residual(), told
		}
		v.proved = m.Residual == v.residual() && m.Told == told && m.Method != wire.MethodRanges
	case *wire.Answer:
		if v.liar {
			m.Residual = residual
		}
		v.proved = m.Residual == residual
	}
}

// note reads the account, which the responder tells.
func (v *vector) note(m wire.Message) {
	switch m := m.(type) {
	case *wire.Indices:
		for _, i := range m.Indices {
			v.inTold[i] = m.Role
		}
		if stays := [2]wire.Role{wire.Older, wire.Newer}[v.side]; m.Role == stays || m.Role == wire.Newer && v.d.w.wish.Direction == wire.Push {
			v.unsaid = true
		}
	case *wire.Offers:
		for i := range m.Offers {
			v.inTold[v.trial.keys.Hasher.Index(m.Offers[i].Record.Key)] = roleOffered
		}
		if v.side == 0 || !m.Wanting {
			v.unsaid = true
		}
	case *wire.Result:
		v.all = m.Method == wire.MethodAll
	}
}

// residual is what the initiator will find.
func (v *vector) residual() dbadapter.Digest {
	d := v.trial.digest()
	for _, r := range v.left {
		d = d.Sub(v.trial.Ranges(r, r+1).Digest)
	}
	for i := range v.inTold {
		for n := range v.trial.buckets[i] {
			d = d.Sub(v.trial.buckets[i][n].Digest)
		}
	}
	return d
}

// asked is called for each record that comes to the admission.
func (v *vector) asked(r dbadapter.Record) error {
	role, told := v.inTold[v.trial.keys.Hasher.Index(r.Key)]
	switch {
	case !bytes.HasPrefix(r.Key, v.d.w.wish.Prefix) && v.side == 0:
		return fmt.Errorf("key %q is outside the prefix", r.Key)
	case v.side == 0 && v.d.w.wish.Direction == wire.Push, v.d.w.wish.DryRun && v.side == 0:
		return fmt.Errorf("key %q came in a sync that gets nothing", r.Key)
	case v.side == 1 && v.getsNone:
		return fmt.Errorf("key %q came in a pull", r.Key)
	case v.all:
		return nil
	case !v.proved:
		return fmt.Errorf("key %q came to the admission before the residuals were equal", r.Key)
	case v.side == 1 && !v.altered && (role == wire.Wanted || role == wire.Older) && !v.d.w.sides[0].holds(&r):
		return fmt.Errorf("key %q is not what the cells told of", r.Key)
	case !told:
		return fmt.Errorf("key %q was not asked for", r.Key)
	case v.side == 0 && role != wire.Lacking && role != wire.Newer && role != wire.Older && role != roleOffered,
		v.side == 1 && role == wire.Lacking:
		return fmt.Errorf("key %q came in the role %d", r.Key, role)
	}
	return nil
}

// check holds what happened against what may.
func (v *vector) check(allocated uint64) error {
	report, err := v.session.Report(), v.session.Err()
	switch most := allocBase + allocPerByte*v.delivered + allocPerSent*report.WireBytesSent; {
	case v.trial.err != nil:
		return v.trial.err
	case err != nil && v.named() == "":
		return fmt.Errorf("an error without a name: %w", err)
	case int64(allocated) > most:
		return fmt.Errorf("%d bytes allocated, for %d delivered and %d sent: at most %d are allowed; %w", allocated, v.delivered, report.WireBytesSent, most, err)
	case report.Sent > len(v.trial.records):
		return fmt.Errorf("%d records sent of %d", report.Sent, len(v.trial.records))
	case report.Verified && report.Method == wire.MethodSketch && !v.proved:
		return errors.New("verified without equal residuals")
	case int64(v.trial.read) > 64+v.delivered:
		return fmt.Errorf("%d buckets read for %d bytes", v.trial.read, v.delivered)
	case int64(v.trial.reached) > v.delivered/8:
		return fmt.Errorf("%d records at the admission for %d bytes", v.trial.reached, v.delivered)
	case err != nil && report.Verified:
		return fmt.Errorf("verified, and failed: %w", err)
	case v.stranger && !v.itself && (err == nil || v.trial.reached > 0 || report.Verified || v.side == 1 && report.WireBytesSent > wire.MaxText):
		return fmt.Errorf("a stranger was told %d bytes, and %d of its records came to the admission; %w", report.WireBytesSent, v.trial.reached, err)
	case report.Verified:
		return v.truth(&report)
	}
	return nil
}

// truth checks that a sync called verified has made the two sets equal. What
// the peer holds is what it announced.
func (v *vector) truth(report *Report) error {
	theirs := v.truths[v.announced]
	after := v.trial.after()
	switch {
	case report.Rejected > 0:
		return errors.New("verified, though records were refused")
	case report.Method == wire.MethodSame && v.announced == v.trial.digest(), after == v.d.w.merged, v.unsaid:
		return nil
	case report.Method == wire.MethodSketch && v.d.w.wish.DryRun && v.side == 0:
		return nil
	case theirs != nil && freeze(v.trial.keys.Hasher, merge(v.trial.records, theirs.records)).digest() == after:
		return nil
	}
	return fmt.Errorf("verified, but the sets differ: %+v", *report)
}

// named is the name of the session's error.
func (v *vector) named() string {
	for _, e := range errVectors {
		if errors.Is(v.session.Err(), e.err) {
			return e.name
		}
	}
	return ""
}

// count books how the vector ended.
func (v *vector) count(count map[string]int) {
	count["vectors"]++
	count["vectors to the "+[]string{"initiator", "responder"}[v.side]]++
	if !v.framing {
		count["past framing"]++
	}
	name := v.named()
	switch r := v.session.Report(); {
	case name != "":
		name = "ended: " + name
	case r.Verified && v.unsaid:
		name = "ended: verified, with older versions that only the peer knows"
	case r.Verified:
		name = "ended: verified"
	default:
		name = "ended: not verified, without an error"
	}
	count[name]++
	for reason, n := range v.trial.refused {
		if n > 0 {
			count["with records refused: "+wire.Reason(reason).String()]++
		}
	}
	if v.stranger {
		count["strangers"]++
	}
}
