package peer

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/internal/netio/stream"
	"github.com/syncd-io/syncd/internal/syncing"
)

// closing is a stream that tells when it was closed.
type closing struct {
	network.Stream
	closed atomic.Bool
}

func (c *closing) Close() error                     { c.closed.Store(true); return nil }
func (c *closing) SetWriteDeadline(time.Time) error { return nil }

// TestRouteStreamsKept: of the streams that many questions at once have opened to a peer, as
// many are kept as it answers at once, all but two for a second only.
func TestRouteStreamsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r routing
		id := ID("peer")
		var all []*closing
		var made []*routeStream
		keepTo := func(id ID) bool {
			c := &closing{}
			all = append(all, c)
			made = append(made, &routeStream{talk: stream.New(c, stream.Options{Buffer: routeBuffer})})
			return r.keep(t.Context(), id, made[len(made)-1])
		}
		keep := func() bool { return keepTo(id) }
		ofPeer := func() int { r.mu.Lock(); defer r.mu.Unlock(); return len(r.idle[id]) }
		inAll := func() int { r.mu.Lock(); defer r.mu.Unlock(); return r.kept }
		for i := range syncing.MaxRouted {
			if !keep() {
				t.Fatalf("stream %d was not kept", i)
			}
		}
		if keep() {
			t.Fatalf("%d streams were kept", syncing.MaxRouted+1)
		}
		for i := range 16 { // peers that are asked much leave room for the others
			kept := 0
			for range syncing.MaxRouted {
				if keepTo(ID(fmt.Sprint("other ", i))) {
					kept++
				}
			}
			if kept < routeKept {
				t.Fatalf("of peer %d, %d are kept", i+1, kept)
			}
		}
		if inAll() > routeKeptInAll {
			t.Fatalf("%d are kept in all", inAll())
		}
		open := func() (n int) {
			synctest.Wait()
			for _, c := range all[:syncing.MaxRouted] {
				if !c.closed.Load() {
					n++
				}
			}
			return n
		}
		if n := open(); n != syncing.MaxRouted || ofPeer() != n {
			t.Fatalf("%d are open at once, %d counted", n, ofPeer())
		}
		time.Sleep(routeSpare + time.Millisecond)
		if n := open(); n != routeKept || ofPeer() != n {
			t.Fatalf("%d are open after %s, %d counted", n, routeSpare, ofPeer())
		}
		if s := r.take(id); s != made[routeKept-1] {
			t.Fatal("the one that was used last is not taken")
		}
		time.Sleep(routeIdle)
		if n := open(); n != 1 || inAll() != 0 { // the one that was taken
			t.Fatalf("%d are open after %s, %d counted", n, routeIdle, inAll())
		}
	})
}
