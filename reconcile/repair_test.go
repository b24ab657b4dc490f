package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/storetest"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// spoilt is a replica that was kept wrong: its records and its index are right.
type spoilt struct {
	*set
	flipped  map[int]bool // cells
	many     uint64       // records, as it says
	repaired map[dbadapter.Range]dbadapter.Sum
}

func (s *spoilt) Cells(from, to int) ([]rateless.Cell, error) {
	cells, err := s.set.Cells(from, to)
	cells = slices.Clone(cells)
	for at := range s.flipped {
		if from <= at && at < to {
			cells[at-from].S1 ^= 1 << 20
		}
	}
	return cells, err
}

func (s *spoilt) Sum() dbadapter.Sum { return s.set.Sum().Add(dbadapter.Sum{Records: s.many}) }

func (s *spoilt) Repair(r dbadapter.Range, sum dbadapter.Sum) {
	s.set.Repair(r, sum)
	s.repaired[r] = sum
}

// openSpoilt opens a side's replica with a fault, and says what its sums should be.
func openSpoilt(s *side, span wire.Span, fault func(*spoilt)) (r *spoilt, right func(dbadapter.Range) dbadapter.Sum) {
	clean := s.openSpan(span)
	r = &spoilt{set: s.openSpan(span), flipped: map[int]bool{}, repaired: map[dbadapter.Range]dbadapter.Sum{}}
	r.extend(max(r.sketch.Len(), 1<<12))
	fault(r)
	s.t.Cleanup(func() { clean.Close(); r.Close() })
	return r, func(at dbadapter.Range) dbadapter.Sum { return clean.Ranges(at, at+1) }
}

// between runs a sync of two replicas.
func between(t testing.TB, a, b *side, va, vb Replica, o Options, tap tap) (out outcome) {
	sa, sb := Initiate(va, a.options(b, o)), Respond(opening(vb), b.options(a, Options{}))
	defer sa.Close()
	defer sb.Close()
	carry(t, sa, sb, &out, tap)
	out.a, out.b, out.errA, out.errB = sa.Report(), sb.Report(), sa.Err(), sb.Err()
	return out
}

// Whatever one of the two sides has kept wrong, the sync heals it and holds back no
// record; a dry run finds the very differences.
func TestRepair(t *testing.T) {
	flip := func(at int) func(*spoilt) { return func(s *spoilt) { s.flipped[at] = true } }
	drift := func(sum dbadapter.Sum, at ...dbadapter.Index) func(*spoilt) {
		return func(s *spoilt) {
			for _, i := range at {
				s.ranges.Add(i, sum)
			}
		}
	}
	wrong := dbadapter.Sum{Digest: dbadapter.Digest{1, 2, 3, 4}}
	for name, c := range map[string]struct {
		fault   func(*spoilt)
		digests int
		sketch  bool
		from    int // the first cell that is wrong
	}{
		"an early cell":  {fault: flip(3), sketch: true},
		"a later cell":   {fault: flip(100), sketch: true, from: 100},
		"a phantom pair": {fault: func(s *spoilt) { s.sketch.Add(sealed(1<<40, 77)) }, sketch: true},
		"a record twice": {fault: func(s *spoilt) {
			i := s.keys.Hasher.Index([]byte("common/200"))
			s.sketch.Add(coded.Pair(i, s.sums[i]))
		}, sketch: true},
		"a false peel": {fault: func(s *spoilt) {
			s.sketch.Remove(sealed(123456789, 42))
			s.sketch.Add(sealed(987654321, 43))
		}, sketch: true},
		"a record with another checksum": {fault: func(s *spoilt) {
			i := s.keys.Hasher.Index([]byte("common/200"))
			s.sketch.Replace(coded.Pair(i, s.sums[i]), sealed(i, uint64(s.sums[i])>>8^5))
		}, sketch: true},
		"a number alone":    {fault: drift(dbadapter.Sum{Records: 3}, 7<<30), digests: 1},
		"a range's digest":  {fault: drift(wrong, 5<<30), digests: 1},
		"a range's records": {fault: drift(dbadapter.Sum{Records: 3, Digest: dbadapter.Digest{1}}, 7<<30), digests: 1},
		"all at once":       {fault: func(s *spoilt) { flip(9)(s); drift(wrong, 1<<30, 4000<<30)(s) }, digests: 2, sketch: true},
	} {
		for at := range 2 {
			for _, o := range []Options{{}, {DryRun: true}, {Direction: wire.Pull}, {Direction: wire.Push}, {FirstCells: QuietCells}} {
				t.Run(fmt.Sprintf("%s of side %d, %v, dry %v, %d cells", name, at, o.Direction, o.DryRun, o.FirstCells), func(t *testing.T) {
					a, b := diverged(t, seeded(t, 5), 300, 5, 5, time.Hour, nil)
					want := run(t, a, b, Options{DryRun: true}, nil).a
					fair := merge(a.dump(), b.dump())
					sides := [2]*side{a, b}
					views := []Replica{a.open(), b.open()}
					r, right := openSpoilt(sides[at], wire.Span{}, c.fault)
					views[at] = r
					out := between(t, a, b, views[0], views[1], o, nil)
					if out.errA != nil || out.errB != nil {
						t.Fatalf("ended with %v and %v", out.errA, out.errB)
					}
					if got := out.a; got.MissingHere != want.MissingHere || got.MissingThere != want.MissingThere || got.Mismatched != want.Mismatched {
						t.Errorf("found %d, %d and %d differences, not %d, %d and %d", got.MissingHere, got.MissingThere, got.Mismatched, want.MissingHere, want.MissingThere, want.Mismatched)
					}
					reports := [2]Report{out.a, out.b}
					if out.a.Cells <= c.from {
						if out.a.Repair.Needed() || out.b.Repair.Needed() {
							t.Errorf("%+v", out.a.Repair)
						}
						return
					}
					if got := reports[at].Repair; got.Digests != c.digests || got.Sketch != c.sketch || got.Left > 0 || got.Collisions > 0 {
						t.Errorf("the side with the fault reports %+v", got)
					}
					if got := reports[1-at].Repair; got.Digests != 0 || got.Sketch != c.sketch {
						t.Errorf("the other side reports %+v", got)
					}
					if len(r.repaired) != c.digests {
						t.Errorf("%d sums were replaced", len(r.repaired))
					}
					for n, sum := range r.repaired {
						if sum != right(n) {
							t.Errorf("range %d was given %v, not %v", n, sum, right(n))
						}
					}
					if o.Direction == wire.Both && !o.DryRun {
						if wantEqual(t, a, b); !slices.EqualFunc(a.dump(), fair, sameRecord) {
							t.Error("records are not those that both sides held")
						}
					}
					if whole := o.Direction == wire.Both; whole && !out.a.Verified || whole && !o.DryRun && !out.b.Verified {
						t.Errorf("verified: %v and %v", out.a.Verified, out.b.Verified)
					}
				})
			}
		}
	}
}

