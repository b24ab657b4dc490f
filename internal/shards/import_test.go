package shards

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/reconcile"
)

// bring imports items, and says at which places those are that were refused for their dates.
func (h *host) bring(o ImportOptions, items ...node.Item) (r node.ImportResult, refused []int64, err error) {
	o.Refused = func(at int64, _ *node.Item) { refused = append(refused, at) }
	r, err = h.shards.Import(h.c.ctx, func(yield func(node.Item, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	}, o)
	return r, refused, err
}

func item(key, value string, at time.Time) node.Item {
	return node.Item{Key: []byte(key), Value: []byte(value), Deleted: value == "", Time: at}
}

// What becomes of items, by what the hosts hold, and which of them answer.
func TestImport(t *testing.T) {
	for name, test := range map[string]struct {
		before func(c *cluster)
		ImportOptions
		at    func() time.Time // of the item; nil: it has no date
		want  node.ImportResult
		fails error
		read  string // at quorum, with all hosts up
		// missed: by placement writer nothing is written, since the body is not confirmed.
		missed bool
	}{
		"new":          {want: node.ImportResult{Items: 1, Written: 1}, read: "x"},
		"over other":   {before: func(c *cluster) { c.put("other") }, want: node.ImportResult{Items: 1, Written: 1}, read: "x"},
		"there":        {before: func(c *cluster) { c.put("x") }, want: node.ImportResult{Items: 1, Unchanged: 1}, read: "x"},
		"one is down":  {before: func(c *cluster) { c.set(down, 2) }, want: node.ImportResult{Items: 1, Written: 1}, read: "x"},
		"two are hung": {before: func(c *cluster) { c.set(hung, 0, 2) }, fails: ErrUnconfirmed, read: "x", missed: true},
		"at one host of two that are away": {
			before: func(c *cluster) { c.set(hung, 0, 2) }, ImportOptions: ImportOptions{Level: quorum.One},
			want: node.ImportResult{Items: 1, Written: 1}, read: "x",
		},
		"more hosts than there are": {ImportOptions: ImportOptions{Level: 4}, fails: node.ErrInvalid, read: "nothing"},
		"one that was away has it, and has not heard of its deletion": {
			before: func(c *cluster) {
				c.put("x")
				c.set(down, 0)
				c.put("")
				c.set(up, 0)
				c.set(down, 2)
			},
			want: node.ImportResult{Items: 1, Written: 1}, read: "x",
		},
		"two have it by different writes, between which it was deleted": {
			before: func(c *cluster) {
				c.put("x")
				c.set(down, 1)
				c.hosts[2].puts("a", "", quorum.Quorum)
				c.set(down, 0)
				c.hosts[2].puts("a", "x", quorum.One)
				c.set(up, 1)
			},
			want: node.ImportResult{Items: 1, Written: 1}, read: "x",
		},
		"dated": {at: time.Now, want: node.ImportResult{Items: 1, Written: 1}, read: "x"},
		"dated, late": {
			before: func(c *cluster) { c.promise() }, at: longAgo, want: node.ImportResult{Items: 1, Refused: 1}, read: "nothing",
		},
		"dated, late, as new": {
			before: func(c *cluster) { c.promise() }, at: longAgo, ImportOptions: ImportOptions{AsNew: true},
			want: node.ImportResult{Items: 1, Written: 1, AsNew: 1}, read: "x",
		},
		"dated, late, as new over what is later": {
			before: func(c *cluster) { c.promise(); c.put("later") }, at: longAgo, ImportOptions: ImportOptions{AsNew: true},
			want: node.ImportResult{Items: 1, Stale: 1}, read: "later",
		},
	} {
		for _, rule := range []*placement.Rule{byPrefix, byWriter} {
			if test.missed && rule == byWriter {
				test.fails, test.read = ErrTooFew, "nothing"
			}
			t.Run(fmt.Sprint(name, " by ", rule.Kind), func(t *testing.T) {
				imports(t, rule, test.before, test.at, test.ImportOptions, test.want, test.fails, test.read)
			})
		}
	}
}

// imports imports one item, and compares what becomes of it.
func imports(t *testing.T, rule *placement.Rule, before func(c *cluster), date func() time.Time, o ImportOptions, want node.ImportResult, fails error, read string) {
	var none time.Time
	inClusterOf(t, rule, 3, func(t *testing.T, c *cluster) {
		if before != nil {
			before(c)
		}
		at := none
		if date != nil {
			at = date()
		}
		r, refused, err := c.hosts[1].bring(o, item("a", "x", at))
		if int64(len(refused)) != r.Refused || (r.Refused > 0) != r.From.After(at) && date != nil {
			t.Errorf("refused %v, and dates are taken from %s on", refused, r.From)
		}
		r.From, r.Earliest = none, none
		if !errors.Is(err, fails) || r != want {
			t.Errorf("%+v, %v", r, err)
		}
		c.set(up, 0, 1, 2)
		for _, away := range []int{1, 2, 0} { // each majority has what a quorum has
			level := quorum.All
			if o.Level == quorum.Quorum && fails == nil {
				level = quorum.Quorum
				c.set(down, away)
			}
			if got, _, err := c.hosts[(away+1)%3].get("a", GetOptions{Level: level}); err != nil || got != read {
				t.Errorf("without host %d it reads %q, %v", away, got, err)
			}
			c.set(up, 0, 1, 2)
		}
	})
}

// put writes a value at each host that is up.
func (c *cluster) put(value string) {
	c.t.Helper()
	c.hosts[1].puts("a", value, quorum.Quorum)
	time.Sleep(100 * time.Millisecond)
}

func longAgo() time.Time { return time.Now().Add(-time.Hour) }

// promise has each host promise to hold all up to about now.
func (c *cluster) promise() {
	ns, key := c.hosts[1].ns, "ab"
	for ns.Home([]byte(key)) != ns.Home([]byte("a")) {
		key += "b"
	}
	for _, value := range []string{"1", ""} { // a deletion, which is to be collected
		c.hosts[1].puts(key, value, quorum.All)
	}
	c.rounds(20)
}

// An import ends with the error of the first item that failed, and names it: those before it are
// there. Items of one key follow one another.
func TestImportOfMany(t *testing.T) {
	inCluster(t, 4, func(t *testing.T, c *cluster) {
		h := c.hosts[c.stranger()]
		var items []node.Item
		for i := range 3 * 1000 {
			items = append(items, item(fmt.Sprintf("%c%d", 'a'+i%2, i%1000), fmt.Sprint(i), time.Time{}))
		}
		r, _, err := h.bring(ImportOptions{}, items...)
		if err != nil || r != (node.ImportResult{Items: 3000, Written: 3000}) {
			t.Errorf("%+v, %v", r, err)
		}
		for _, key := range []string{"a0", "b999"} {
			if got, _, err := h.get(key, GetOptions{}); err != nil || got != "2"+fmt.Sprintf("%03s", key[1:]) {
				t.Errorf("%s: %q, %v", key, got, err)
			}
		}
		r, _, err = h.bring(ImportOptions{}, item("a", "1", time.Time{}), item("", "1", time.Time{}), item("b", "1", time.Time{}))
		if of, ok := errors.AsType[*ItemError](err); !ok || of.Item != 2 || r != (node.ImportResult{Items: 1, Written: 1}) {
			t.Errorf("%+v, %v", r, err)
		}
		if held := c.held("b"); slices.ContainsFunc(held, func(v string) bool { return v == "1" }) {
			t.Errorf("behind the item that failed: %q", held)
		}
		for fate, fails := range map[fate]error{hung: ErrUnconfirmed, deaf: ErrUnconfirmed, down: reconcile.ErrUnreachable} {
			c.set(fate, 0, 1, 2, 3)
			if r, _, err := h.bring(ImportOptions{}, item("a", "2", time.Time{})); !errors.Is(err, fails) || errors.Is(err, ErrUnconfirmed) != (fails == ErrUnconfirmed) {
				t.Errorf("all hosts are away: %+v, %v", r, err)
			}
			c.quiet()
		}
	})
}

// Large values of an import: what is there is not sent again, whoever brings it, and dates decide as of small ones.
func TestImportOfLargeValues(t *testing.T) {
	inClusterOf(t, byWriter, 4, func(t *testing.T, c *cluster) {
		large := strings.Repeat("v", 64<<10)
		date := time.Now().Add(time.Second)
		items := []node.Item{item("dated", large, date), item("undated", large, time.Time{}), item("small", "s", date)}
		sent := func() (n int) {
			for _, h := range c.hosts {
				n += h.large
			}
			return n
		}
		for i, h := range c.hosts {
			before, want := sent(), node.ImportResult{Items: 3, Unchanged: 3}
			if i == 0 {
				want = node.ImportResult{Items: 3, Written: 3}
			}
			r, _, err := h.bring(ImportOptions{}, items...)
			r.Earliest = time.Time{}
			if err != nil || r != want {
				t.Errorf("at node %d: %+v, %v", i, r, err)
			}
			c.quiet()
			if n := sent() - before; n != map[bool]int{true: 4}[i == 0] {
				t.Errorf("node %d has sent %d large records", i, n)
			}
		}
		for _, h := range c.hosts {
			h.wants("dated", large, GetOptions{})
			h.wants("undated", large, GetOptions{Level: quorum.One})
		}
		before := sent()
		r, _, err := c.hosts[2].bring(ImportOptions{}, item("dated", large+"w", date.Add(-time.Millisecond)))
		if err != nil || r.Stale != 1 || sent() != before {
			t.Errorf("an earlier one: %+v, %v", r, err)
		}
		c.promise()
		before = sent()
		r, err = c.hosts[2].shards.Import(c.ctx, func(yield func(node.Item, error) bool) { yield(item("a", large, longAgo()), nil) }, ImportOptions{Refused: func(_ int64, i *node.Item) {
			if string(i.Value) != large {
				t.Errorf("a refused item has %d bytes", len(i.Value))
			}
		}})
		if err != nil || r.Refused != 1 {
			t.Errorf("a late one: %+v, %v", r, err)
		}
		if c.quiet(); sent() != before {
			t.Errorf("a late one: %d large records were sent", sent()-before)
		}
	})
}

// Three nodes import the same dated items at once: all end with one value, that no host counts as a conflict.
func TestImportOfOneDateAtThreeNodes(t *testing.T) {
	inClusterOf(t, byWriter, 3, func(t *testing.T, c *cluster) {
		var items []node.Item
		for i := range 20 {
			items = append(items, item(fmt.Sprint("k", i), fmt.Sprint("value ", i), time.Now()))
		}
		var all sync.WaitGroup
		for _, h := range c.hosts {
			all.Go(func() {
				if _, _, err := h.bring(ImportOptions{}, items...); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		c.quiet()
		c.round()
		c.hours(1)
		c.collect()
		c.quiet()
		for _, h := range c.hosts {
			for _, i := range items {
				h.wants(string(i.Key), string(i.Value), GetOptions{Level: quorum.All})
			}
			for k, err := range h.ns.Kept(c.ctx, dbadapter.KeptConflict, 0) {
				t.Errorf("a conflict: %q, %v", k.Record.Key, err)
			}
		}
	})
}
