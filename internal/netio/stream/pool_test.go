package stream

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

const perPeer = 8 // streams

// closing is a stream that tells when it was closed.
type closing struct {
	network.Stream
	closed atomic.Bool
}

func (c *closing) Close() error                     { c.closed.Store(true); return nil }
func (c *closing) SetWriteDeadline(time.Time) error { return nil }

// TestStreamsKept: of the streams that many questions at once have opened to a peer, as
// many are kept as it answers at once, all but two for a second only.
func TestStreamsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewPool(t.Context(), perPeer, nil)
		id := peer.ID("peer")
		var all []*closing
		var made []*pooled
		keepTo := func(id peer.ID) bool {
			c := &closing{}
			all = append(all, c)
			made = append(made, &pooled{talk: New(c, Options{})})
			return r.keep(id, made[len(made)-1])
		}
		keep := func() bool { return keepTo(id) }
		ofPeer := func() int { r.mu.Lock(); defer r.mu.Unlock(); return len(r.idle[id]) }
		inAll := func() int { r.mu.Lock(); defer r.mu.Unlock(); return r.kept }
		for i := range perPeer {
			if !keep() {
				t.Fatalf("stream %d was not kept", i)
			}
		}
		if keep() {
			t.Fatalf("%d streams were kept", perPeer+1)
		}
		for i := range 16 { // peers that are asked much leave room for the others
			kept := 0
			for range perPeer {
				if keepTo(peer.ID(fmt.Sprint("other ", i))) {
					kept++
				}
			}
			if kept < poolKept {
				t.Fatalf("of peer %d, %d are kept", i+1, kept)
			}
		}
		if inAll() > poolKeptInAll {
			t.Fatalf("%d are kept in all", inAll())
		}
		open := func() (n int) {
			synctest.Wait()
			for _, c := range all[:perPeer] {
				if !c.closed.Load() {
					n++
				}
			}
			return n
		}
		if n := open(); n != perPeer || ofPeer() != n {
			t.Fatalf("%d are open at once, %d counted", n, ofPeer())
		}
		time.Sleep(poolSpare + time.Millisecond)
		if n := open(); n != poolKept || ofPeer() != n {
			t.Fatalf("%d are open after %s, %d counted", n, poolSpare, ofPeer())
		}
		if s := r.take(id); s != made[poolKept-1] {
			t.Fatal("the one that was used last is not taken")
		}
		time.Sleep(poolIdle)
		if n := open(); n != 1 || inAll() != 0 { // the one that was taken
			t.Fatalf("%d are open after %s, %d counted", n, poolIdle, inAll())
		}
	})
}
