package peer

import (
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/peer/status"
)

// A node that has heard of its removal says so where other members do not answer it any more.
func TestReadsOfAFormerMember(t *testing.T) {
	c := newRoutedCluster(t, 4)
	key := []byte("of others")
	hosts, others := c.hosts(string(key))
	at, admin := others[0], 0
	if at == admin {
		at = others[1]
	}
	ns := c.spaces[at]
	must(t, errOf(c.put(hosts[0], string(key), "v", 2)))
	if _, err := ns.Why(t.Context(), key); !errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotFound) {
		t.Errorf("why at a node that is no host: %v", err)
	}
	c.must(c.spaces[admin].ForceRemove(t.Context(), c.nodes[at].ID()))
	c.now.Add(int64(time.Second))
	if _, err := ns.Sync(t.Context(), c.nodes[admin].ID(), SyncOptions{}); !errors.Is(err, ErrRemoved) {
		t.Fatalf("a sync of a former member: %v", err)
	}
	_, got := ns.Get(t.Context(), key)
	_, located := ns.Locate(t.Context(), key)
	var scanned, watched error
	for _, err := range ns.Scan(t.Context(), nil) {
		scanned = err
	}
	for _, err := range ns.Watch(t.Context(), "") {
		watched = err
	}
	for what, err := range map[string]error{"get": got, "locate": located, "scan": scanned, "watch": watched} {
		if !errors.Is(err, ErrRemoved) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A member that does not hold the key's shard is not said to count this node as none.
func TestWhyOfAMemberThatIsNoHost(t *testing.T) {
	c := newRoutedCluster(t, 3)
	hosts, others := c.hosts("k")
	whys, err := c.spaces[hosts[0]].Why(t.Context(), []byte("k"), c.nodes[others[0]].ID())
	if err != nil || len(whys) != 1 || len(whys[0].Causes) != 1 || whys[0].Causes[0].Kind == status.CauseDenied {
		t.Errorf("%+v, %v", whys, err)
	}
}
