package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// A host whose feed hides keys, or has some that there are not, makes look-ups in its shards ask
// hosts, and none wrong or unsure; it is named in the log. Other shards are looked up as before.
func TestHostLiesAboutItsKeys(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]func(home placement.Shard, known bool) directory.Code{
		"hides":   func(placement.Shard, bool) directory.Code { return directory.Gone },
		"invents": func(home placement.Shard, _ bool) directory.Code { return directory.Code(home) },
	} {
		t.Run(name, func(t *testing.T) { lyingHost(t, lie) })
	}
}

func lyingHost(t *testing.T, lie func(placement.Shard, bool) directory.Code) {
	const keys = 40
	c := newLocatedCluster(t, 3, placement.Hash)
	ns := c.spaces[0]
	tellers := ns.core.Tellers()
	sets := map[node.ID]int{}
	for _, hosts := range tellers.Of {
		for _, id := range hosts {
			sets[id]++
		}
	}
	liar := node.ID(c.nodes[1].ID()) // which is to host half of the sets at least
	if other := node.ID(c.nodes[2].ID()); sets[other] > sets[liar] {
		liar = other
	}
	told := map[placement.Shard]map[dbadapter.Index]directory.Code{}
	tell := func(key string, code directory.Code) {
		home, index := ns.core.ToldAs([]byte(key))
		if !slices.Contains(tellers.Of[home], liar) {
			return
		}
		if told[home] == nil {
			told[home] = map[dbadapter.Index]directory.Code{}
		}
		if told[home][index] = code; code == directory.Gone {
			delete(told[home], index)
		}
	}
	for k := range keys {
		key := fmt.Sprint("key ", k)
		done, err := c.put(k%3, key, "1", route.All)
		if err != nil || done.Held != 2 {
			t.Fatal(done, err)
		}
		home := ns.core.Home([]byte(key))
		code := directory.Code(home)
		if k%8 > 0 {
			code = lie(home, true)
		}
		tell(key, code)
		none := fmt.Sprint("none ", k)
		tell(none, lie(ns.core.Home([]byte(none)), false))
	}
	host := directory.NewHost(8, 99)
	host.SetLayout(tellers.Layout)
	for home, hosts := range tellers.Of {
		if slices.Contains(hosts, liar) {
			host.Open(home, ascending(told[home]))
		}
	}
	log := &bytes.Buffer{}
	ns.node.log = slog.New(slog.NewTextHandler(log, nil))
	ns.follows.ask = func(ctx context.Context, id node.ID, m directory.Message) (directory.Message, error) {
		switch poll := m.(type) {
		case *directory.Poll:
			if id == liar {
				return host.News(poll), nil
			}
		case *directory.Take:
			if id == liar {
				return host.Block(poll)
			}
		}
		return ns.feedOf(ctx, id, m)
	}
	for range 10 {
		c.pass(apartFor / 5)
		c.follow()
	}
	if !strings.Contains(log.String(), ID(liar).String()) || !strings.Contains(log.String(), "tells of a shard's keys otherwise") {
		t.Errorf("the log: %q", log)
	}
	asked := 0
	for k := range keys {
		key := []byte(fmt.Sprint("key ", k))
		f, err := ns.readKey(t.Context(), key, false)
		if err != nil || f.Record == nil || string(f.Record.Value) != "1" || !f.Sure {
			t.Errorf("%q: %+v, %v", key, f, err)
		}
		if got, err := c.get(0, string(key)); got != "1" || err != nil {
			t.Errorf("%q reads %q, %v", key, got, err)
		}
		none := []byte(fmt.Sprint("none ", k))
		f, err = ns.readKey(t.Context(), none, false)
		if err != nil || f.Record != nil || !f.Sure {
			t.Errorf("%q: %+v, %v", none, f, err)
		}
		if _, err := ns.Get(t.Context(), none); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", none, err)
		}
		if f.Requests > 0 {
			asked++
		}
		if lies := slices.Contains(tellers.Of[ns.core.Home(none)], liar); f.Requests > 0 && !lies && c.where(ns, string(none)) == directory.Nowhere {
			t.Errorf("%q is in a set of honest hosts, and took %d requests", none, f.Requests)
		}
	}
	if asked == 0 {
		t.Error("no miss took a request, though a host tells otherwise")
	}
}

// ascending are what is told of a set, by index.
func ascending(told map[dbadapter.Index]directory.Code) iter.Seq2[dbadapter.Index, directory.Code] {
	return func(yield func(dbadapter.Index, directory.Code) bool) {
		for _, index := range slices.Sorted(maps.Keys(told)) {
			if !yield(index, told[index]) {
				return
			}
		}
	}
}

// What a host does not tell of, or tells otherwise than the others, is in a metric
// that names it, and in the log once that lasts.
func TestApartHostIsNamed(t *testing.T) {
	c := newLocatedCluster(t, 3, placement.Hash)
	log := &bytes.Buffer{}
	ns := c.spaces[0]
	ns.node.log = slog.New(slog.NewTextHandler(log, nil))
	var id ID
	for _, n := range c.nodes {
		if !slices.Contains(ns.core.Tellers().Of[0], node.ID(n.ID())) {
			id = n.ID() // of which one set at least is none
		}
	}
	apart := func() (sets float64) {
		families, err := c.metrics[0].Gather()
		c.must(err)
		for _, f := range families {
			for _, m := range f.Metric {
				for _, label := range m.Label {
					if f.GetName() == "syncd_directory_apart_sets" && label.GetName() == "host" && label.GetValue() == id.String() {
						sets += m.GetGauge().GetValue()
					}
				}
			}
		}
		return sets
	}
	if got := apart(); got != 0 {
		t.Errorf("%v sets of an honest host are apart", got)
	}
	status := &directory.Status{Host: node.ID(id), Sets: 2, Apart: 1}
	for range 3 {
		c.pass(apartFor / 2)
		status.Heard = c.time
		ns.follows.tell(ns, status)
	}
	if got := log.String(); strings.Count(got, id.String()) != 1 || !strings.Contains(got, "hides keys") {
		t.Errorf("the log: %q", got)
	}
	tellers := ns.core.Tellers()
	hosts := maps.Clone(tellers.Of)
	stranger := node.ID(id)
	for home := range hosts {
		if !slices.Contains(hosts[home], stranger) {
			hosts[home] = append(slices.Clone(hosts[home]), stranger) // which it does not tell of
		}
	}
	ns.follows.locator.SetHosts(tellers.Layout, hosts)
	if got := apart(); got == 0 {
		t.Error("no set is apart of which the host does not tell")
	}
}
