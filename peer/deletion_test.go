package peer

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// A deletion that too few hosts take leaves no record behind an entry that is deleted: once that
// tombstone is collected, the record would count as one whose entry was lost, and be written anew,
// over later deletions too.
func TestDeletionsLeaveNoRecordBehind(t *testing.T) {
	t.Parallel()
	for how, deletes := range map[string]func(ns *Namespace, key string) error{
		"deleted": func(ns *Namespace, key string) error {
			_, err := ns.Delete(t.Context(), []byte(key), Acks(AckAll))
			return err
		},
		"imported": func(ns *Namespace, key string) error {
			_, err := ns.Import(t.Context(), sequence([]Item{{Key: []byte(key), Deleted: true}}), Acks(AckAll))
			return err
		},
	} {
		t.Run(how, func(t *testing.T) {
			c := newWriterCluster(t, 4)
			key, away := c.apartFromItsEntry()
			_, err := c.put(0, key, "1", route.All)
			c.must(err)
			c.follow()
			c.part(away)
			if err := deletes(c.spaces[0], key); err == nil {
				t.Fatalf("the deletion is acknowledged without node %d", away)
			}
			own := c.spaces[0].core.OwnShard([]byte(key))
			if c.present(0, own, key) && !c.present(c.host(key, away), c.spaces[0].core.Entries([]byte(key)), key) {
				t.Error("the record is there, and its entry is deleted")
			}
			c.heal()
			c.round()
			c.follow()
			for i := range c.nodes {
				if got, err := c.get(i, key); err == nil {
					t.Errorf("node %d reads %q of what was deleted", i, got)
				}
			}
		})
	}
}

// A deletion takes the record that a look-up finds, also where the directory has no entry of it, and the
// feed leads there all the same: by another key of the same index.
func TestDeletionsTakeWhatIsFound(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 3)
	const key = "without an entry"
	own := c.spaces[0].core.OwnShard([]byte(key))
	c.shardCluster.put(0, own, key)
	c.round()
	tells := map[node.ID]*directory.Host{}
	for _, ns := range c.spaces {
		tellers := ns.core.Tellers()
		home, index := ns.core.ToldAs([]byte(key))
		for i, id := range tellers.All {
			if tells[id] == nil {
				tells[id] = directory.NewHost(8, uint64(i)+1)
				tells[id].SetLayout(tellers.Layout)
				for of, hosts := range tellers.Of {
					if slices.Contains(hosts, id) {
						tells[id].Open(of, func(yield func(dbadapter.Index, directory.Code) bool) {
							if of == home {
								yield(index, directory.Code(own))
							}
						})
					}
				}
			}
		}
		ns.follows.ask = func(_ context.Context, id node.ID, m directory.Message) (directory.Message, error) {
			if p, ok := m.(*directory.Poll); ok {
				return tells[id].News(p), nil
			}
			return tells[id].Block(m.(*directory.Take))
		}
	}
	c.follow()
	c.follow()
	by := -1
	for i, ns := range c.spaces {
		if ns.core.OwnShard([]byte(key)) != own {
			by = i
		}
	}
	if f, err := c.spaces[by].lookUp(t.Context(), []byte(key), false); err != nil || f.Record == nil || f.Shard != own {
		t.Fatalf("the feed does not lead to the record: %+v, %v", f, err)
	}
	if _, err := c.spaces[by].Delete(t.Context(), []byte(key), Acks(AckAll)); err != nil {
		t.Fatal(err)
	}
	for _, i := range c.holding(key, own) {
		if c.present(i, own, key) {
			t.Errorf("node %d holds what was deleted", i)
		}
	}
}

// apartFromItsEntry is a key and a host of its entry that does not host the shard in which node 0 would
// write it; node 0 does.
func (c *writerCluster) apartFromItsEntry() (key string, away int) {
	c.t.Helper()
	for i := range 1000 {
		key := fmt.Sprint("apart ", i)
		in := c.holding(key, c.spaces[0].core.OwnShard([]byte(key)))
		for _, away := range c.holding(key, c.spaces[0].core.Entries([]byte(key))) {
			if slices.Contains(in, 0) && !slices.Contains(in, away) {
				return key, away
			}
		}
	}
	c.t.Fatal("no key's entry is apart from its record: choose other idsOfWriters")
	return "", 0
}

// host is the host of a key's entry that another one is not.
func (c *writerCluster) host(key string, not int) int {
	hosts := c.holding(key, c.spaces[0].core.Entries([]byte(key)))
	return hosts[0] + hosts[1] - not
}

// present reports whether a host of a set holds a key there, which is not deleted.
func (c *writerCluster) present(i int, set placement.Shard, key string) bool {
	c.t.Helper()
	sh, err := c.spaces[i].numbered(set)
	c.must(err)
	held, err := sh.set.Held([]byte(key))
	c.must(err)
	return held != nil && !held.Deleted
}