// sealed is the pair of an index that says rest.
func sealed(index dbadapter.Index, rest uint64) rateless.Pair {
	return rateless.Pair{Index: rateless.Index(index), Checksum: rateless.Seal(rateless.Index(index), rest)}
}

// A decode that is given up, because more came out of the cells than is possible, is no
// failure of either side: the ranges decide.
func TestDecodeThatIsGivenUp(t *testing.T) {
	for _, o := range []Options{{}, {DryRun: true}, {FirstCells: 1000}} {
		a, b := diverged(t, seeded(t, 5), 300, 5, 5, time.Hour, nil)
		want := merge(a.dump(), b.dump())
		out := between(t, a, b, a.open(), &givenUp{b.openSpan(wire.Span{})}, o, nil)
		if out.errA != nil || out.errB != nil || !out.a.Verified || !out.a.Repair.Sketch || !out.b.Repair.Sketch {
			t.Fatalf("ended with %v and %v, verified %v, repaired %+v and %+v", out.errA, out.errB, out.a.Verified, out.a.Repair, out.b.Repair)
		}
		if o.DryRun {
			continue
		}
		if wantEqual(t, a, b); !slices.EqualFunc(a.dump(), want, sameRecord) {
			t.Error("records are not those that both sides held")
		}
	}
}

// givenUp is a replica over which no decode comes to an end.
type givenUp struct{ *set }

func (givenUp) Lookup([]dbadapter.Index, []dbadapter.Checksum) error { return rateless.ErrForged }

func sameRecord(a, b dbadapter.Record) bool {
	return string(a.Key) == string(b.Key) && a.Compare(&b) == 0
}

// Two contents of one checksum leave no trace in the cells; the residuals show
// them, and the listing of their range finds them. Nothing else waits for that.
func TestEqualChecksumsAreFoundByRange(t *testing.T) {
	for _, others := range []int{0, 5} {
		h := coarse{dbadapter.NewHasher(testSecret)}
		a, b := newSide(t, "a", h), newSide(t, "b", h)
		a.put(record("k", "one", at(0)), record("common", "", at(0)))
		b.put(record("k", "two", at(time.Second)), record("common", "", at(0)))
		for i := range others {
			a.put(record(fmt.Sprint("other", i), "", at(0)))
		}
		out := run(t, a, b, Options{}, nil)
		if out.errA != nil || out.errB != nil || !out.a.Verified || !out.b.Verified {
			t.Fatalf("ended with %v and %v", out.errA, out.errB)
		}
		wantEqual(t, a, b)
		for _, r := range []Report{out.a, out.b} {
			if r.Repair != (Repair{Ranges: 1, Collisions: 1}) || r.Mismatched != 1 {
				t.Errorf("%+v", r.Repair)
			}
		}
	}
}

