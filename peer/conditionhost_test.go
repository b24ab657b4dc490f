package peer

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A host's write on a condition is made anew where the host has written the key itself since it was looked up, or is about
// to: it would have a later clock, and what another node writes over it would count the host's own write as seen.
func TestConditionOfAHostBesideItsWrite(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]error{"committed": ErrConflict, "being committed": ErrBusy, "being imported": ErrBusy} {
		t.Run(name, func(t *testing.T) {
			c, first, _, hosts := newBothCurrent(t)
			key := []byte("key")
			remote, err := c.spaces[hosts[0]].core.Remote(key)
			c.must(err)
			host := c.spaces[hosts[0]+hosts[1]-c.firstOf(remote)] // the other one is asked first
			sh, err := host.numbered(remote.Shard())
			c.must(err)
			attempt, err := sh.set.Write(node.Draft{Record: dbadapter.Record{Key: key, Value: []byte("local")}})
			c.must(err)
			o := host.core.Offer(conditions("key", first.Version)["put"], false, route.All, host.steady)
			looked := 0
			for o.Next() != node.OfferOver {
				switch o.Next() {
				case node.OfferLookUp:
					found, err := host.lookUpUntil(t.Context(), host.node.deadline(t.Context()), o.Remote().Shard(), key, o.All())
					if looked++; looked == 1 {
						switch name {
						case "committed":
							c.must(sh.commit(t.Context(), attempt))
						case "being committed":
							defer attempt.Hold()()
							_, err := attempt.Writes()
							c.must(err)
						case "being imported":
							im := sh.set.Import()
							im.Add(&node.Item{Key: key, Value: []byte("local")})
							defer im.Hold()()
							_, err := im.Cut().Writes()
							c.must(err)
						}
					}
					c.now.Add(int64(10 * time.Millisecond))
					o.LookedUp(found, err)
				case node.OfferHand:
					t.Fatal("hosts are to hold a record that has not seen what this one has written")
				default:
					t.Fatalf("step %d", o.Next())
				}
			}
			if _, err := o.Result(); !errors.Is(err, want) || o.Taken() {
				t.Errorf("the condition ends with %v, taken %t", err, o.Taken())
			}
		})
	}
}

// So by placement writer.
func TestConditionOfAWritersHostBesideItsWrite(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	key, _, hosts, first := c.onTwo()
	entries, err := c.spaces[0].core.RemoteIn([]byte(key), c.spaces[0].core.Entries([]byte(key))).Hosts()
	c.must(err)
	at := slices.IndexFunc(hosts, func(h int) bool { return node.ID(c.nodes[h].ID()) == entries[1] })
	host, near := c.spaces[hosts[at]], hosts[1-at] // which is asked first
	c.now.Add(int64(6 * time.Second))              // no host is current any more: look-ups ask
	var local dbadapter.Version
	c.answers(c.nodes[near], func(ID, *wire.Ask) bool { return true }, func(by ID, ask *wire.Ask, _ *wire.Reply) {
		if q, ok := ask.Question.(*wire.AskRecord); !ok || by != host.node.ID() || host.core.RemoteIn([]byte(key), placement.Shard(q.Shard)).Directory() || local.Clock > 0 {
			return
		}
		var err error
		local, err = host.Put(t.Context(), []byte(key), []byte("local"), Acks(1))
		c.must(err)
		c.now.Add(int64(10 * time.Millisecond))
	})
	host.node.routing.close()
	if _, err := host.PutIf(t.Context(), []byte(key), []byte("conditional"), first.Version); err == nil || local.Clock == 0 {
		t.Fatalf("beside %v: %v", local, err)
	}
	for i := range c.nodes {
		if i == hosts[at] {
			continue
		}
		for _, sh := range c.spaces[i].shards() {
			if r, err := sh.set.Held([]byte(key)); err != nil || r != nil && r.Version.Compare(local) > 0 {
				t.Errorf("node %d holds %v, later than what the host has written, %v", i, r, err)
			}
		}
	}
}

// A host's plain write, or item of an import, that is made behind a record on a condition, which other hosts are to hold, has
// seen it.
func TestWriteOfAHostBehindItsCondition(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(c *routedCluster, sh *shard) error{
		"write": func(c *routedCluster, sh *shard) error {
			attempt, err := sh.set.Write(node.Draft{Record: dbadapter.Record{Key: []byte("key"), Value: []byte("local")}})
			c.must(err)
			return sh.commit(t.Context(), attempt)
		},
		"import": func(c *routedCluster, sh *shard) error {
			im := sh.set.Import()
			im.Add(&node.Item{Key: []byte("key"), Value: []byte("local")})
			return sh.beginImport(t.Context(), im).end()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, first, _, hosts := newBothCurrent(t)
			host := c.spaces[hosts[0]]
			remote, err := host.core.Remote([]byte("key"))
			c.must(err)
			sh, err := host.numbered(remote.Shard())
			c.must(err)
			o := c.lookedUp(host, conditions("key", first.Version)["put"], route.All)
			c.must(write(c, sh))
			if r := c.held(hosts[0], "key"); o.Next() != node.OfferHand || string(r.Value) != "local" || !r.Supersedes(o.Version()) {
				t.Errorf("%v, %q, replaces %v, not %v", r.Version, r.Value, r.Replaces, o.Version())
			}
		})
	}
}
