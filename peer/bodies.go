package peer

import (
	"context"
	"fmt"

	"github.com/syncd-io/syncd/peer/status"
)

// WhereBody asks the hosts of a key's value what they have of it. It is nil where the value is in its record,
// or the key holds nothing. ErrTooFew: the record cannot be read at quorum.
func (ns *Namespace) WhereBody(ctx context.Context, key []byte) (*status.Body, error) {
	if err := ns.enter("ask for a value's hosts"); err != nil {
		return nil, err
	}
	defer ns.gate.leave()
	if ns.core.Rule() == nil || !ns.core.Bodied() {
		return nil, nil
	}
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	body, err := ns.hosts.WhereBody(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("hosts of the value of %q in %s: %w", clip(key), ns.Name(), ns.orRemoved(err))
	}
	return body, nil
}

// Reindex hands the records that this node was told as a host of large values to the hosts of their keys, by
// placement writer, and counts them. It is for when the hosts of keys have lost their data for good: call it at each node then.
// What the key's hosts hold that is later stays. ErrInvalid: the placement is another one. ErrUnconfirmed: no
// majority has taken some record; the others are handed on.
func (ns *Namespace) Reindex(ctx context.Context) (handed int, err error) {
	if err := ns.enter("reindex"); err != nil {
		return handed, err
	}
	defer ns.gate.leave()
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	if ns.core.Rule() == nil {
		return handed, fmt.Errorf("reindex %s: %w: it is not cut into shards", ns.Name(), ErrInvalid)
	}
	if handed, err = ns.hosts.Reindex(ctx); err != nil {
		return handed, fmt.Errorf("reindex %s: %w", ns.Name(), ns.orRemoved(err))
	}
	return handed, nil
}
