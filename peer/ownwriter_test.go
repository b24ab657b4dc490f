package peer

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// takesEntries has a host answer a node all but questions to hold records that are no entries, until it serves again.
func (c *writerCluster) takesEntries(host int, asker *Namespace) (serve func()) {
	n := c.nodes[host]
	c.hears(n, func(_ ID, ask *wire.Ask) bool {
		q, ok := ask.Question.(*wire.AskHold)
		return !ok || asker.core.Rule().Directory(placement.Shard(q.Shard))
	})
	asker.node.routing.close()
	return func() {
		c.serves(n)
		asker.node.routing.close()
	}
}

// By placement writer a host that has the entry of a write need not have the record: the node reads what it has written, and once the host that has the
// record is cut off, no condition holds on what that replaced, also when its author would have ended by the entry.
func TestEntryIsNoRecord(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	key, asker, hosts, first := c.onTwo()
	serve := c.takesEntries(hosts[0], asker)
	_, err := asker.PutIf(t.Context(), []byte(key), []byte("second"), first.Version, Acks(1))
	c.must(err)
	serve()
	c.nearest(asker, hosts[0], hosts[1])
	if got, err := asker.Get(t.Context(), []byte(key)); err != nil || string(got.Value) != "second" {
		t.Errorf("it reads %q, %v", got.Value, err)
	}
	n := c.nodes[hosts[1]]
	n.host.SetStreamHandler(routeProtocol, func(s network.Stream) { _ = s.Reset() })
	asker.node.routing.close()
	for range 14 { // beyond node.ComingFor, while the other host is current
		if third, err := asker.PutIf(t.Context(), []byte(key), []byte("third"), first.Version, Acks(1)); err == nil || errors.Is(err, ErrUnconfirmed) {
			t.Fatalf("on the version that was replaced: %v, %v", third, err)
		}
		c.pass(300 * time.Millisecond)
	}
}

// Puts of one key at one moment at one node are all written.
func TestPutsOfOneKeyByWriter(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	key, asker, _, _ := c.onTwo()
	var running sync.WaitGroup
	for i := range 16 {
		running.Go(func() {
			for n := range 10 {
				if _, err := asker.Put(t.Context(), []byte(key), fmt.Append(nil, i, n)); err != nil {
					t.Errorf("put %d of call %d: %v", n, i, err)
				}
			}
		})
	}
	running.Wait()
}

// What a node remembers of its own, and no host holds any more since it was deleted and collected, does not keep a key from being
// written on the condition that it holds nothing.
func TestConditionBesideACollectedOwnWrite(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	c.follow()
	ns, key := c.spaces[1], []byte("gone")
	own := &dbadapter.Record{Key: key, Version: dbadapter.Version{Clock: dbadapter.TimestampAt(time.Now().Add(-time.Minute)), Writer: 7, Incarnation: 7}}
	ns.core.Note(ns.core.RemoteIn(key, ns.core.OwnShard(key)), own, nil, ns.steady()-time.Minute)
	if _, err := ns.PutIf(t.Context(), key, []byte("value"), dbadapter.Version{}); err != nil {
		t.Error(err)
	}
}
