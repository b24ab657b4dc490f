package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

func by(writer dbadapter.WriterID, d time.Duration) dbadapter.Version {
	v := at(d)
	v.Writer = writer
	return v
}

// A responder that keeps back a record since the initiator has declined it must
// still get the initiator's newer one. Here the two differ by a second, so that
// the responder's travels on suspicion.
func TestNewerRecordPassesAWithheldOne(t *testing.T) {
	for name, value := range map[string]string{"small": "v", "large": strings.Repeat("v", 5000)} {
		t.Run(name, func(t *testing.T) {
			a, b := newSide(t, "a", nil), newSide(t, "b", nil)
			a.put(record("common", "", at(0)))
			b.put(record("common", "", at(0)), record("k", value, by(3, 0)))
			a.decline(3)
			run(t, a, b, Options{}, nil)
			if len(b.declined.list()) != 1 {
				t.Fatal("the record was not declined")
			}
			a.put(record("k", value+"newer", by(1, time.Second)))
			out := run(t, a, b, Options{}, nil)
			if out.errA != nil || out.errB != nil || out.b.Applied != 1 {
				t.Errorf("%v, %v, %d applied at the responder; %v", out.errA, out.errB, out.b.Applied, out.log)
			}
			wantEqual(t, a, b)
			if out := run(t, a, b, Options{}, nil); !out.a.Verified || out.a.Method != wire.MethodSame {
				t.Errorf("the next sync: %+v", out.a)
			}
		})
	}
}

// Two contents of one version: that of a withheld record does not travel, so that
// the responder must get the initiator's, which wins.
func TestOneVersionPassesAWithheldOne(t *testing.T) {
	low, high := record("k", "x", at(0)), record("k", "y", at(0))
	if low.Compare(&high) > 0 {
		low, high = high, low
	}
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	a.put(record("common", "", at(0)))
	b.put(record("common", "", at(0)), low)
	a.refuseAll()
	run(t, a, b, Options{}, nil)
	if len(b.declined.list()) != 1 {
		t.Fatal("the record was not declined")
	}
	a.put(high)
	out := run(t, a, b, Options{}, nil)
	if out.errA != nil || out.errB != nil || out.b.Applied != 1 {
		t.Errorf("%v, %v, %d applied at the responder; %v", out.errA, out.errB, out.b.Applied, out.log)
	}
	wantEqual(t, a, b)
}

// A declined record travels as its head by every method, and keeps both sides
// from calling the sets equal; once it is forgotten it travels whole.
func TestWithheldByEveryMethod(t *testing.T) {
	for _, method := range []wire.Method{wire.MethodSketch, wire.MethodAll} {
		for _, giver := range []int{0, 1} {
			sides := []*side{newSide(t, "a", nil), newSide(t, "b", nil)}
			from, to := sides[giver], sides[1-giver]
			from.put(record("common", "", at(0)), record("k", strings.Repeat("x", 900), by(3, 0)))
			to.put(record("common", "", at(0)))
			to.decline(3)
			var reports [3][2]Report
			for n := range reports {
				if n == 2 {
					from.declined.forget()
					to.admit = to.write
				}
				out := synced(t, sides[0], sides[1], Options{Method: method}, nil)
				reports[n] = [2]Report{out.a, out.b}
				if equal := n == 2; out.a.Verified != equal || out.b.Verified != equal {
					t.Errorf("%v, sync %d: verified %v and %v", method, n, out.a.Verified, out.b.Verified)
				}
			}
			sent := func(n int) int64 { return reports[n][giver].RecordBytes }
			if sent(1) > sent(0)-700 || sent(2) < sent(0)-100 || reports[1][0].Rejected == 0 || reports[1][1].Rejected == 0 {
				t.Errorf("%v: %d, %d and %d bytes of records; %+v", method, sent(0), sent(1), sent(2), reports[1])
			}
			wantEqual(t, sides[0], sides[1])
		}
	}
}

// A withheld record cannot carry another digest than the one that was told.
func TestWithheldRecordIsChecked(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	a.put(record("common", "", at(0)), record("k", "v", by(3, 0)))
	b.put(record("common", "", at(0)))
	b.decline(3)
	run(t, a, b, Options{}, nil)
	for name, spoil := range map[string]func(*wire.Sent){
		"another digest":  func(s *wire.Sent) { s.Digest[0]++ },
		"another version": func(s *wire.Sent) { s.Record.Version.Clock += 1 << 40 },
	} {
		out := run(t, a, b, Options{}, func(initiator bool, m wire.Message) wire.Message {
			if r, ok := m.(*wire.Records); ok && initiator {
				spoil(&r.Records[0])
			}
			return m
		})
		if out.errB == nil || out.b.Verified {
			t.Errorf("%s: %v, verified %v; %v", name, out.errB, out.b.Verified, out.log)
		}
	}
}

// twoKeys puts two keys on each index: those that differ in their last byte.
type twoKeys struct{ dbadapter.Hasher }

func (h twoKeys) Index(key []byte) dbadapter.Index { return h.Hasher.Index(key[:len(key)-1]) }

// Buckets of two records that are as new as the other side's travel whole, also
// beyond what may travel on suspicion: an offer names one record.
func TestAmbiguousBucketsTravelWhole(t *testing.T) {
	h := twoKeys{dbadapter.NewHasher(testSecret)}
	a, b := newSide(t, "a", h), newSide(t, "b", h)
	for i := range 200 {
		first, second := fmt.Sprintf("k%03da", i), fmt.Sprintf("k%03db", i)
		a.put(record(first, strings.Repeat("a", 900), at(2*time.Second)))
		b.put(record(first, strings.Repeat("b", 900), at(time.Second)), record(second, "", at(0)))
	}
	out := run(t, a, b, Options{}, nil)
	if out.errA != nil || out.errB != nil || !out.a.Verified || !out.b.Verified {
		t.Errorf("%v, %v, verified %v and %v; %v", out.errA, out.errB, out.a.Verified, out.b.Verified, out.log)
	}
	wantEqual(t, a, b)
}
