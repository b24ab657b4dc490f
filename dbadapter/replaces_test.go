package dbadapter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// written is a version of the key in a history, with what its writer had seen.
type written struct {
	r     Record
	seen  map[Version]bool // by its node: held, received, or seen by such a version's writer
	chain map[Version]bool // what it was written over, and what that was written over
	// pruned says that it, or a version of its chain, was written over one that
	// names as many writers as there is room for.
	pruned bool
}

// Random histories of one key: nodes write, hear of one another's versions in any
// order, start again, and have clocks that differ. Supersedes never claims what
// the writer cannot have seen, and misses only what pruning has dropped.
func TestSupersedesAgainstHistories(t *testing.T) {
	claims, misses, prunings, alarms := 0, 0, 0, 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 1))
		type node struct {
			held        *written
			seen        map[Version]bool
			latest      Timestamp
			skew        Timestamp
			incarnation uint64
		}
		nodes := make([]node, 2+rng.IntN(14))
		steps, hears := 60+rng.IntN(1000), 1+rng.IntN(20)
		for i := range nodes {
			nodes[i] = node{seen: map[Version]bool{}, skew: Timestamp(rng.IntN(30)), incarnation: uint64(i)}
		}
		var all []*written
		for step := range steps {
			n := rng.IntN(len(nodes))
			at := &nodes[n]
			switch rng.IntN(2 + hears) {
			case 0: // it writes, perhaps after a start
				if rng.IntN(4) == 0 {
					at.incarnation = rng.Uint64()
				}
				at.latest = max(Timestamp(step)+at.skew, at.latest+1)
				w := &written{seen: map[Version]bool{}, chain: map[Version]bool{}}
				w.r = Record{Key: []byte("k"), Version: Version{at.latest, WriterID(n + 1), at.incarnation}}
				if at.held != nil {
					w.r.Replace(&at.held.r)
					w.pruned = at.held.pruned || len(at.held.r.Replaces) == MaxReplaces
					w.chain[at.held.r.Version] = true
					for v := range at.held.chain {
						w.chain[v] = true
					}
				} else {
					w.r.Replace(nil)
				}
				for v := range at.seen {
					w.seen[v] = true
				}
				if err := w.r.Validate(); err != nil {
					t.Fatalf("seed %d: %v: %+v", seed, err, w.r)
				}
				at.held = w
				at.seen[w.r.Version] = true
				all = append(all, w)
			default: // it hears of a version that another node holds
				w := nodes[rng.IntN(len(nodes))].held
				if w == nil {
					continue
				}
				at.latest = max(at.latest, w.r.Version.Clock)
				at.seen[w.r.Version] = true
				for v := range w.seen {
					at.seen[v] = true
				}
				if at.held == nil || w.r.Compare(&at.held.r) > 0 {
					at.held = w
				}
			}
		}
		for _, w := range all {
			for _, o := range all {
				v := o.r.Version
				switch claimed := w.r.Supersedes(v); {
				case claimed && !w.seen[v]:
					t.Fatalf("seed %d: %+v claims to supersede %v, which its writer had not seen", seed, w.r, v)
				case claimed:
					claims++
				case w.chain[v] && !w.pruned:
					t.Fatalf("seed %d: %+v was written over %v, and does not say so", seed, w.r, v)
				case w.chain[v]:
					alarms++
				default:
					misses++
				}
			}
			if w.pruned {
				prunings++
			}
		}
	}
	if claims < 1000 || misses < 1000 || prunings < 100 || alarms < 10 {
		t.Errorf("%d claims, %d versions beside another, %d prunings, %d false alarms: the histories say little", claims, misses, prunings, alarms)
	}
}

