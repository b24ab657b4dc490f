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

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
)

// Pair is two members of one namespace. Node 2 begins the syncs.
type Pair struct {
	Node [2]*peer.Node
	NS   [2]*peer.Namespace
	dir  string // with a folder for each node
}

// closeTime bounds the closing of a node.
const closeTime = 10 * time.Second

// Open starts the nodes in a fresh temporary folder.
func Open(ctx context.Context, policy peer.Policy, log *slog.Logger) (*Pair, error) {
	dir, err := os.MkdirTemp("", "syncd-pair-")
	if err != nil {
		return nil, err
	}
	p := &Pair{dir: dir}
	if err := p.open(ctx, policy, log); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Pair) open(ctx context.Context, policy peer.Policy, log *slog.Logger) error {
	for i := range p.Node {
		n, err := peer.Open(ctx, peer.Config{
			Dir: filepath.Join(p.dir, fmt.Sprint(i+1)), Logger: log.With("node", i+1),
			ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"},
		})
		if err != nil {
			return fmt.Errorf("open node %d: %w", i+1, err)
		}
		p.Node[i] = n
	}
	ns, err := p.Node[0].CreateNamespace(ctx, "pair", policy)
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

// Sync makes both sides equal, begun by node 2.
func (p *Pair) Sync(ctx context.Context, o peer.SyncOptions) (reconcile.Report, error) {
	return p.NS[1].Sync(ctx, p.Node[0].ID(), o)
}

// Diverge changes some of the common records, and writes fresh ones of a kind: the first of them
// on node 1, the next on node 2, and so on.
func (p *Pair) Diverge(ctx context.Context, source *Source, common, changed int, kind string, fresh int) error {
	chosen := distinct(rand.New(source.random), common, changed)
	for side, ns := range p.NS {
		keys := func(yield func([]byte) bool) {
			for i := side; i < changed; i += len(p.NS) {
				if !yield(Key("common", chosen[i])) {
					return
				}
			}
			for i := side; i < fresh; i += len(p.NS) {
				if !yield(Key(kind, i)) {
					return
				}
			}
		}
		if _, err := ns.Import(ctx, source.Items(keys, nil)); err != nil {
			return fmt.Errorf("write on node %d: %w", side+1, err)
		}
	}
	return nil
}

// distinct draws n different numbers below size.
func distinct(r *rand.Rand, size, n int) []int {
	seen := make(map[int]bool, n)
	out := make([]int, 0, n)
	for len(out) < n {
		if i := r.IntN(size); !seen[i] {
			seen[i] = true
			out = append(out, i)
		}
	}
	return out
}

// Close ends the nodes and removes their folder.
func (p *Pair) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	var errs []error
	for _, n := range p.Node {
		if n != nil {
			errs = append(errs, n.Close(ctx))
		}
	}
	return errors.Join(append(errs, os.RemoveAll(p.dir))...)
}

// Source makes keys and values: random bytes that follow from a seed.
type Source struct {
	random    *rand.ChaCha8
	valueSize int
}

// minValue is the least size of a value, in bytes: two random values that are shorter might
// be the same.
const minValue = 8

// NewSource makes a source of values of a size that tells them apart.
func NewSource(seed uint64, valueSize int) (*Source, error) {
	if valueSize < minValue || valueSize > dbadapter.MaxValue {
		return nil, problem.Usage("--value-size %d: want %d to %d bytes", valueSize, minValue, dbadapter.MaxValue)
	}
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return &Source{rand.NewChaCha8(key), valueSize}, nil
}

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

// Keys yields the first n keys of a kind.
func Keys(kind string, n int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := range n {
			if !yield(Key(kind, i)) {
				return
			}
		}
	}
}
