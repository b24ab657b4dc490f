package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/syncd-io/syncd/peer/offline"
	"github.com/syncd-io/syncd/peer/status"
)

// openRepaired opens a node, and repairs the store first where it cannot be opened for damage,
// or where damage was met.
func openRepaired(ctx context.Context, cfg Config) (*Node, error) {
	log := cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	n, err := open(ctx, cfg)
	switch {
	case err == nil && !n.isDamaged(), err != nil && !errors.Is(err, ErrRepairable):
		return n, err
	case err == nil:
		for _, ns := range n.Namespaces() {
			_, _ = ns.Verify(ctx) // where all is whole that ends the damage, else the repair does
		}
		if !n.isDamaged() {
			return n, nil
		}
		if err := n.Close(ctx); err != nil {
			return nil, err
		}
		log.Error("the store is damaged: a new one takes its place, with what can still be read")
	default:
		log.Error("the store is damaged, and does not open: a new one takes its place, with what can still be read", logError(err))
	}
	done, err := offline.Repair(ctx, cfg.Dir, log)
	if err != nil {
		return nil, fmt.Errorf("open the node: %w", err)
	}
	log.Warn("the damaged files are kept: remove them when nothing is missing", slog.String("dir", done.Kept))
	if done.Why != nil {
		log.Error("nothing could be carried over from the damaged store", logError(done.Why))
	}
	if len(done.Strange) > 0 {
		log.Error("sets of records of which no folder is here stay with the damaged files", slog.Any("sets", done.Strange))
	}
	for _, ns := range done.Namespaces {
		log.Error("a namespace lacks records since its store was damaged: members give back what they hold, and what this node alone has written is lost",
			slog.String("ns", ns.Name), slog.Int64("records", ns.Lost.Records), slog.Any("shards", ns.Lost.Shards))
	}
	return open(ctx, cfg)
}

// isDamaged reports whether damage of the store is known that a repair ends.
func (n *Node) isDamaged() bool {
	if n.Damage() != nil || slices.ContainsFunc(n.Unserved(), func(u status.Unserved) bool { return u.Why == "" }) {
		return true
	}
	return slices.ContainsFunc(n.Namespaces(), func(ns *Namespace) bool { return n.damage.Of(ns.id) != nil })
}

// Lost is what damage to the store has cost. It stays until AcceptLoss, since nothing tells
// whether members gave all back. nil: nothing, or it was accepted.
func (ns *Namespace) Lost() *status.Lost { return ns.core.Lost().Status() }

// AcceptLoss ends what is said of a loss.
func (ns *Namespace) AcceptLoss() error {
	return ns.within(context.Background(), "accept what is lost of", func(context.Context) error { return ns.core.AcceptLoss() })
}
