package placement

import (
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/roster"
)

// host is the i-th of the tests' hosts.
func host(i int) roster.ID {
	key := make([]byte, ed25519.PublicKeySize)
	binary.BigEndian.PutUint64(key, uint64(i+1)*0x9e3779b97f4a7c15)
	return roster.IDOf(key)
}

func hostsOf(n int) (out []roster.ID) {
	for i := range n {
		out = append(out, host(i))
	}
	return out
}

func ruleOf(shards, replicas int) *Rule { return &Rule{Kind: Hash, Shards: shards, Replicas: replicas} }

func plan(t *testing.T, shards, replicas int, hosts []roster.ID) *Layout {
	t.Helper()
	l, err := Plan(ruleOf(shards, replicas), hosts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Each shard has as many different hosts as it is to have, and each that it names is one.
func TestEachShardHasItsHosts(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 40} {
		l := plan(t, 32, 3, hostsOf(n))
		for s := range Shard(32) {
			got := l.Hosts(s)
			if len(got) != min(3, n) {
				t.Fatalf("%d hosts: shard %d has %d", n, s, len(got))
			}
			for i, id := range got {
				if slices.Contains(got[:i], id) || !l.Has(s, id) {
					t.Fatalf("%d hosts: shard %d has %v", n, s, got)
				}
			}
		}
	}
}

// A host that comes takes its share, and a host that goes leaves its share; every other
// place stays as it was.
func TestOnlyTheShareMoves(t *testing.T) {
	const shards, replicas, n = 1024, 2, 10
	few := plan(t, shards, replicas, hostsOf(n))
	many := plan(t, shards, replicas, hostsOf(n+1))
	comer := host(n)
	taken := 0
	for s := range Shard(shards) {
		for _, id := range many.Hosts(s) {
			switch {
			case id == comer:
				taken++
			case !few.Has(s, id):
				t.Fatalf("shard %d moved to %s, which was there before", s, id)
			}
		}
	}
	// Each place is the comer's with probability 1/(n+1): 186 expected of 2,048, σ 13; 6σ.
	if mean := float64(shards*replicas) / (n + 1); math.Abs(float64(taken)-mean) > 6*math.Sqrt(mean) {
		t.Errorf("the comer took %d places, %0.f expected", taken, mean)
	}
	back := plan(t, shards, replicas, hostsOf(n))
	if !slices.Equal(back.value, few.value) {
		t.Error("the layout after the comer went is not the one before it came")
	}
}

// A row whose sets stay keeps its name. Of the others the old hosts stay until each new host is
// ready, and then the new ones are the old ones; a host that went stays an old one.
func TestNextRows(t *testing.T) {
	rule := ruleOf(32, 3)
	none := func(Shard, quorum.Name, roster.ID) bool { return false }
	next := func(l *Layout, hosts []roster.ID, ready Ready) *Layout {
		t.Helper()
		n, err := Next(rule, l, l.Epoch()+2, false, hosts, ready)
		if err != nil {
			t.Fatal(err)
		}
		read, err := Parse(n.Value(), rule)
		if err != nil || !slices.EqualFunc(read.rows, n.rows, sameRow) {
			t.Fatalf("it is read as another one: %v", err)
		}
		return n
	}
	first := plan(t, 32, 3, hostsOf(5))
	second := next(first, hostsOf(6)[1:], none)
	third := next(second, hostsOf(7)[1:], none)
	fourth := next(third, hostsOf(7)[1:], ready)
	moved := 0
	for s := range Shard(32) {
		was, is := first.Row(s), second.Row(s)
		if same := slices.Equal(was.New, is.New); same != (was == is) {
			t.Errorf("shard %d: %+v, then %+v", s, was, is)
		} else if !same {
			moved++
		}
		if !slices.Equal(was.Old, is.Old) || is != was && (is.Parent != was.Name() || is.Epoch != 3) {
			t.Errorf("shard %d: %+v follows %+v", s, is, was)
		}
		if is = third.Row(s); !slices.Equal(was.Old, is.Old) {
			t.Errorf("shard %d: the old hosts change while it moves: %+v", s, is)
		}
		if was, is = is, fourth.Row(s); !slices.Equal(is.Old, was.New) || !is.AtRest() {
			t.Errorf("shard %d: all are ready, and it is %+v", s, is)
		}
	}
	if moved == 0 || moved == 32 {
		t.Errorf("%d shards moved", moved)
	}
	if ended, under := third.Moves(none); ended != 0 || under == 0 {
		t.Errorf("%d moves have ended, %d are under way", ended, under)
	}
}

// A layout suits the hosts that it was made for, in whatever order they are given, and no
// others.
func TestSuits(t *testing.T) {
	hosts := hostsOf(7)
	l := plan(t, 64, 3, hosts)
	slices.Reverse(hosts)
	if again := plan(t, 64, 3, hosts); again.Table() != l.Table() || !l.Suits(hosts) {
		t.Error("another order of the hosts, another layout")
	}
	for name, change := range map[string]func(){
		"fewer":   func() { hosts = hosts[1:] },
		"more":    func() { hosts = append(hosts, host(9)) },
		"another": func() { hosts[3] = host(9) },
	} {
		hosts = hostsOf(7)
		if change(); l.Suits(hosts) {
			t.Errorf("%s: it suits", name)
		}
	}
}

func TestRefusedPlans(t *testing.T) {
	for name, c := range map[string]struct {
		replicas int
		hosts    []roster.ID
		want     error
	}{
		"no host": {1, nil, ErrLayout}, "no replica": {0, hostsOf(1), ErrRule}, "many replicas": {MaxReplicas + 1, hostsOf(1), ErrRule},
		"twice": {1, append(hostsOf(2), host(0)), ErrLayout}, "no key": {1, []roster.ID{"x"}, ErrLayout},
	} {
		if _, err := Plan(ruleOf(8, c.replicas), c.hosts); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func sameRow(a, b *quorum.Row) bool { return a.Name() == b.Name() }

func TestParseIsTheInverse(t *testing.T) {
	l := plan(t, 64, 3, hostsOf(12))
	got, err := Parse(l.Value(), ruleOf(64, 3))
	if err != nil {
		t.Fatal(err)
	}
	if got.basis != l.basis || !slices.EqualFunc(got.rows, l.rows, sameRow) || !slices.Equal(got.hosts, l.hosts) {
		t.Error("the layout read is another one")
	}
	for _, rule := range []*Rule{ruleOf(32, 3), ruleOf(128, 3)} {
		if _, err := Parse(l.Value(), rule); !errors.Is(err, ErrLayout) {
			t.Errorf("for %d shards of %d: %v", rule.Shards, rule.Replicas, err)
		}
	}
}

// Every change of a byte makes bytes that are refused, or a layout that is valid and
// encodes to these very bytes.
func TestChangedBytes(t *testing.T) {
	value := plan(t, 8, 2, hostsOf(3)).Value()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range value {
		changed := slices.Clone(value)
		changed[i] ^= byte(1 + random.IntN(255))
		l, err := Parse(changed, ruleOf(8, 2))
		if err != nil {
			if !errors.Is(err, ErrLayout) {
				t.Fatalf("byte %d: %v", i, err)
			}
			continue
		}
		if err := l.seal(); err != nil || !slices.Equal(l.Value(), changed) {
			t.Fatalf("byte %d: a layout with two forms: %v", i, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	l, err := Plan(ruleOf(8, 2), hostsOf(3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(l.Value())
	f.Fuzz(func(t *testing.T, value []byte) {
		l, err := Parse(value, ruleOf(8, 2))
		if err != nil {
			return
		}
		for s := range Shard(8) {
			if len(l.Hosts(s)) == 0 {
				t.Fatal("a shard without a host")
			}
		}
	})
}

// The largest layout that there can be is let in.
func TestTheLargest(t *testing.T) {
	l := plan(t, MaxShards, MaxReplicas, hostsOf(roster.MaxMembers))
	if n := len(l.Value()); n > MaxTable {
		t.Errorf("%d bytes", n)
	}
	if _, err := Parse(l.Value(), ruleOf(MaxShards, MaxReplicas)); err != nil {
		t.Error(err)
	}
	if _, err := Parse(make([]byte, MaxTable+1), ruleOf(MaxShards, MaxReplicas)); !errors.Is(err, ErrLayout) {
		t.Error(err)
	}
}

// The numbers that hosts draw are part of no format: the table travels. But data would move
// for nothing if a new program drew others.
func TestVector(t *testing.T) {
	hosts := hostsOf(4)
	l := plan(t, 8, 2, hosts)
	const want = "[1 3] [1 2] [0 1] [1 2] [1 2] [1 2] [1 3] [2 3] "
	got := ""
	for _, r := range l.rows {
		var numbers []int
		for _, id := range r.New {
			numbers = append(numbers, slices.Index(l.hosts, id))
		}
		got += fmt.Sprint(numbers, " ")
	}
	if got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
	if got := fmt.Sprintf("%x", l.basis); got != "ab82d48a6d5e540e" {
		t.Errorf("basis %s", got)
	}
	if got := fmt.Sprintf("%016x", draw(hosts[3], 5)); got != "51803fbf473c72fc" {
		t.Errorf("draw %s of host %s", got, hex.EncodeToString([]byte(hosts[3])))
	}
}
