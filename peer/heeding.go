package peer

import (
	"context"
	"errors"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
)

// A host that disagrees with this node about the list of members cannot answer it, or not for sure. The
// lists are made equal then, and the host is asked once more.

// heedLeast is what that has at least, and the question that follows: the wait for a host of before that
// is gone may have used up all there was.
const heedLeast = time.Second

var errOtherList = errors.New("it has another list of members")

// heed makes this node's list of members equal with that of a host by which the two
// disagree: the host has another one, names another layout, an older one too, or does not know this node. It reports whether
// a sync of the lists ran to its end, so that the same question may be answered otherwise. That
// takes until over, at most, or heedLeast.
func (ns *Namespace) heed(ctx context.Context, over time.Duration, why map[ID]error, moved route.Layout, by node.ID) bool {
	ask := map[ID]bool{}
	if by != "" && ns.core.Outdated(moved) {
		ask[ID(by)] = true
	}
	for id, err := range why {
		if (errors.Is(err, ErrDenied) || errors.Is(err, errOtherList) || errors.Is(err, errNoHost)) && len(ask) < 2 {
			ask[id] = true
		}
	}
	over = max(over, ns.node.elapsed()+heedLeast)
	heard, left := false, len(ask)
	for id := range ask {
		err := ns.equalize(ctx, id, (over-ns.node.elapsed())/time.Duration(left)) // the first one may be busy
		left--
		// One side declines the table of a layout that counts no longer there; the lists are equal.
		heard = heard || err == nil || errors.Is(err, ErrRejected)
	}
	return heard
}

// equalize makes the list of members equal with that of a peer. Those that want it at one moment share a
// sync: while a list spreads each read may want one, and a peer is busy with few.
func (ns *Namespace) equalize(ctx context.Context, id ID, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	done := ns.equalizing.DoChan(string(id), func() (any, error) {
		ctx, cancel := context.WithTimeout(ns.ctx, within) // others may wait for it longer than this one
		defer cancel()
		return ns.sync(ctx, nil, id, SyncOptions{})
	})
	select {
	case of := <-done:
		return of.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
