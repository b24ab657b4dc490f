package peer

import (
	"context"
	"fmt"

	"github.com/syncd-io/syncd/peer/status"
)

// WhereBody asks the hosts of a key's value what they have of it. It is nil where the value is in its record,
// or the key holds nothing. ErrTooFew: the record cannot be read at quorum.
func (ns *Namespace) WhereBody(ctx context.Context, key []byte) (body *status.Body, err error) {
	err = ns.within(ctx, fmt.Sprintf("hosts of the value of %q in", clip(key)), func(ctx context.Context) (err error) {
		if ns.core.Rule() != nil && ns.core.Bodied() {
			body, err = ns.hosts.WhereBody(ctx, key)
		}
		return ns.orRemoved(err)
	})
	return body, err
}

// Reindex hands the records that this node was told as a host of large values to the hosts of their keys, by
// placement writer, and counts them. It is for when the hosts of keys have lost their data for good: call it at each node then.
// What the key's hosts hold that is later stays. ErrInvalid: the placement is another one. ErrUnconfirmed: no
// majority has taken some record; the others are handed on.
func (ns *Namespace) Reindex(ctx context.Context) (handed int, err error) {
	err = ns.within(ctx, "reindex", func(ctx context.Context) (err error) {
		if ns.core.Rule() == nil {
			return fmt.Errorf("%w: it is not cut into shards", ErrInvalid)
		}
		handed, err = ns.hosts.Reindex(ctx)
		return ns.orRemoved(err)
	})
	return handed, err
}
