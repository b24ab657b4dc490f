package peer

import (
	"errors"
	"reflect"
	"testing"
)

// A namespace of shards keeps its placement, and has a layout from the start, also after
// the node has come back.
func TestPlacement(t *testing.T) {
	dir := t.TempDir()
	want := &Placement{Kind: "prefix", Shards: 4, Replicas: 2, Prefixes: map[string]int{"de": 1, "debian/": 3}}
	for _, begun := range []bool{false, true} {
		n, err := Open(t.Context(), Config{Dir: dir})
		must(t, err)
		var ns *Namespace
		if begun {
			ns, err = n.Namespace("packages")
		} else {
			ns, err = n.CreateNamespace(t.Context(), "packages", Policy{Placement: want})
		}
		must(t, err)
		if got := ns.Policy().Placement; !reflect.DeepEqual(got, want) {
			t.Errorf("placement %+v", got)
		}
		l, err := ns.Layout()
		if err != nil || l.Epoch != 1 || len(l.Hosts) != 4 || len(l.Hosts[3]) != 1 || l.Hosts[3][0] != n.ID() {
			t.Errorf("%+v, %v", l, err)
		}
		if !begun {
			one, err := n.CreateNamespace(t.Context(), "plain", Policy{})
			must(t, err)
			if _, err := one.Layout(); !errors.Is(err, ErrInvalid) {
				t.Errorf("a layout of one shard: %v", err)
			}
			for _, bad := range []*Placement{{}, {Kind: "hash", Shards: 3, Replicas: 1}, {Kind: "hash", Shards: 4}, {Kind: "prefix", Shards: 4, Replicas: 1, Prefixes: map[string]int{"a": -1}}} {
				if _, err := n.CreateNamespace(t.Context(), "bad", Policy{Placement: bad}); !errors.Is(err, ErrInvalid) {
					t.Errorf("%+v: %v", bad, err)
				}
			}
		}
		must(t, n.Close(t.Context()))
	}
}
