package peer_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// leftConn is a connection that the peer leaves unseen: reads wait, and the next
// write learns of it.
type leftConn struct {
	net.Conn
	left *atomic.Bool
}

func (c *leftConn) Write(b []byte) (int, error) {
	if c.left.Load() {
		return 0, errors.Join(syscall.ECONNRESET, c.Close())
	}
	return c.Conn.Write(b)
}

// leaving wraps and counts the connections that a node dials. At leave, the peer
// leaves all of those so far.
type leaving struct {
	dials atomic.Int32
	left  atomic.Pointer[atomic.Bool]
}

func (l *leaving) dialed(_ context.Context, _ peer.ID, conn net.Conn) (net.Conn, error) {
	l.dials.Add(1)
	return &leftConn{conn, l.left.Load()}, nil
}

func (l *leaving) leave() { l.left.Swap(new(atomic.Bool)).Store(true) }

// A sync that finds the peer gone from a connection of before dials once more: a
// peer that has restarted without a word is not unreachable.
func TestSyncOverLeftConnection(t *testing.T) {
	var l leaving
	l.left.Store(new(atomic.Bool))
	na, _, sa, sb := pair(t, peer.Config{ListenAddrs: onlyTCP}, peer.Config{Dialed: l.dialed}, peer.Policy{})
	put(t, sa, "k", "v")
	sync1(t, sb, na.ID())
	put(t, sb, "l", "w")
	before := l.dials.Load()
	l.leave()
	sync1(t, sb, na.ID())
	equal(t, sa, sb)
	if n := l.dials.Load() - before; n != 1 {
		t.Errorf("%d dials", n)
	}
	// So does a question.
	before = l.dials.Load()
	l.leave()
	if whys, err := sb.Why(t.Context(), []byte("k"), na.ID()); err != nil || whys[0].Standing != status.StandingSame {
		t.Errorf("a question over a connection that the peer has left: %+v, %v", whys, err)
	}
	if n := l.dials.Load() - before; n != 1 {
		t.Errorf("%d dials for a question", n)
	}
	// A peer that is gone altogether is unreachable.
	shut(t, na)
	if _, err := sb.Sync(t.Context(), na.ID(), peer.SyncOptions{}); !errors.Is(err, peer.ErrUnreachable) {
		t.Errorf("a sync with a peer that is gone: %v", err)
	}
}
