package peer_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// A clock was wrong for one write: after it is set right, writes are refused with
// the remedy until the namespace is restamped, and then reach the other node.
func TestClockComesBack(t *testing.T) {
	onBothStores(t, func(t *testing.T, a, b peer.Config) {
		right, wrong := newTestClock(), newTestClock()
		a.Clock, b.Clock = right.now, wrong.now
		var log bytes.Buffer // written by one sync at a time
		b.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		na, nb, sa, sb := pair(t, a, b, peer.Policy{})
		put(t, sa, "shared", "a")
		sync1(t, sb, na.ID())
		const year = 365 * 24 * time.Hour
		wrong.turn(year)
		put(t, sb, "x", "one write with a wrong clock")
		must(t, errOf(sb.Delete(t.Context(), []byte("shared"))))
		wrong.turn(-year)
		if _, err := sb.Put(t.Context(), []byte("y"), nil); !errors.Is(err, peer.ErrFutureVersion) || !strings.Contains(err.Error(), "syncd restamp") {
			t.Errorf("a write with the right clock: %v", err)
		}
		if r, err := sb.Sync(t.Context(), na.ID(), peer.SyncOptions{}); !errors.Is(err, peer.ErrRejected) || r.Rejected != 2 {
			t.Errorf("%+v, %v", r, err)
		}
		if got := sb.Info().Declined; len(got) != 1 || got[0] != (status.DeclinedBy{Peer: na.ID(), Records: 2}) || len(sa.Info().Declined) != 0 {
			t.Errorf("declined by %+v; the other says %+v", got, sa.Info().Declined)
		}
		if ahead := sb.Info().Ahead; ahead < year-time.Hour {
			t.Errorf("ahead by %s", ahead)
		}
		keys := ""
		for r, err := range sb.Future(t.Context()) {
			if err != nil || !r.Own {
				t.Error(r, err)
			}
			keys += string(r.Key) + " "
		}
		if keys != "shared x " {
			t.Errorf("from the future: %s", keys)
		}
		if _, err := sb.Sync(t.Context(), na.ID(), peer.SyncOptions{}); !errors.Is(err, peer.ErrRejected) || !strings.Contains(err.Error(), "is this machine's clock right?") {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "a peer declines what this node wrote"); n != 1 {
			t.Errorf("logged %d times: %s", n, log.String())
		}
		if n, err := sb.Restamp(t.Context()); n != 2 || err != nil || sb.Info().Ahead != 0 {
			t.Fatalf("%d restamped, %v; ahead by %s", n, err, sb.Info().Ahead)
		}
		if err := sb.Audit(t.Context()); err != nil {
			t.Error(err)
		}
		put(t, sb, "y", "written with the right clock")
		sync1(t, sb, na.ID())
		equal(t, sa, sb)
		if b.Dir != "" {
			shut(t, nb)
			b.ListenAddrs = nil
			nb = open(t, b)
			if sb, err := nb.Namespace("notes"); err != nil || sb.Info().Ahead != 0 {
				t.Errorf("opened again: %+v, %v", sb.Info(), err)
			} else {
				put(t, sb, "z", "still right")
			}
		}
		right.turn(year)
		put(t, sa, "shared", "a year later")
	})
}

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
