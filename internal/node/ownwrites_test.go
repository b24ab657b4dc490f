package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/route"
)

// still is a clock that stands.
func still() time.Duration { return 0 }

func ownRecord(key string, clock int) *dbadapter.Record {
	return &dbadapter.Record{Key: []byte(key), Version: dbadapter.Version{Clock: dbadapter.Timestamp(clock), Writer: 1}}
}

// recalls checks what is remembered of a key: the clock of its version, 0 for none, and whether one may have been given up.
func (w *ownWrites) recalls(t *testing.T, key string, now time.Duration, clock int, full bool) {
	t.Helper()
	r, got := w.recall([]byte(key), now), 0
	if r.Own != nil {
		got = int(r.Own.Version.Clock)
	}
	if got != clock || r.full != full {
		t.Errorf("%q at %v: %d, %v, not %d, %v", key, now, got, r.full, clock, full)
	}
}

// What is remembered of a key is its latest write, until all hosts hold it, or for twice as long as a host may be behind.
// Where a write was given up for want of room, each key may have one until that time is over.
func TestOwnWrites(t *testing.T) {
	var w ownWrites
	hosts := []ID{"a", "b"}
	first, second := ownRecord("a", 2), ownRecord("a", 4)
	w.note(first, nil, hosts, 1)
	if other := w.note(second, nil, hosts, 2); other == nil || other.Version != first.Version {
		t.Errorf("beside a write that it has not seen another one is noted: %v", other)
	}
	w.recalls(t, "a", 2, 2, false)
	if w.note(second, nil, hosts, 2+ownWritesFor) == nil {
		t.Error("one whose look-ups took long is noted")
	}
	if w.note(second, first, hosts, 3) != nil {
		t.Error("a write that has seen the one before is not noted")
	}
	w.recalls(t, "a", 3, 4, false)
	w.heldBy(first, "a")
	w.heldBy(first, "b")
	w.heldBy(second, "a")
	w.heldBy(second, "a")
	for now, late := range map[time.Duration]bool{3 + ownWritesFor: false, 4 + ownWritesFor: true} {
		w.recalls(t, "a", now, 4, false)
		if r := w.recall([]byte("a"), now); r.Reads() == late || !r.Rests() {
			t.Errorf("at %v: reads heed it: %t, conditions: %t", now, r.Reads(), r.Rests())
		}
	}
	w.withdraw(second, hosts, 5)
	w.recalls(t, "a", 5, 2, false)
	w.heldBy(first, "a")
	w.heldBy(first, "b")
	w.recalls(t, "a", 5, 0, false)
	w.note(second, nil, hosts, 6)
	w.withdraw(second, hosts, 7)
	w.recalls(t, "a", 7, 0, false)
	if len(w.of) != 0 || w.first != nil || w.last != nil {
		t.Errorf("%d keys are kept", len(w.of))
	}

	now := 10 * ownWritesFor
	for i := range MaxOwnWrites {
		w.note(ownRecord(fmt.Sprint(i), 10+i), nil, hosts, now)
	}
	w.recalls(t, "a", now, 0, false)
	w.recalls(t, "0", now, 10, false)
	w.note(ownRecord("one more", 5), nil, hosts, now+1)
	if len(w.of) != MaxOwnWrites {
		t.Errorf("%d keys are remembered", len(w.of))
	}
	w.recalls(t, "0", now+1, 0, true)
	w.recalls(t, "a", now+ownWritesFor, 0, true)
	w.recalls(t, "a", now+1+ownWritesFor, 0, false)
	w.recalls(t, "one more", now+1, 5, false)
}

// What a look-up has found tells of a node's own write where it is that, or has seen it, or where it is later and no host
// holds the own one any more. Where it is not known which write that is, all hosts must have answered.
func TestRecalledTells(t *testing.T) {
	own, earlier, later := ownRecord("a", 5), ownRecord("a", 4), ownRecord("a", 6)
	other := *later
	other.Version.Writer = 2
	seen := other
	seen.Replaces = []dbadapter.Replaced{{Writer: 1, Clock: 5}}
	heard := func(records ...*dbadapter.Record) (all []route.Heard) {
		for _, r := range records {
			all = append(all, route.Heard{Answer: &route.Answer{Record: r}})
		}
		return all
	}
	silent := append(heard(earlier), route.Heard{})
	for name, test := range map[string]struct {
		recalled Recalled
		found    *dbadapter.Record
		heard    []route.Heard
		all      bool
		tells    bool
		doubts   bool
	}{
		"it":                         {Recalled{Own: own}, own, heard(own), false, true, false},
		"an earlier one":             {Recalled{Own: own}, earlier, heard(earlier, earlier), true, false, true},
		"nothing":                    {Recalled{Own: own}, nil, heard(nil), true, false, true},
		"a later one, by one":        {Recalled{Own: own}, &other, heard(&other), false, true, true},
		"a later one, by all":        {Recalled{Own: own}, &other, heard(&other, &other), true, true, false},
		"a later one, one is silent": {Recalled{Own: own}, &other, append(heard(&other), route.Heard{}), true, true, true},
		"a later one, and it":        {Recalled{Own: own}, &other, heard(&other, own), true, false, true},
		"one that has seen it":       {Recalled{Own: own}, &seen, heard(&seen, own), true, true, false},
		"late, an earlier one":       {Recalled{Own: own, late: true}, earlier, heard(earlier), false, false, false},
		"late, a later one, by one":  {Recalled{Own: own, late: true}, &other, heard(&other), false, false, true},
		"late, a later one, by all":  {Recalled{Own: own, late: true}, &other, heard(&other, &other), true, true, false},
		"held here, a later one":     {Recalled{Own: own, late: true, here: true}, &other, heard(&other, &other), true, true, true},
		"awaited, it":                {Recalled{Own: own, late: true, awaited: 1}, own, heard(own), false, false, false},
		"awaited, an earlier one":    {Recalled{Own: own, late: true, awaited: 1}, earlier, heard(earlier, earlier), true, true, true},
		"awaited, a later one":       {Recalled{Own: own, late: true, awaited: 2, mine: 1}, &other, heard(&other, &other), true, true, true},
		"awaited, given up":          {Recalled{full: true, awaited: 1}, earlier, heard(earlier, earlier), true, true, true},
		"the caller's, a later one":  {Recalled{Own: own, late: true, awaited: 1, mine: 1}, &other, heard(&other, &other), true, true, false},
		"late and full, one answers": {Recalled{Own: own, late: true, full: true}, earlier, heard(earlier), false, false, true},
		"full, one answers":          {Recalled{full: true}, earlier, heard(earlier), false, false, true},
		"full, all answer":           {Recalled{full: true}, earlier, heard(earlier, nil), true, true, false},
		"full, one does not":         {Recalled{full: true}, earlier, silent, true, false, true},
		"restarted, all answer":      {Recalled{forgotten: true}, nil, heard(nil, nil), true, true, false},
		"restarted, one answers":     {Recalled{forgotten: true}, nil, heard(nil), false, false, true},
		"no write":                   {Recalled{}, nil, heard(nil), false, false, false},
	} {
		found := &LookedUp{Found: route.Found{Record: test.found, Heard: test.heard}}
		if tells, doubts := test.recalled.Tells(found, test.all), test.recalled.Doubts(found, test.all); tells != test.tells || doubts != test.doubts {
			t.Errorf("%s: it tells %t, and a write on it is doubted %t", name, tells, doubts)
		}
	}
}
