// Package grouped is what the stores have in common: an open namespace, as its callers see
// it, and the deciding of a group, which is the batches of one or more callers that become
// one transaction.
package grouped

import (
	"context"
	"fmt"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
	"github.com/syncd-io/syncd/dbadapter/internal/lifecycle"
	"github.com/syncd-io/syncd/dbadapter/internal/queue"
)

// Own is a store's own type of a namespace, which embeds Namespace.
type Own interface {
	comparable
	// Encode gives each item its stored form, and returns what the batch weighs.
	Encode([]commit.Item) int
	// Put commits another head. It runs between two commits.
	Put(layout.Meta) error
	// Release is called once, when the namespace is closed.
	Release()
}

// Namespace is an open namespace, of which N is the store's own type.
type Namespace[N Own] struct {
	Self    N
	ID      dbadapter.NamespaceID
	Number  uint32
	Hasher  dbadapter.Hasher
	Observe func([]dbadapter.Change)
	Life    lifecycle.Namespace
	// Submit commits a batch, together with those of others. Do runs a function between
	// two commits.
	Submit func(context.Context, *queue.Request[*Batch[N]]) error
	Do     func(ctx context.Context, run func() error) error

	// Meta is used between two commits only: as of the last transaction that is prepared.
	Meta layout.Meta

	Lock  *sync.Mutex // the store's; guards what follows
	Shown layout.Meta // as of the last commit that snapshots see
}

// Batch is what one caller of Apply writes.
type Batch[N Own] struct {
	Namespace N
	Items     []commit.Item
	Outcomes  []dbadapter.Outcome
}

// Apply implements dbadapter.Namespace.
func (n *Namespace[N]) Apply(ctx context.Context, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := n.Life.Enter("apply", n.ID); err != nil {
		return nil, err
	}
	defer n.Life.Leave()
	items, err := commit.Prepare(writes)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	b := &Batch[N]{Namespace: n.Self, Items: items}
	size := n.Self.Encode(items)
	err = n.Submit(ctx, &queue.Request[*Batch[N]]{Batch: b, Writes: len(items), Size: size})
	return b.Outcomes, err
}

// Latest implements dbadapter.Namespace.
func (n *Namespace[N]) Latest() dbadapter.Timestamp { return n.last().Latest }

// Log implements dbadapter.Namespace.
func (n *Namespace[N]) Log() dbadapter.LogID { return n.last().Log }

// Ceiling implements dbadapter.Namespace.
func (n *Namespace[N]) Ceiling() dbadapter.Timestamp {
	m := n.last()
	return m.Ceiling()
}

// KeptCount implements dbadapter.Namespace.
func (n *Namespace[N]) KeptCount(why dbadapter.Why) int {
	m := n.last()
	return m.Kept.Of(why)
}

// last is the head as of the last commit.
func (n *Namespace[N]) last() layout.Meta {
	n.Lock.Lock()
	defer n.Lock.Unlock()
	return n.Shown
}

// Raise implements dbadapter.Namespace.
func (n *Namespace[N]) Raise(ctx context.Context, to dbadapter.Timestamp) error {
	return n.Set(ctx, "raise the ceiling", func(m *layout.Meta) { m.Raise(to) })
}

// Lower implements dbadapter.Namespace.
func (n *Namespace[N]) Lower(ctx context.Context, to dbadapter.Timestamp) error {
	return n.Set(ctx, "lower the ceiling", func(m *layout.Meta) { m.Lower(to) })
}

// Set changes the namespace's head between two commits.
func (n *Namespace[N]) Set(ctx context.Context, what string, set func(*layout.Meta)) error {
	return n.Between(ctx, what, func() error {
		m := n.Meta
		if set(&m); m == n.Meta {
			return nil
		}
		return n.Self.Put(m)
	})
}

// Between is a call that runs a function between two commits.
func (n *Namespace[N]) Between(ctx context.Context, what string, run func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := n.Life.Enter(what, n.ID); err != nil {
		return err
	}
	defer n.Life.Leave()
	if err := n.Do(ctx, run); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Close implements dbadapter.Namespace.
func (n *Namespace[N]) Close() error {
	if n.Life.Close() {
		n.Self.Release()
	}
	return nil
}