// What a record replaces, in the cases that a history seldom has.
func TestReplace(t *testing.T) {
	clock := func(n int) Timestamp { return Timestamp(n) << 16 }
	held := Record{Version: Version{clock(50), 5, 1}, Replaces: []Replaced{{3, clock(10)}, {5, clock(40)}, {7, clock(20)}}}
	many := Record{Version: Version{clock(50), 9, 1}}
	for w := range WriterID(MaxReplaces) {
		many.Replaces = append(many.Replaces, Replaced{w + 1, clock(40 - int(w))})
	}
	for _, test := range []struct {
		name string
		of   Version
		held *Record
		want string
	}{
		{"a free key", Version{clock(60), 1, 1}, nil, "[]"},
		{"of another writer", Version{clock(60), 1, 1}, &held, "[{3 10} {5 50} {7 20}]"},
		{"of an own one before a start", Version{clock(60), 5, 2}, &held, "[{3 10} {5 50} {7 20}]"},
		{"of an own one", Version{clock(60), 5, 1}, &held, "[{3 10} {5 40} {7 20}]"},
		{"a restamp", Version{clock(15), 5, 1}, &held, "[{3 10}]"},
		{"of a dated one", Version{clock(60), 1, 1}, &Record{Version: Version{Clock: clock(50)}}, "[]"},
		{"by a dated one", Version{Clock: clock(60)}, &held, "[]"},
		{"the ninth", Version{clock(60), 20, 1}, &many, "[{1 40} {2 39} {3 38} {4 37} {5 36} {6 35} {7 34} {9 50}]"},
	} {
		before := fmt.Sprint(test.held)
		r := Record{Version: test.of, Replaces: []Replaced{{99, 1}}}
		r.Replace(test.held)
		short := []Replaced{}
		for _, p := range r.Replaces {
			short = append(short, Replaced{p.Writer, p.Clock >> 16})
		}
		got := fmt.Sprintf("%d", short)
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		if fmt.Sprint(test.held) != before {
			t.Errorf("%s: the record held has changed", test.name)
		}
	}
}

// A record that replaces what several nodes hold names the latest version of each writer.
func TestReplaceSeveral(t *testing.T) {
	clock := func(n int) Timestamp { return Timestamp(n) << 16 }
	one := &Record{Version: Version{clock(50), 5, 1}, Replaces: []Replaced{{3, clock(10)}, {7, clock(20)}}}
	two := &Record{Version: Version{clock(40), 7, 1}, Replaces: []Replaced{{3, clock(15)}, {5, clock(30)}}}
	for _, held := range [][]*Record{{one, nil, two}, {two, one}} {
		r := Record{Version: Version{clock(60), 1, 1}}
		r.Replace(held...)
		want := []Replaced{{3, clock(15)}, {5, clock(50)}, {7, clock(40)}}
		if !slices.Equal(r.Replaces, want) || !r.Supersedes(one.Version) || !r.Supersedes(two.Version) {
			t.Errorf("%v, want %v", r.Replaces, want)
		}
	}
}

func anyReplaces(t *rapid.T, v Version) (list []Replaced) {
	if v.Writer == 0 || v.Clock == 0 {
		return nil
	}
	for w := range WriterID(2) {
		if rapid.Bool().Draw(t, "replaces") {
			list = append(list, Replaced{w + 1, Timestamp(rapid.Uint64Range(0, uint64(v.Clock)-1).Draw(t, "replaced"))})
		}
	}
	return list
}

// A copy of a node that was restored does not know what the node wrote since, and
// does not say that it did, though writer and clock look like it.
func TestSupersedesAfterARestoredCopy(t *testing.T) {
	copied := Record{Version: Version{50 << 16, 7, 1}}
	lost := Version{100 << 16, 7, 2}
	r := Record{Version: Version{110 << 16, 7, 3}}
	r.Replace(&copied)
	if r.Supersedes(lost) || !r.Supersedes(copied.Version) {
		t.Errorf("%+v supersedes what was lost: %t, and the copy: %t", r, r.Supersedes(lost), r.Supersedes(copied.Version))
	}
}
