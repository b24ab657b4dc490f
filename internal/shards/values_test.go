package shards

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/quorum"
)

// pointerAt is where the value of a key's record is, as a quorum holds it.
func (h *host) pointerAt(key string) *bodies.Pointer {
	h.c.t.Helper()
	f, err := h.shards.Get(h.c.ctx, []byte(key), GetOptions{Bare: true})
	h.c.must(err)
	_, p, err := bodies.Read(f.Record.Value)
	h.c.must(err)
	if p == nil {
		h.c.t.Fatalf("%q has its value in its record", key)
	}
	return p
}

func (h *host) wants(key, want string, o GetOptions) {
	h.c.t.Helper()
	if got, _, err := h.get(key, o); got != want || err != nil {
		h.c.t.Errorf("%q reads as %.40q, %v; want %.40q", key, got, err, want)
	}
}

func TestLargeValuesAreBodies(t *testing.T) {
	inClusterOf(t, byWriter, 4, func(t *testing.T, c *cluster) {
		large, larger := strings.Repeat("v", 64<<10), strings.Repeat("w", 1<<20)
		for _, key := range []string{"a", "b", strings.Repeat("k", dbadapter.MaxKey-bodies.KeyRoom)} {
			for i, value := range []string{large, larger, "small"} {
				_, err := c.hosts[0].put(key, value, quorum.Quorum)
				c.must(err)
				c.hosts[3].wants(key, value, GetOptions{Level: quorum.Quorum})
				c.quiet()
				for _, h := range c.hosts {
					h.wants(key, value, GetOptions{Level: quorum.One})
					h.wants(key, value, GetOptions{Level: quorum.All})
				}
				p := c.hosts[i].pointerAt(key)
				if row := c.hosts[0].ns.Row(p.Shard); !row.IsHost(c.hosts[0].ID) {
					t.Errorf("the body of %.20q is in shard %d, and its writer is no host of that", key, p.Shard)
				}
				for at, held := range c.held(string(bodies.HintKey(p.Shard, []byte(key)))) {
					if h := c.hosts[at]; h.ns.WholeHere(p.Shard) != nil && len(held) < len(key) {
						t.Errorf("host %d of the body has no hint: %q", at, held)
					}
				}
			}
			_, err := c.hosts[1].put(key, "", quorum.Quorum)
			c.must(err)
			if _, f, err := c.hosts[2].get(key, GetOptions{}); err != nil || !f.Record.Deleted {
				t.Errorf("a deleted key: %v, %v", f.Record, err)
			}
		}
	})
}

func TestEmptyAndSmallValuesStayInTheirRecords(t *testing.T) {
	inClusterOf(t, byWriter, 3, func(t *testing.T, c *cluster) {
		d := node.Draft{Record: dbadapter.Record{Key: []byte("k")}}
		_, err := c.hosts[0].shards.Put(c.ctx, []node.Draft{d}, PutOptions{})
		c.must(err)
		c.hosts[1].wants("k", "", GetOptions{})
		if held := c.held("k"); held[0] != string(bodies.Inline(nil)) {
			t.Errorf("an empty value is held as %q", held)
		}
	})
}

// What is no user's key, and what a batch cannot have, is refused before anything is sent.
func TestWhatPlacementWriterRefuses(t *testing.T) {
	inClusterOf(t, byWriter, 3, func(t *testing.T, c *cluster) {
		before := c.hosts[1].asked
		for _, key := range []string{"\x00", "\x00b\x00\x01", string(bodies.HintKey(1, []byte("k"))), strings.Repeat("k", dbadapter.MaxKey-bodies.KeyRoom+1)} {
			if _, err := c.hosts[0].put(key, "v", quorum.Quorum); !errors.Is(err, node.ErrInvalid) && !errors.Is(err, dbadapter.ErrLimit) {
				t.Errorf("put %.20q: %v", key, err)
			}
			if _, _, err := c.hosts[0].get(key, GetOptions{}); !errors.Is(err, node.ErrInvalid) && !errors.Is(err, dbadapter.ErrLimit) {
				t.Errorf("get %.20q: %v", key, err)
			}
		}
		_, err := c.hosts[0].shards.Put(c.ctx, []node.Draft{{Record: dbadapter.Record{Key: []byte("k")}}, draft("k", "v")}, PutOptions{})
		var item *node.ItemError
		if !errors.As(err, &item) || item.Item != 1 || !errors.Is(err, node.ErrInvalid) || !strings.Contains(err.Error(), "one by one") {
			t.Errorf("a batch with a large value: %v", err)
		}
		if after := c.hosts[1].asked; after != before {
			t.Errorf("%d questions were asked", after-before)
		}
	})
}

