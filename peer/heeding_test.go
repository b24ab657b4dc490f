package peer

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/syncd-io/syncd/internal/node"
)

// syncs is how many syncs a node has ended or put off.
func (c *locatedCluster) syncs(i int) (n int) {
	for _, result := range []string{"ok", "denied", "unreachable", "busy", "canceled", "error", "unproved", "lists_differ"} {
		n += c.counted(i, "syncd_syncs_total", result)
	}
	return n
}

// Reads that come at one moment at a node which has not heard of a layout share the syncs of the list, and
// are sure.
func TestReadsShareTheSyncOfTheList(t *testing.T) {
	t.Parallel()
	c, x, keys := newOutdated(t)
	before := c.syncs(x)
	const readers = 64
	errs := make([]error, readers)
	var running sync.WaitGroup
	for i := range readers {
		running.Go(func() {
			got, err := c.spaces[x].Get(t.Context(), []byte(keys[i%len(keys)]))
			if errs[i] = err; err == nil && string(got.Value) != "by all hosts" {
				errs[i] = fmt.Errorf("it reads %q", got.Value)
			}
		})
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if n := c.syncs(x) - before; n > readers/4 {
		t.Errorf("%d reads have begun %d syncs of the list", readers, n)
	} else {
		t.Logf("%d syncs for %d reads", n, readers)
	}
}

// The hosts of a read are those of the list when it began: where another one has come meanwhile, an answer
// of a host that has the same one is of another list.
func TestAnswerIsOfTheListThatTheReadBeganBy(t *testing.T) {
	t.Parallel()
	c, x, _ := newStaleCluster(t)
	ns := c.spaces[x]
	key := []byte(c.leaving(x, 0))
	remote := ns.core.Remote(key)
	if _, err := ns.sync(t.Context(), nil, c.nodes[0].ID(), SyncOptions{}); err != nil && !errors.Is(err, ErrRejected) {
		t.Fatal(err)
	}
	for _, began := range []*node.Remote{remote, ns.core.Remote(key)} {
		answer, err := ns.readOf(t.Context(), began, c.nodes[0].ID())
		c.must(err)
		if answer.OtherList != (began == remote) {
			t.Errorf("%+v", answer)
		}
	}
}
