package peer

import (
	"context"
	"errors"
	"testing"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	libp2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// hastyHost opens streams whose peer closes before this side does.
type hastyHost struct{ host.Host }

func (h hastyHost) NewStream(ctx context.Context, id libp2ppeer.ID, protocols ...protocol.ID) (network.Stream, error) {
	s, err := h.Host.NewStream(ctx, id, protocols...)
	return hastyStream{s}, err
}

type hastyStream struct{ network.Stream }

// CloseWrite fails as a stream of QUIC does, whose peer has all that was written, has
// answered and closed.
func (s hastyStream) CloseWrite() error {
	return errors.Join(s.Stream.CloseWrite(), errors.New("close called for canceled stream"))
}

// An inviter that answers and closes before the joining node closes its own side has
// redeemed the ticket: the node has joined.
func TestJoinOfAHastyInviter(t *testing.T) {
	inviter := openForTest(t, Config{})
	at := createForTest(t, inviter, Policy{})
	h, err := NewHost(Config{})
	must(t, err)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	joinForTest(t, at, openForTest(t, Config{Host: hastyHost{h}}), RoleWrite)
}
