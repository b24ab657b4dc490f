package peer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"

	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/netio"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/signature"
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

// identity is the key that signs the node's connections and records, and the
// node's id.
type identity struct {
	key    crypto.PrivKey
	id     ID
	signer *signature.Signer
}

func newIdentity(key crypto.PrivKey) (identity, error) {
	id, raw, err := folder.CheckKey(key)
	if err != nil {
		return identity{}, err
	}
	return identity{key, id, signature.NewSigner(raw)}, nil
}

// sign makes the signature of a record or of a statement.
func (i *identity) sign(message []byte) ([]byte, error) { return i.signer.Sign(message), nil }

func (i *identity) signAll(messages [][]byte) [][]byte { return i.signer.SignAll(messages) }

// ownKey reads the key in the node's folder, and makes one where no node has been yet.
func (n *Node) ownKey(ctx context.Context) (crypto.PrivKey, error) {
	key, err := folder.LoadKey(n.dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	ids, dropped, failed := folder.List(n.dir)
	sets, err := n.setsInStore(ctx)
	if err = errors.Join(failed, err); err != nil {
		return nil, err
	}
	if len(ids)+len(dropped)+len(sets) > 0 {
		return nil, durable.Damaged(filepath.Join(n.dir, folder.KeyFile), "is missing, and the data directory has namespaces: %s", folder.OtherKey)
	}
	return folder.FreshKey(n.dir)
}

// owner is the node's id as its files have it.
func (n *Node) owner() string { return n.self.id.String() }

// expected is whose files the node loads; empty: any node's, which it makes its own.
func (n *Node) expected() string {
	if n.renewed {
		return ""
	}
	return n.owner()
}

// checkID refuses the ids of keys that are not Ed25519. Only ids of such keys hold
// them, and records are verified by the writer's id.
func checkID(id ID) error {
	_, err := node.ID(id).PublicKey()
	return err
}
