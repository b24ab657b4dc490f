// Package pair opens two nodes in this process that share a namespace: each
// with a Badger store of its own on disk, connected by libp2p over loopback.
// demo and bench work on such pairs.
package pair

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
)

// Pair is two members of one namespace. Node 2 begins the syncs.
type Pair struct {
	Node [2]*peer.Node
	NS   [2]*peer.Namespace
	// Dir holds a folder for each node.
	Dir  string
	log  *slog.Logger
	keep bool // Dir outlives the pair
}

// closeTime bounds the closing of a node.
const closeTime = 10 * time.Second

// name is the namespace's.
const name = "pair"

// Open starts the nodes in a fresh temporary folder.
func Open(ctx context.Context, policy peer.Policy, log *slog.Logger) (*Pair, error) {
	dir, err := os.MkdirTemp("", "syncd-pair-")
	if err != nil {
		return nil, err
	}
	return (&Pair{Dir: dir, log: log}).start(ctx, policy)
}

// OpenIn starts the nodes in a folder that is kept: those that are there, or new ones,
// which then share the namespace.
func OpenIn(ctx context.Context, dir string, policy peer.Policy, log *slog.Logger) (*Pair, error) {
	return (&Pair{Dir: dir, log: log, keep: true}).start(ctx, policy)
}

func (p *Pair) start(ctx context.Context, policy peer.Policy) (*Pair, error) {
	if err := p.open(ctx, policy); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Pair) open(ctx context.Context, policy peer.Policy) error {
	for i := range p.Node {
		n, err := peer.Open(ctx, peer.Config{
			Dir: filepath.Join(p.Dir, fmt.Sprint(i+1)), Logger: p.log.With("node", i+1),
			ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"},
		})
		if err != nil {
			return fmt.Errorf("open node %d: %w", i+1, err)
		}
		p.Node[i] = n
	}
	if len(p.Node[1].Namespaces()) > 0 {
		return p.meet(ctx)
	}
	ns, err := p.Node[0].CreateNamespace(ctx, name, policy)
	if err != nil {
		return fmt.Errorf("make the namespace: %w", err)
	}
	p.NS[0] = ns
	ticket, err := ns.Invite(ctx, peer.InviteOptions{Role: peer.RoleWrite})
	if err != nil {
		return fmt.Errorf("invite node 2: %w", err)
	}
	if p.NS[1], err = p.Node[1].Join(ctx, ticket); err != nil {
		return fmt.Errorf("join node 2: %w", err)
	}
	return nil
}

// meet connects nodes that share the namespace.
func (p *Pair) meet(ctx context.Context) (err error) {
	for i, n := range p.Node {
		if p.NS[i], err = n.Namespace(name); err != nil {
			return fmt.Errorf("node %d: %w", i+1, err)
		}
	}
	if _, err := p.Node[1].Connect(ctx, p.Node[0].Addrs()[0]); err != nil {
		return fmt.Errorf("connect the nodes: %w", err)
	}
	return nil
}

// Stop ends the nodes in order, so that Start can open them again.
func (p *Pair) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	var errs []error
	for i, n := range p.Node {
		if n != nil {
			errs = append(errs, n.Close(ctx))
		}
		p.Node[i], p.NS[i] = nil, nil
	}
	return errors.Join(errs...)
}

// Start opens nodes that were stopped.
func (p *Pair) Start(ctx context.Context) error { return p.open(ctx, peer.Policy{}) }

// Sync makes both sides equal, begun by node 2.
func (p *Pair) Sync(ctx context.Context, o peer.SyncOptions) (reconcile.Report, error) {
	return p.NS[1].Sync(ctx, p.Node[0].ID(), o)
}

// Close ends the nodes and removes their folder, unless it is kept.
func (p *Pair) Close() error {
	err := p.Stop()
	if p.keep {
		return err
	}
	return errors.Join(err, os.RemoveAll(p.Dir))
}

// Source makes keys and values: random bytes that follow from a seed.
type Source struct {
	random    *rand.ChaCha8
	valueSize int
}

// Bounds of a value's size, in bytes: below MinValue two random values might
// be the same.
const (
	MinValue = 8
	MaxValue = dbadapter.MaxValue
)

// NewSource makes a source of values of a size between MinValue and MaxValue.
func NewSource(seed uint64, valueSize int) *Source {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return &Source{rand.NewChaCha8(key), valueSize}
}

// Rand draws numbers from the source.
func (s *Source) Rand() *rand.Rand { return rand.New(s.random) }

// Value is a fresh value.
func (s *Source) Value() []byte {
	b := make([]byte, s.valueSize)
	_, _ = s.random.Read(b) // never fails
	return b
}

// Key names a record of a kind.
func Key(kind string, i int) []byte { return fmt.Appendf(nil, "%s/%08d", kind, i) }

// Items yields one item with a fresh value for each key; each, if not nil, is
// told of every item.
func (s *Source) Items(keys iter.Seq[[]byte], each func(n int64)) iter.Seq2[peer.Item, error] {
	return func(yield func(peer.Item, error) bool) {
		for key := range keys {
			if each != nil {
				each(1)
			}
			if !yield(peer.Item{Key: key, Value: s.Value()}, nil) {
				return
			}
		}
	}
}

// Keys yields the keys of a kind from a number up to below another.
func Keys(kind string, from, to int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := from; i < to; i++ {
			if !yield(Key(kind, i)) {
				return
			}
		}
	}
}
