package peer

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/route"
)

// An import at a host whose copy is not current does not go by that alone: what another host has written
// meanwhile gives way to the item, whether the host answers, or is away and heard later. What all hosts hold
// is unchanged.
func TestImportAtAHostThatIsNotCurrent(t *testing.T) {
	wanted, deleted := []Item{{Key: []byte("key"), Value: []byte("wanted")}}, []Item{{Key: []byte("key"), Deleted: true}}
	for name, tc := range map[string]struct {
		items []Item
		// What both hosts hold, and then the one that imports, and the other one; "": nothing.
		both, own, other string
		away             bool
		want             ImportResult
		ends             string
	}{
		"another value":           {items: wanted, both: "wanted", other: "other", want: ImportResult{Items: 1, Written: 1}, ends: "wanted"},
		"of a host that is away":  {items: wanted, both: "wanted", other: "other", away: true, want: ImportResult{Items: 1, Written: 1}, ends: "wanted"},
		"an older value":          {items: wanted, both: "older", own: "wanted", want: ImportResult{Items: 1, Unchanged: 1}, ends: "wanted"},
		"the same value":          {items: wanted, both: "wanted", want: ImportResult{Items: 1, Unchanged: 1}, ends: "wanted"},
		"no value":                {items: wanted, own: "wanted", want: ImportResult{Items: 1, Unchanged: 1}, ends: "wanted"},
		"deleted, and only there": {items: deleted, other: "other", want: ImportResult{Items: 1, Written: 1}},
		"deleted, and nowhere":    {items: deleted, want: ImportResult{Items: 1, Unchanged: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newRoutedCluster(t, 4)
			if tc.both != "" {
				_, err := c.put(0, "key", tc.both, route.All)
				c.must(err)
			}
			hosts, _ := c.hosts("key")
			for at, value := range []string{tc.own, tc.other} {
				if value != "" {
					c.write(hosts[at], "key", value)
				}
			}
			c.now.Add(int64(time.Hour))
			if tc.away {
				c.nodes[hosts[0]].routing.slowed(c.nodes[hosts[1]].ID(), true, c.nodes[hosts[0]].elapsed())
			}
			got, err := c.spaces[hosts[0]].Import(t.Context(), sequence(tc.items))
			if err != nil || got != tc.want {
				t.Errorf("%+v, %v", got, err)
			}
			for range 3 {
				c.round()
			}
			for i := range c.nodes {
				r, err := c.spaces[i].Get(t.Context(), []byte("key"))
				if string(r.Value) != tc.ends || (err == nil) != (tc.ends != "") {
					t.Errorf("node %d reads %q, %v", i, r.Value, err)
				}
			}
		})
	}
}
