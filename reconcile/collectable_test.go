package reconcile

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

func tombstone(key string, v dbadapter.Version) dbadapter.Record {
	return dbadapter.Record{Key: []byte(key), Deleted: true, Version: v}
}

// Both sides know how many tombstones, and records that expire, one of them declined for another reason than
// its floor: whichever sent them, by every method, also where the declined ones are
// more than an End names, and also where they come as heads, since they were
// declined before. A tombstone that is only declined for the floor counts not.
func TestDeclinedTombstonesAreCounted(t *testing.T) {
	const many = wire.MaxRefusals + 500
	for name, c := range map[string]struct {
		of    [2]map[string]int // tombstones of each side, by what is in their keys
		first int               // DeclinedCollectable of the first sync
		later int               // and of the second, of what travels again as head
	}{
		"no tombstone":          {[2]map[string]int{{"k": 3}, {"k": 3}}, 0, 0},
		"floor":                 {[2]map[string]int{{"floor": 3}, {"floor": 2}}, 0, 0},
		"writer here":           {[2]map[string]int{{"writer": 3}, {"floor": 2}}, 3, 3},
		"writer there":          {[2]map[string]int{{"floor": 3}, {"writer": 2, "k": 1}}, 2, 2},
		"writer on both sides":  {[2]map[string]int{{"writer": 3}, {"writer": 2}}, 5, 5},
		"more than are named":   {[2]map[string]int{{"writer": many}, {"floor": 10}}, many, many},
		"more there than named": {[2]map[string]int{{"floor": many}, {"writer": many}}, many, many},
	} {
		for _, method := range []wire.Method{wire.MethodSketch, wire.MethodAll} {
			t.Run(fmt.Sprintf("%s by %s", name, method), func(t *testing.T) {
				a, b := newSide(t, "a", nil), newSide(t, "b", nil)
				sides := [2]*side{a, b}
				for n, s := range sides {
					s.put(record("common", "", at(0)), record(s.name+" alive, floor", "x", at(0)), record(s.name+" alive, writer", "x", at(0)))
					s.declineKeys()
					for what, count := range c.of[n] {
						var gone []dbadapter.Record
						for i := range count {
							r := tombstone(fmt.Sprint(s.name, " gone, ", what, i), at(time.Duration(i)*time.Second))
							if i%2 == 1 {
								r.Deleted, r.Expires = false, dbadapter.TimestampAt(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
							}
							gone = append(gone, r)
						}
						s.put(gone...)
					}
				}
				for n, want := range []int{c.first, c.later} {
					out := synced(t, a, b, Options{Method: method}, nil)
					if out.a.DeclinedCollectable != want || out.b.DeclinedCollectable != want {
						t.Errorf("sync %d: %d collectable records were declined as a knows, %d as b does, and %d in truth",
							n, out.a.DeclinedCollectable, out.b.DeclinedCollectable, want)
					}
					for n, r := range []Report{out.a, out.b} {
						all := 1+c.of[n]["floor"]+c.of[n]["writer"] < wire.MaxRefusals // are named
						wantForFloor(t, sides[n], &r, 1+c.of[n]["floor"], all)
					}
				}
			})
		}
	}
}

// wantForFloor checks that what the peer declined for its floor names
// records of the side's that it did, each once, and all of them if all are named.
func wantForFloor(t *testing.T, s *side, r *Report, want int, all bool) {
	t.Helper()
	keys := map[string]dbadapter.Version{}
	for _, record := range s.dump() {
		if strings.Contains(string(record.Key), "floor") {
			keys[string(record.Key)] = record.Version
		}
	}
	named := 0
	for _, d := range r.DeclinedForFloor {
		if v, held := keys[string(d.Key)]; held && v == d.Version && d.Index == s.keys.Hasher.Index(d.Key) {
			named++
		}
		delete(keys, string(d.Key))
	}
	if named != len(r.DeclinedForFloor) || named > wire.MaxRefusals || all && named != want {
		t.Errorf("%s's report names %d records that the peer declined for its floor; %d are, of %d", s.name, len(r.DeclinedForFloor), named, want)
	}
}

// A peer cannot count tombstones as declined that were not sent, nor leave out, or
// add to, those that it names.
func TestEndOfTombstonesNotSent(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	common, ofA := record("common", "", at(0)), record("a", "", at(0))
	gone, alive := tombstone("gone", at(0)), record("alive", "", at(0))
	a.put(common, ofA)
	b.put(common, gone, alive)
	refusal := func(r dbadapter.Record, why wire.Reason) wire.Refusal {
		h := hashed(b.keys.Hasher, r)[0]
		return wire.Refusal{Index: h.Index, Digest: h.Digest, Reason: why}
	}
	writer, floor, other := refusal(gone, wire.ReasonWriter), refusal(gone, wire.ReasonFloor), refusal(alive, wire.ReasonWriter)
	early, full := refusal(alive, wire.ReasonClock), refusal(alive, wire.ReasonFull)
	for name, c := range map[string]struct {
		end wire.End
		err error
	}{
		"told":              {wire.End{Collectable: 1, Refusals: []wire.Refusal{writer}}, nil},
		"floor":             {wire.End{Refusals: []wire.Refusal{floor}}, nil},
		"alive":             {wire.End{Refusals: []wire.Refusal{other}}, nil},
		"both":              {wire.End{Collectable: 1, Refusals: []wire.Refusal{other, writer}}, nil},
		"not told":          {wire.End{Refusals: []wire.Refusal{writer}}, ErrProtocol},
		"floor, told":       {wire.End{Collectable: 1, Refusals: []wire.Refusal{floor}}, ErrProtocol},
		"early":             {wire.End{Collectable: 1, Refusals: []wire.Refusal{early}}, nil},
		"early, not told":   {wire.End{Refusals: []wire.Refusal{early}}, ErrProtocol},
		"full":              {wire.End{Collectable: 1, Refusals: []wire.Refusal{full}}, nil},
		"full, not told":    {wire.End{Refusals: []wire.Refusal{full}}, ErrProtocol},
		"alive, told":       {wire.End{Collectable: 1, Refusals: []wire.Refusal{other}}, ErrProtocol},
		"one too many":      {wire.End{Collectable: 2, Refusals: []wire.Refusal{writer}}, ErrProtocol},
		"not named":         {wire.End{Collectable: 1}, ErrProtocol},
		"vast":              {wire.End{Collectable: math.MaxInt64}, ErrProtocol},
		"applied, and told": {wire.End{Applied: 2, Collectable: 1}, ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			b.declined.forget()
			b.admit = func(r []dbadapter.Record) ([]Verdict, error) { return make([]Verdict, len(r)), nil }
			s := toResponder(t, a, b, helloOf(a, nil), &wire.Answer{Residual: residualOf(b, gone, alive)}, sent(ofA), &c.end, &wire.End{})
			if !errors.Is(s.Err(), c.err) {
				t.Errorf("%v", s.Err())
			}
			if r := s.Report(); c.err == nil && r.DeclinedCollectable != int(c.end.Collectable) {
				t.Errorf("%+v", r)
			}
		})
	}
}
