package peer

import (
	"context"
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
)

func (ns *Namespace) importShards(ctx context.Context, items iter.Seq2[Item, error], l Level) (r ImportResult, err error) {
	for item, err := range items {
		if err != nil {
			return r, err
		}
		if _, err := ns.write(ctx, []node.Draft{{Record: dbadapter.Record{Key: item.Key, Value: item.Value, Deleted: item.Deleted}}}, l); err != nil {
			return r, err
		}
		r.Items++
		r.Written++
	}
	return r, nil
}
