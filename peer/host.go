package peer

import (
	"context"
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/host"

	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/netio"
)

// NewHost makes the host that Open would make, for callers that share it with other protocols or see
// its connections. It reads Identity, ListenAddrs, AnnounceAddrs, Relays, RelayService, Dialed and
// Limits of the Config, and opens no file. Without an Identity it draws a fresh one. The caller sets
// the host as the Host of the Config that it gives to Open, and closes it after the node.
func NewHost(cfg Config) (host.Host, error) {
	h, err := newHost(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a host: %w", err)
	}
	return h, nil
}

func newHost(cfg Config) (_ host.Host, err error) {
	if cfg.Identity == nil {
		if cfg.Identity, err = folder.FreshKey(""); err != nil {
			return nil, err
		}
	}
	if _, err := newIdentity(cfg.Identity); err != nil {
		return nil, err
	}
	h, err := netio.NewHost(netio.Config{
		Identity: cfg.Identity, ListenAddrs: cfg.ListenAddrs, AnnounceAddrs: cfg.AnnounceAddrs, Relays: cfg.Relays,
		RelayService: cfg.RelayService, Dialed: cfg.Dialed, Limits: cfg.Limits.withDefaults().network(),
	})
	return h, invalid(err)
}

// invalid makes the error of a malformed address ErrInvalid.
func invalid(err error) error {
	if errors.Is(err, netio.ErrAddr) {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return err
}

// openHost makes the node's own host, or takes the caller's, and lets it serve the node.
func (n *Node) openHost(_ context.Context, cfg *Config) error {
	h := cfg.Host
	if h == nil {
		own := *cfg
		own.Identity = n.self.key
		var err error
		if h, err = newHost(own); err != nil {
			return err
		}
		n.onClose(h.Close)
	} else if len(cfg.AnnounceAddrs) > 0 {
		return fmt.Errorf("%w: both a Host and AnnounceAddrs are given: give AnnounceAddrs to NewHost", ErrInvalid)
	}
	serving, err := netio.Serve(n.ctx, h, netio.Node{Members: netMembers{n}, Book: n.book, DialTimeout: n.limits.DialTimeout, Log: n.log})
	if err != nil {
		return err
	}
	n.host = serving
	n.onClose(func() error { serving.Leave(); return nil })
	return nil
}

// openAddrs follows where the node can be dialled, and looks for neighbours if it is to.
func (n *Node) openAddrs(_ context.Context, cfg *Config) error {
	if err := n.host.FollowAddrs(n.moved); err != nil || !cfg.MDNS {
		return err
	}
	return n.host.FindNeighbours()
}

// netMembers is what the network asks the node.
type netMembers struct{ node *Node }

func (m netMembers) IsMember(id ID) bool { return m.node.isMember(id) }

func (m netMembers) Share(a, b ID) bool { return m.node.share(a, b) }
