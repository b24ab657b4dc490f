package directory

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyset"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

func (h *Host) rowsOf(home placement.Shard) map[dbadapter.Index]Code {
	m := map[dbadapter.Index]Code{}
	for x := range h.sets[home].from(0) {
		m[x.index()] = x.code()
	}
	return m
}

// What a host tells is what a map holds, after any changes, by blocks read while it
// changes and the events since.
func TestHostTwin(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const shards, home = 8, 5
	twin := map[dbadapter.Index]Code{}
	h := NewHost(shards, 1)
	h.SetLayout(testLayout)
	for len(twin) < 6000 {
		twin[dbadapter.Index(1+r.Uint64N(20_000))] = Code(r.IntN(shards))
	}
	h.Open(home, sortedRows(twin))
	begin := h.seq
	change := func() {
		index := dbadapter.Index(1 + r.Uint64N(20_000))
		is := Code(r.IntN(shards))
		switch r.IntN(8) {
		case 0:
			is = Gone
		case 1:
			is = Shared
		}
		h.Set(home, index, is)
		if twin[index] = is; is == Gone {
			delete(twin, index)
		}
	}
	told := map[dbadapter.Index]Code{}
	for at := (keyset.Cursor{}); !at.Done; {
		b, err := h.Block(&Take{Log: 1, Home: home, At: at})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range b.rows {
			told[x.index()] = x.code()
		}
		at = b.next()
		for range 3000 {
			change()
		}
	}
	for p := (&Poll{Log: 1, Seq: begin}); ; {
		n := h.News(p)
		if n.Begins {
			t.Fatal("the log does not reach back")
		}
		for _, e := range n.Events {
			if told[e.Index] = e.Is; e.Is == Gone {
				delete(told, e.Index)
			}
		}
		if p.Seq = n.To; !n.More {
			break
		}
	}
	if !maps.Equal(told, twin) || !maps.Equal(h.rowsOf(home), twin) {
		t.Errorf("%d told, %d kept, %d in the map", len(told), len(h.rowsOf(home)), len(twin))
	}
	var sum Sum
	for index, code := range twin {
		sum.add(pack(index, code), 1)
	}
	if n := h.News(&Poll{}); !n.Begins || len(n.Sums) != 1 || n.Sums[0] != (SetSum{home, sum}) {
		t.Errorf("%+v; the sum is %x", n, sum)
	}
}

func TestHostLog(t *testing.T) {
	h := NewHost(4, 9)
	h.SetLayout(testLayout)
	h.Set(1, 5, 2) // not open
	h.Open(1, sortedRows(nil))
	h.Set(1, 5, 2)
	h.Set(1, 5, 2) // an overwritten record
	if h.seq != 2 {
		t.Fatalf("%d events", h.seq)
	}
	for i := range uint64(3 * LogEvents) {
		h.Set(1, dbadapter.Index(6+i%3), Code(i/3%4))
	}
	if len(h.events) > 2*LogEvents || h.gone+uint64(len(h.events)) != h.seq {
		t.Errorf("%d events behind %d, of %d", len(h.events), h.gone, h.seq)
	}
	for _, c := range []struct {
		p      Poll
		begins bool
	}{{Poll{Log: 9, Seq: h.gone - 1}, true}, {Poll{Log: 9, Seq: h.gone}, false}, {Poll{Log: 8, Seq: h.gone}, true}, {Poll{Log: 9, Seq: h.seq}, false}, {Poll{Log: 9, Seq: h.seq + 1}, true}} {
		if n := h.News(&c.p); n.Begins != c.begins {
			t.Errorf("%+v: begins %v", c.p, n.Begins)
		}
	}
	h.Close(1)
	if _, err := h.Block(&Take{Log: 9, Home: 1}); err == nil {
		t.Error("a block of a closed set")
	}
	for p, want := range map[Poll]bool{{Log: 9, Seq: h.seq, Wait: true}: true, {Log: 9, Seq: h.seq - 1}: false, {Log: 8, Seq: h.seq}: false, {Log: 9, Seq: h.seq, All: true}: false} {
		if h.Idle(&p) != want {
			t.Errorf("%+v: it would be answered without news: %v", p, !want)
		}
	}
	if n := h.News(&Poll{Log: 9, Seq: h.seq - 1}); len(n.Events) != 1 || n.Events[0].Kind != Closed || len(n.Sums) != 0 {
		t.Errorf("%+v", n)
	}
}
