package nodes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	libp2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/dbadapter/pebbledb"
	"github.com/syncd-io/syncd/peer"
)

// node is a place in the net: the state that outlives the node running there.
type node struct {
	index  int
	dir    string
	key    crypto.PrivKey
	id     peer.ID
	log    *slog.Logger
	listen []string     // where it listened last
	memory *memdb.Store // instead of files
	skew   atomic.Int64
	writer atomic.Uint64 // under which versions name it; 0 until it is a member

	// Nil while the node is down.
	running *running
	closed  []host.Host // that ran here before, for leaks
}

// running is a node that runs.
type running struct {
	host  host.Host
	store dbadapter.Store
	node  *peer.Node
}

func newNode(i int, cfg *Config) (*node, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return nil, err
	}
	id, err := libp2ppeer.IDFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	p := &node{index: i, dir: filepath.Join(cfg.Dir, fmt.Sprintf("node%d", i)), key: key, id: id, log: slog.New(slog.DiscardHandler)}
	if cfg.Logger != nil {
		p.log = cfg.Logger(i)
	}
	if cfg.Memory {
		p.memory = memdb.New(memdb.Options{})
	}
	return p, os.MkdirAll(p.dir, 0o700)
}

// now is the wall clock of the place.
func (p *node) now() time.Time { return time.Now().Add(time.Duration(p.skew.Load())) }

func (p *node) storeDir() string { return filepath.Join(p.dir, "store") }

// start opens the node, at the address where it was before if that is free.
func (n *Net) start(ctx context.Context, p *node) (err error) {
	n.links.raise(p.index)
	r := new(running)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start node %d: %w", p.index, err), r.close(ctx))
		}
	}()
	if r.host, err = n.host(p); err != nil {
		return err
	}
	r.host.Network().Notify(&network.NotifyBundle{
		DisconnectedF: func(network.Network, network.Conn) { n.parted.ring() },
	})
	var store dbadapter.Store = p.memory
	if p.memory == nil {
		if store, err = pebbledb.Open(p.storeDir(), pebbledb.Options{Logger: p.log}); err != nil {
			return err
		}
		r.store = store
	}
	if n.config.faulty != nil {
		store = n.config.faulty(p.index, store)
	}
	r.node, err = peer.Open(ctx, peer.Config{
		Dir:          p.dir,
		Store:        &recordedStore{Store: store, recorder: n.recorder, node: p.index, writer: &p.writer},
		Host:         r.host,
		Logger:       p.log,
		Clock:        p.now,
		SyncInterval: n.config.Interval,
		Limits:       n.config.Limits,
	})
	if err != nil {
		return err
	}
	p.running = r
	return nil
}

// anyPort is over TCP only: links break and hold TCP connections, and nodes that
// also listened over QUIC would sync across a partition.
var anyPort = []string{"/ip4/127.0.0.1/tcp/0"}

// host makes the node's host, whose dials go over the links.
func (n *Net) host(p *node) (host.Host, error) {
	cfg := peer.Config{Identity: p.key, ListenAddrs: p.listen, Limits: n.config.Limits, Dialed: n.links.dialed(p.index)}
	if p.listen == nil {
		cfg.ListenAddrs = anyPort
	}
	h, err := peer.NewHost(cfg)
	if err != nil && p.listen != nil {
		// Another program has taken the port; Start tells the other nodes.
		cfg.ListenAddrs = anyPort
		h, err = peer.NewHost(cfg)
	}
	if err != nil {
		return nil, err
	}
	p.listen = []string{h.Network().ListenAddresses()[0].String()}
	return h, nil
}

// close ends all parts of the node, in reverse order of their start.
func (r *running) close(ctx context.Context) (err error) {
	if r.node != nil {
		err = r.node.Close(ctx)
	}
	if r.host != nil {
		err = errors.Join(err, r.host.Close())
	}
	if r.store != nil {
		err = errors.Join(err, r.store.Close())
	}
	return err
}
