package reconcile

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The responder sends its records before the plan is proved. Where the proof fails, they
// come once more after the repair: of the first ones nothing is applied, refused or
// counted, and of the second ones each is, once.
func TestFirstLegIsSentAgain(t *testing.T) {
	const each = 700
	for at := range 2 {
		for _, direction := range []wire.Direction{wire.Both, wire.Pull, wire.Push} {
			t.Run(fmt.Sprintf("a fault of side %d, %v", at, direction), func(t *testing.T) {
				a, b := newSide(t, "a", nil), newSide(t, "b", nil)
				for i := range each {
					a.put(record(fmt.Sprint("a/", i), "v", at2(i)))
					b.put(record(fmt.Sprint("b/", i), "v", at2(i)))
				}
				listed := false
				var admitted [2]map[string]int
				for n, s := range []*side{a, b} {
					admitted[n] = map[string]int{}
					s.admit = func(records []dbadapter.Record) ([]Verdict, error) {
						if !listed {
							t.Error("records of a plan that is not proved are admitted")
						}
						for i := range records {
							admitted[n][string(records[i].Key)]++
						}
						verdicts, err := s.write(records)
						for i := range records {
							if i%10 == 0 { // too late to keep it out: what counts is what is told
								verdicts[i] = Verdict{Reason: wire.ReasonFull}
							}
						}
						return verdicts, err
					}
				}
				views := []Replica{a.open(), b.open()}
				r, _ := openSpoilt([2]*side{a, b}[at], wire.Span{}, func(s *spoilt) {
					from, _ := dbadapter.Range(9).Bounds()
					s.ranges.Add(from, dbadapter.Sum{Digest: dbadapter.Digest{1}})
				})
				views[at] = r
				first, second := 0, 0
				out := between(t, a, b, views[0], views[1], Options{Direction: direction}, func(from bool, m wire.Message) wire.Message {
					switch m := m.(type) {
					case *wire.Listing:
						listed = true
					case *wire.Records:
						if listed && !from {
							second += len(m.Records)
						} else if !from {
							first += len(m.Records)
						}
					}
					return m
				})
				if out.errA != nil || out.errB != nil {
					t.Fatal(out.errA, out.errB)
				}
				wantA, wantB := each, each
				if direction == wire.Pull {
					wantB = 0
				}
				if direction == wire.Push {
					wantA = 0
				}
				if first != wantA || second != wantA {
					t.Errorf("%d records came before the repair, %d after it", first, second)
				}
				for n, want := range []int{wantA, wantB} {
					if len(admitted[n]) != want {
						t.Errorf("side %d has admitted %d records, not %d", n, len(admitted[n]), want)
					}
					for key, times := range admitted[n] {
						if times != 1 {
							t.Errorf("side %d has admitted %q %d times", n, key, times)
						}
					}
				}
				reports := []Report{out.a, out.b}
				for n, r := range reports {
					other := reports[1-n]
					if here := r.DeclinedHere[wire.ReasonFull]; here != other.DeclinedThere[wire.ReasonFull] || r.DeclinedHere.Sum() != here ||
						here+r.Applied != len(admitted[n]) || other.Sent != len(admitted[n]) || (here > 0) != (len(admitted[n]) > 0) {
						t.Errorf("side %d: applied %d, declined %s; the other sent %d, and heard %s", n, r.Applied, r.DeclinedHere, other.Sent, other.DeclinedThere)
					}
					if r.Repair.Ranges != 1 || r.Verified || r.Rejected != out.a.Rejected {
						t.Errorf("side %d: %+v", n, r)
					}
				}
				if named := a.declined.count() + b.declined.count(); named != out.a.Rejected {
					t.Errorf("%d records are remembered as declined, of %d", named, out.a.Rejected)
				}
			})
		}
	}
}

func at2(i int) dbadapter.Version { return at(time.Duration(i) * time.Second) }

// count is how many records are remembered.
func (d *Declined) count() int { return d.Count(func(DeclinedRecord) bool { return true }) }

// A sync of some ranges lists, counts and replaces what lies in these alone, whichever
// side keeps it wrong, and in which way.
func TestRepairInsideASpan(t *testing.T) {
	span := wire.Span{From: 1024, To: 2048}
	for name, c := range map[string]struct {
		fault   func(*spoilt)
		digests int
		sketch  bool
	}{
		"a sum": {func(s *spoilt) {
			from, _ := dbadapter.Range(1500).Bounds()
			s.ranges.Add(from, dbadapter.Sum{Records: 1, Digest: dbadapter.Digest{3}})
		}, 1, false},
		"a cell": {func(s *spoilt) { s.flipped[2] = true }, 0, true},
	} {
		for at := range 2 {
			t.Run(fmt.Sprintf("%s of side %d", name, at), func(t *testing.T) {
				a, b := diverged(t, seeded(t, 11), 300, 40, 40, time.Hour, nil)
				within := func(all []dbadapter.Record) []dbadapter.Record {
					return slices.DeleteFunc(slices.Clone(all), func(r dbadapter.Record) bool { return !span.Holds(a.keys.Hasher.Index(r.Key)) })
				}
				beside := func(s *side) []dbadapter.Record {
					return slices.DeleteFunc(s.dump(), func(r dbadapter.Record) bool { return span.Holds(a.keys.Hasher.Index(r.Key)) })
				}
				fair := within(merge(a.dump(), b.dump()))
				before := [2][]dbadapter.Record{beside(a), beside(b)}
				views := []Replica{a.openSpan(span), b.openSpan(span)}
				r, right := openSpoilt([2]*side{a, b}[at], span, c.fault)
				views[at] = r
				out := between(t, a, b, views[0], views[1], Options{Span: span}, nil)
				if out.errA != nil || out.errB != nil || !out.a.Verified || !out.b.Verified {
					t.Fatalf("%v, %v, %+v", out.errA, out.errB, out.a)
				}
				if got := [2]Report{out.a, out.b}[at].Repair; got.Digests != c.digests || got.Sketch != c.sketch || len(r.repaired) != c.digests {
					t.Errorf("%+v, %d sums replaced", got, len(r.repaired))
				}
				for at, sum := range r.repaired {
					if sum != right(at) {
						t.Errorf("range %d was given another sum", at)
					}
				}
				for n, s := range []*side{a, b} {
					if !slices.EqualFunc(within(s.dump()), fair, sameRecord) || !slices.EqualFunc(beside(s), before[n], sameRecord) {
						t.Errorf("side %d does not hold what it should", n)
					}
				}
			})
		}
	}
}
