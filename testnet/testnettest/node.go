package testnettest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	libp2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/peer"
)

// node is a place in the net: the state that outlives the node running there.
type node struct {
	index  int
	dir    string
	key    crypto.PrivKey
	id     peer.ID
	log    *slog.Logger
	listen []string     // where it listened last, or anyPort
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

func (n *Net) newNode(i int) (*node, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return nil, err
	}
	id, err := libp2ppeer.IDFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	p := &node{index: i, dir: filepath.Join(n.dir, fmt.Sprintf("node%d", i)), key: key, id: id, log: n.logs.of(i), listen: anyPort}
	if n.config.memory {
		p.memory = memdb.New(memdb.Options{})
	}
	return p, os.MkdirAll(p.dir, 0o700)
}

// now is the wall clock of the place.
func (p *node) now() time.Time { return time.Now().Add(time.Duration(p.skew.Load())) }

func (p *node) storeDir() string { return filepath.Join(p.dir, "store") }

// start opens the node, at the address where it was before if that is free.
func (n *Net) start(ctx context.Context, p *node) (err error) {
	r := new(running)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("node %d: %w", p.index, err), r.close(ctx))
		}
	}()
	if r.host, err = n.host(p); err != nil {
		return err
	}
	var store dbadapter.Store = p.memory
	if p.memory == nil {
		if store, err = ondisk.Open(p.storeDir(), ondisk.Pebble, ondisk.Options{Logger: p.log}); err != nil {
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
		SyncInterval: n.config.interval,
		Limits:       n.config.limits,
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
	cfg := peer.Config{Identity: p.key, ListenAddrs: p.listen, Limits: n.config.limits, Dialed: n.links.dialed(p.index)}
	h, err := peer.NewHost(cfg)
	if err != nil { // another program has taken the port; Start tells the other nodes
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

// kill ends the node as the death of its process would, as far as a process that lives
// on can do so. It takes a copy of the store's files while the store is open, and puts it
// in their place: the next start recovers them, and takes back the lock. Unlike a dead
// process, the node completes the commits that are in progress. As with a dead process,
// unsynced writes are not lost; package powercut tests power cuts.
func (p *node) kill(ctx context.Context, r *running) error {
	err := errors.Join(r.host.Close(), r.node.Close(ctx))
	if r.store == nil {
		return err
	}
	image := p.storeDir() + ".image"
	err = errors.Join(err, copyFiles(p.storeDir(), image), r.store.Close())
	if err == nil {
		err = os.RemoveAll(p.storeDir())
	}
	if err == nil {
		err = os.Rename(image, p.storeDir())
	}
	return err
}

// copyTries bounds how often a copy is begun again because files appeared or went.
const copyTries = 10

// copyFiles copies a folder of plain files that a store has open, without writers.
// A compaction, which the store begins on its own, makes new files: if the list of
// files changes during the copy, copyFiles begins again.
func copyFiles(from, to string) error {
	for range copyTries {
		before, err := listing(from)
		if err != nil {
			return err
		}
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		failed := os.CopyFS(to, os.DirFS(from))
		after, err := listing(from)
		if err != nil {
			return errors.Join(err, failed)
		}
		if maps.Equal(before, after) {
			return failed
		}
	}
	return fmt.Errorf("the files in %s do not come to rest", from)
}

func listing(dir string) (map[string]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, err
		}
		sizes[e.Name()] = info.Size()
	}
	return sizes, nil
}