// A sync of a prefix lists what has the prefix alone.
func TestRepairOfAPrefix(t *testing.T) {
	h := coarse{dbadapter.NewHasher(testSecret)}
	a, b := newSide(t, "a", h), newSide(t, "b", h)
	for i := range 50 {
		a.put(record(fmt.Sprintf("p/%d", i), "one", at(0)), record(fmt.Sprintf("q/%d", i), "one", at(0)))
		b.put(record(fmt.Sprintf("p/%d", i), "two", at(time.Second)), record(fmt.Sprintf("q/%d", i), "two", at(time.Second)))
	}
	a.prefix, b.prefix = []byte("p/"), []byte("p/")
	out := run(t, a, b, Options{}, nil)
	if out.errA != nil || out.errB != nil || out.a.Mismatched != 50 || out.a.Repair.Collisions != 50 {
		t.Fatal(out.errA, out.errB, out.a)
	}
	for _, r := range a.dump() {
		if want := map[byte]string{'p': "two", 'q': "one"}[r.Key[0]]; string(r.Value) != want {
			t.Errorf("%s is %s", r.Key, r.Value)
		}
	}
}

// Keys that share an index are told from others, too.
func TestRepairOfBuckets(t *testing.T) {
	rng := seeded(t, 3)
	for range 20 {
		h := coarse{storetest.Weak(dbadapter.NewHasher(testSecret), 6)}
		a, b := diverged(t, rng, 100, 5, 5, time.Second, h)
		out := run(t, a, b, Options{}, nil)
		if out.errA != nil || out.errB != nil || !out.a.Verified || !out.b.Verified {
			t.Fatal(out.errA, out.errB)
		}
		wantEqual(t, a, b)
	}
}

// What disagrees in more ranges than one sync lists waits for the next one; all
// else is applied, and neither side calls the sets equal.
func TestMoreRangesThanOneSyncLists(t *testing.T) {
	a, b := diverged(t, seeded(t, 9), 200, 5, 0, time.Hour, nil)
	drifted := rangesOf(0, 30)
	va, _ := openSpoilt(a, wire.Span{}, func(s *spoilt) {
		for _, r := range drifted {
			from, _ := r.Bounds()
			s.ranges.Add(from, dbadapter.Sum{Digest: dbadapter.Digest{1}})
		}
		s.many = 1 << 40 // records in all, which is not so; then few ranges are listed
	})
	vb, _ := openSpoilt(b, wire.Span{}, func(s *spoilt) { s.many = 1 << 40 })
	out := between(t, a, b, va, vb, Options{}, nil)
	if !errors.Is(out.errA, ErrNotVerified) || !errors.Is(out.errB, ErrNotVerified) || out.a.Verified || out.b.Verified {
		t.Fatal(out.errA, out.errB)
	}
	if r := out.a.Repair; r.Ranges != 1 || r.Left != 29 || r.Digests != 2 || len(va.repaired) != 1 {
		t.Errorf("%+v, %d repaired", r, len(va.repaired))
	}
	held := map[string]bool{}
	for _, r := range a.dump() {
		held[string(r.Key)] = true
	}
	for _, r := range b.dump() {
		if left := slices.Contains(drifted[1:], dbadapter.RangeOf(a.keys.Hasher.Index(r.Key))); !left && !held[string(r.Key)] {
			t.Errorf("%s has waited", r.Key)
		}
	}
}

func rangesOf(from, to dbadapter.Range) (list []dbadapter.Range) {
	for r := from; r < to; r++ {
		list = append(list, r)
	}
	return list
}

// The two steps of a comparison: what is asked of neither side grows with the sets.
func TestBytesOfARepair(t *testing.T) {
	h := coarse{dbadapter.NewHasher(testSecret)}
	a, b := newSide(t, "a", h), newSide(t, "b", h)
	var common []dbadapter.Record
	for i := range 20_000 {
		common = append(common, record(fmt.Sprint("common", i), "", at(0)))
	}
	a.put(append(common, record("k", "one", at(0)))...)
	b.put(append(common, record("k", "two", at(time.Second)))...)
	kinds := map[string]int{}
	out := run(t, a, b, Options{}, func(_ bool, m wire.Message) wire.Message {
		kinds[fmt.Sprintf("%T", m)] += len(wire.Append(nil, m))
		return m
	})
	if out.errA != nil || !out.a.Verified {
		t.Fatal(out.errA)
	}
	bytes := 0
	for _, kind := range []string{"*wire.Hashes", "*wire.Listing", "*wire.Marks"} {
		bytes += kinds[kind]
	}
	if bytes > 1400 {
		t.Errorf("%d bytes: %v", bytes, kinds)
	}
}

// What the parts of a sync found adds up, and is told in words.
func TestRepairsAddUp(t *testing.T) {
	a, b := Repair{Ranges: 1, Left: 2, Digests: 3, Collisions: 4}, Repair{Ranges: 10, Left: 20, Digests: 30, Collisions: 40, Sketch: true}
	if got := a.Plus(b); got != b.Plus(a) || got != (Repair{11, 22, 33, 44, true}) {
		t.Errorf("%+v", got)
	}
	if got := (Repair{}).Plus(a); got != a || got.Needed() != true || (Repair{}).String() != "" {
		t.Errorf("%+v", got)
	}
	want := "1 ranges compared exactly, 3 sums of ranges kept wrong here, and replaced, 4 records with equal checksums, 2 ranges left for the next sync"
	if got := a.String(); got != want {
		t.Errorf("it says %q", got)
	}
}

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