// Nothing is written under the key where its body is not confirmed, nor is a body where a condition does not hold.
func TestBodyBeforeItsRecord(t *testing.T) {
	inClusterOf(t, byWriter, 3, func(t *testing.T, c *cluster) {
		v, err := c.hosts[0].put("k", "one", quorum.All)
		c.must(err)
		c.quiet()
		before := len(c.reserved())
		if _, err := c.hosts[0].putIf("k", "two", dbadapter.Version{}); !errors.Is(err, dbadapter.ErrConflict) || len(c.reserved()) != before {
			t.Errorf("a condition that does not hold: %v, and %d records of bodies and hints became %d", err, before, len(c.reserved()))
		}
		_, err = c.hosts[0].putIf("k", "two", v)
		c.must(err)
		c.hosts[1].wants("k", "two", GetOptions{})
		c.quiet()
		c.set(down, 1, 2)
		_, err = c.hosts[0].put("k", "three", quorum.Quorum)
		if !errors.Is(err, ErrTooFew) || errors.Is(err, ErrUnconfirmed) || !strings.Contains(err.Error(), "nothing is written") {
			t.Errorf("a put whose body is not confirmed: %v", err)
		}
		c.set(up, 1, 2)
		c.quiet()
		c.hosts[2].wants("k", "two", GetOptions{})
	})
}

// reserved are the keys of bodies and hints at the first node, those that are deleted not among them.
func (c *cluster) reserved() (keys []string) {
	c.t.Helper()
	for _, set := range c.hosts[0].ns.Sets() {
		for r, err := range ScanSet(c.ctx, set, &ScanOptions{Prefix: []byte{0}}) {
			c.must(err)
			keys = append(keys, string(r.Key))
		}
	}
	return keys
}

// A scan and a watch give users' values in order, and neither bodies nor hints.
func TestScanAndWatchGiveUsersValues(t *testing.T) {
	inClusterOf(t, byWriter, 4, func(t *testing.T, c *cluster) {
		var want []string
		for i := range 40 {
			key, value := fmt.Sprintf("k%02d", i), strings.Repeat("v", i*i*100)
			d := node.Draft{Record: dbadapter.Record{Key: []byte(key), Value: []byte(value)}}
			_, err := c.hosts[i%4].shards.Put(c.ctx, []node.Draft{d}, PutOptions{})
			c.must(err)
			want = append(want, key+value)
		}
		c.quiet()
		c.round()
		for _, h := range c.hosts {
			for _, sizes := range []bool{false, true} {
				size, o := 0, ScanOptions{Room: 1 << 20}
				if sizes {
					o.Size = &size
				}
				var got []string
				for r, err := range h.shards.Scan(c.ctx, o) {
					c.must(err)
					value := string(r.Value)
					if sizes {
						value = strings.Repeat("v", size)
					}
					got = append(got, string(r.Key)+value)
				}
				if !slices.Equal(got, want) {
					t.Errorf("sizes alone: %t: a scan gives %d records, some of them not as they were put", sizes, len(got))
				}
			}
			told := map[string]string{}
			err := h.shards.Watch(c.ctx, node.FromStart, WatchOptions{Room: 1 << 20}, func(e *node.Watched) bool {
				if e.Kind == node.PutKind {
					told[string(e.Key)] = string(e.Record.Value)
				}
				return e.Kind != node.AtKind
			})
			c.must(err)
			for _, one := range want {
				if told[one[:3]] != one[3:] {
					t.Errorf("a watch tells of %s with %d bytes; want %d", one[:3], len(told[one[:3]]), len(one)-3)
				}
			}
			if len(told) != len(want) {
				t.Errorf("a watch tells of %d keys", len(told))
			}
		}
	})
}
