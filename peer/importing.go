package peer

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/syncd-io/syncd/internal/importing"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/shards"
)

// Item is one record to import.
type Item struct {
	Key, Value []byte
	// Time, if not zero, is the time of the record's version, in whole milliseconds.
	// That version has no writer, so two sites that import the same dated items hold
	// the same records.
	Time time.Time
	// Deleted imports a tombstone; Value is empty.
	Deleted bool
	// Expires, if not zero, is when the record expires, in whole milliseconds: at
	// most MaxTTL from now.
	Expires time.Time
}

// ImportResult counts what became of imported items.
type ImportResult struct {
	// Items counts the items that were dealt with, in order: an import that
	// failed goes on at item Items + 1.
	Items int64 `json:"records" doc:"read"`
	// Written counts the records that are new or have changed.
	Written int64 `json:"written" doc:"new or changed"`
	// Unchanged counts the items whose content was there already.
	Unchanged int64 `json:"unchanged" doc:"there already with the same value"`
	// Stale counts the items dated before the record that is there.
	Stale int64 `json:"stale" doc:"dated before the record that is there"`
	// Expired counts the items that had expired when they were to be written. They
	// are left out.
	Expired int64 `json:"expired" doc:"had expired, and were left out"`
	// Full counts the items that share their index with dbadapter.MaxBucket other
	// records, and are left out.
	Full int64 `json:"full" doc:"left out, since 64 other records share their index"`
	// Refused counts the items whose dates are not taken. Up to them members may have collected deleted
	// records, or this node's role, given anew, does not cover them. Nothing of them was written; OnRefused
	// tells which they are.
	Refused int64 `json:"refused" doc:"whose dates are not taken: up to them deleted records may have been collected, or this node's role, given anew, does not cover them; nothing of them was written"`
	// AsNew counts the items with such dates that were written as of now, as AsNew asks. They are among the others.
	AsNew int64 `json:"as_new" doc:"with such dates, written as of now; among the others"`
	// From is the date from which on items are taken, where some were refused.
	From time.Time `json:"-"`
	// Earliest is the earliest date that was taken, of this import and of those that it goes on with; zero: none.
	Earliest time.Time `json:"-"`
}

// ImportOptions say more of an import.
type ImportOptions struct {
	// Ack, of a namespace that is cut into shards, is how many hosts must have an item; nil: a quorum.
	Ack *Level
	// AsNew has an item whose date is not taken written as of now, as by Put. It does not where its key holds
	// something that is later than the date.
	AsNew bool
	// OnRefused receives each item whose date is not taken, one after the other, before the import returns.
	// The item is counted from 0. It is valid during the call.
	OnRefused func(at int64, item Item)
	// Continue says that an import is a further part of one that has taken dates from this one on
	// (ImportResult.Earliest). The node then takes later dates, too, for as long as the parts follow one
	// another within seconds.
	Continue time.Time
}

// Import writes items in batches, each durable in one transaction. An error from the
// sequence, or from an item, ends it. All items before are kept, and the result says
// how many those were.
//
// An undated item whose value is there already makes no new version. A dated
// one is the record with that date, and wins or loses by it as if it had been
// written then. It is refused where the node has said that it holds all up to its date: deleted
// records may have been collected. While the import runs, the node says so of no date that was taken.
//
// In a namespace that is cut into shards the items go to all hosts of their shards, some
// thousands at a time. An item counts once a quorum of hosts, or as many as Ack says, have it
// durably. One that is dated is refused if no host takes its date; where some do it is written. The
// error is ErrUnconfirmed where hosts may have the item that have not said so. The import may be
// repeated from there on, or as a whole: what is there already is unchanged. Items behind the one that
// failed may be written, too.
func (ns *Namespace) Import(ctx context.Context, items iter.Seq2[Item, error]) (ImportResult, error) {
	return ns.ImportWith(ctx, items, ImportOptions{})
}

// ImportWith is Import with options.
func (ns *Namespace) ImportWith(ctx context.Context, items iter.Seq2[Item, error], o ImportOptions) (result ImportResult, err error) {
	err = ns.within(ctx, "import into", func(ctx context.Context) error {
		done, err := ns.imported(ctx, items, &o)
		result = ImportResult(done)
		return err
	})
	return result, err
}

func (ns *Namespace) imported(ctx context.Context, items iter.Seq2[Item, error], o *ImportOptions) (result node.ImportResult, err error) {
	own := func(yield func(node.Item, error) bool) {
		for item, err := range items {
			if !yield(node.Item(item), err) {
				return
			}
		}
	}
	var refused func(at int64, item *node.Item)
	if o.OnRefused != nil {
		refused = func(at int64, item *node.Item) { o.OnRefused(at, Item(*item)) }
	}
	switch {
	case ns.hosts != nil:
		return ns.hosts.Import(ctx, own, shards.ImportOptions{Level: level((*quorum.Level)(o.Ack)), AsNew: o.AsNew, Earliest: o.Continue, Refused: refused})
	case o.Ack != nil:
		return result, fmt.Errorf("%w: an import into a namespace without shards waits for no other members: import, then wait (syncd wait)", ErrInvalid)
	}
	set := ns.shards()[0].set
	im := set.Import()
	defer im.End()
	im.AsNew, im.Result.Earliest, im.Refused = o.AsNew, o.Continue, refused
	err = importing.Run(ctx, set, im, own)
	return im.Result, err
}
