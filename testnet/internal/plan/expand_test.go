package plan

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestExpand(t *testing.T) {
	p, err := Parse("nodes 4\nseed 9\nat 1s put 0 a 1B\nat 2s random writes=300 keys=30 syncs=10 members=25 faults=40 profile=rough for 1m\nat 3s crash 1\n")
	if err != nil {
		t.Fatal(err)
	}
	e := p.Expand()
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	if again := p.Expand(); !reflect.DeepEqual(e, again) {
		t.Error("two expansions differ")
	}
	writes, syncs, moves, faulty := 0, 0, 0, 0
	for i, ev := range e.Events {
		if i > 0 && ev.At < e.Events[i-1].At {
			t.Fatalf("event %d, %s, is out of order", i, ev.String())
		}
		if ev.At > 62*time.Second {
			t.Errorf("%s is after the end", ev.String())
		}
		switch verbTable[ev.Verb].class {
		case operation:
			switch {
			case ev.Verb.Writes():
				writes += max(1, int(ev.Amount))
			case slices.Contains(changes, ev.Verb):
				moves++
			default:
				syncs++
			}
		case fault:
			faulty++
		}
	}
	if writes != 301 || syncs != 10 || moves != 25 || faulty != 41 {
		t.Errorf("%d writes, %d syncs, %d changes, %d faults", writes, syncs, moves, faulty)
	}
	if e.Events[0].Key != "a" {
		t.Error("the events of the text are not among them")
	}
}

// The events of a smaller line are among those of a larger one.
func TestExpandIsStable(t *testing.T) {
	lines := func(text string) map[string]int {
		p, err := Parse("nodes 4\nseed 9\nat 2s random " + text + " for 1m\n")
		if err != nil {
			t.Fatal(err)
		}
		e := p.Expand()
		all := map[string]int{}
		for i := range e.Events {
			all[e.Events[i].String()]++
		}
		return all
	}
	more := lines("writes=300 syncs=20 members=60 faults=40 profile=disks")
	less := lines("writes=150 syncs=10 members=30 faults=20 profile=disks")
	odd := 0
	for l, n := range less {
		if more[l] < n {
			odd++ // among the last, a batch was made to fit
		}
	}
	if odd > maxDrawnBatch {
		t.Errorf("%d of %d events are not those of the longer line", odd, len(less))
	}
}

func TestGenerate(t *testing.T) {
	for _, profile := range append(Profiles(), "") {
		seen := map[Verb]bool{}
		nodes := map[int]bool{}
		for seed := range uint64(80) {
			p := Generate(seed, profile, 0)
			if err := p.Validate(); err != nil {
				t.Fatalf("profile %q, seed %d: %v", profile, seed, err)
			}
			if seed < 10 && !reflect.DeepEqual(p, Generate(seed, profile, 0)) {
				t.Fatalf("profile %q, seed %d: two plans differ", profile, seed)
			}
			nodes[p.Nodes] = true
			for _, e := range p.Events {
				seen[e.Verb] = true
			}
		}
		least := 2
		cut := profile == Shards || profile == Writer
		if cut {
			least = 3
		}
		if len(nodes) != 8-least || nodes[least-1] || nodes[8] {
			t.Errorf("profile %q: nodes %v, not %d to 7", profile, nodes, least)
		}
		for _, v := range Verbs() {
			if cut || v == Get || v == PutIf || v == Import || v == Scan {
				continue // TestGenerateShards, TestGenerateWriter
			}
			want := v.Writes() && v != Backdate || slices.Contains(syncs, v)
			want = want || slices.Contains(changes, v) && (profile == Members || profile == Mixed)
			for _, of := range []Profile{Rough, Clocks, Disks, Members} {
				for _, f := range faults[of] {
					want = want || f == v && (profile == of || profile == Mixed || profile == "")
				}
			}
			if want && !seen[v] {
				t.Errorf("profile %q never has %s", profile, v)
			}
			if profile == Calm && !want && seen[v] {
				t.Errorf("profile calm has %s", v)
			}
		}
	}
}

// Values depend on the seed and the event, not on its place.
func TestValue(t *testing.T) {
	p := Plan{Seed: 1}
	e := Event{At: time.Second, Verb: Batch, Key: "k", Amount: 3, Size: 50}
	a, b := p.Value(&e, 0), p.Value(&e, 1)
	if len(a) != 50 || bytes.Equal(a, b) || !bytes.Equal(a, p.Value(&e, 0)) {
		t.Error("values of a batch are not stable, or not distinct")
	}
	other := Plan{Seed: 2}
	if bytes.Equal(a, other.Value(&e, 0)) {
		t.Error("the seed does not matter")
	}
	later := e
	later.At++
	if bytes.Equal(a, p.Value(&later, 0)) {
		t.Error("the time does not matter")
	}
	if e.KeyAt(2) != "k2" || (&Event{Verb: Put, Key: "k"}).KeyAt(0) != "k" {
		t.Error("keys")
	}
	if got := p.Value(&Event{Value: "red", Size: 9}, 0); string(got) != "red" {
		t.Errorf("a literal is %q", got)
	}
}

func TestUnmet(t *testing.T) {
	for _, c := range []struct {
		e    Expect
		o    Outcome
		want int
	}{
		{Expect{}, Outcome{Converged: true}, 0},
		{Expect{}, Outcome{}, 1},
		{Expect{}, Outcome{Converged: true, Violations: []string{"kept", "kept"}}, 1},
		{Expect{}, Outcome{Converged: true, Down: []int{1}}, 1},
		{Expect{}, Outcome{Converged: true, Corrupt: []int{1}, Down: []int{1}}, 1},
		{Expect{Corrupt: []int{1}}, Outcome{Converged: true, Corrupt: []int{1}, Down: []int{1}}, 0},
		{Expect{Corrupt: []int{1}}, Outcome{Converged: true}, 1},
		{Expect{Refused: []Refusal{"full"}}, Outcome{Converged: true}, 1},
		{Expect{Refused: []Refusal{"full"}}, Outcome{Converged: true, Refused: map[Refusal]int{"full": 2}}, 0},
		{Expect{}, Outcome{Converged: true, Misread: []string{"one", "another"}}, 2},
		{Expect{Violation: "kept"}, Outcome{Converged: true}, 1},
		{Expect{Violation: "kept"}, Outcome{Violations: []string{"kept"}}, 0},
		{Expect{Violation: "kept"}, Outcome{Violations: []string{"kept", "durable"}}, 1},
	} {
		if got := c.e.Unmet(c.o); len(got) != c.want {
			t.Errorf("%+v of %+v: %q", c.e, c.o, got)
		}
	}
}
