package peer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/syncd-io/syncd/internal/node"
)

// Item is one record to import.
type Item struct {
	Key, Value []byte
	// Time, if not zero, is the time of the record's version, in whole
	// milliseconds, which then has no writer: two sites that import the same
	// dated items hold the same records.
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
	Items int64
	// Written counts the records that are new or have changed.
	Written int64
	// Unchanged counts the items whose content was there already.
	Unchanged int64
	// Stale counts the items dated before the record that is there.
	Stale int64
	// Expired counts the items that had expired when they were to be written. They
	// are left out.
	Expired int64
	// Full counts the items that share their index with dbadapter.MaxBucket other
	// records, and are left out.
	Full int64
	// Late counts the dated items that were written as of now, as the members would not take their dates: they
	// may have collected deleted records up to there, or this node's role, given anew, does not cover them. In
	// a namespace of shards such items go one by one. They are among the others.
	Late int64
}

// Import writes items in batches, each durable in one transaction. An error
// from the sequence, or from an item, ends it: all items before are kept, and
// the result says how many those were.
//
// An undated item whose value is there already makes no new version, unless the namespace is cut into shards and
// not all hosts are heard that may hold a later one: then it is written, as by Put. A dated
// one is the record with that date, and wins or loses by it as if it had been
// written then.
//
// In a namespace that is cut into shards the items go to the hosts of their shards, some
// thousands at a time, and count once one host of each, or as many as Acks says, holds them
// durably. An item that is written where its host did not answer in time may be there all the
// same: the error is ErrUnconfirmed then, and the import may be repeated from there on, or as
// a whole: what is there already is unchanged, or written once more. Items behind the one that failed may be written,
// too, and the counts beside Items leave out some of those before it.
func (ns *Namespace) Import(ctx context.Context, items iter.Seq2[Item, error], options ...PutOption) (ImportResult, error) {
	if err := ns.enter("import"); err != nil {
		return ImportResult{}, err
	}
	defer ns.gate.leave()
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	d := draft(nil, nil, nil, options)
	if ns.core.Rule() != nil && d.TTL == 0 {
		result, err := ns.importShards(ctx, items, ack(&d))
		if err != nil {
			err = fmt.Errorf("import into %s: %w", ns.Name(), err)
		}
		return result, err
	}
	err := unsharded(&d)
	if d.TTL != 0 {
		err = fmt.Errorf("%w: an item says itself when it expires", ErrInvalid)
	}
	if err != nil {
		return ImportResult{}, fmt.Errorf("import into %s: %w", ns.Name(), err)
	}
	sh := ns.shards()[0]
	im := sh.set.Import()
	failed := sh.collect(ctx, im, items)
	if failed != nil {
		return ImportResult(im.Result), fmt.Errorf("import into %s: %w", ns.Name(), failed)
	}
	return ImportResult(im.Result), nil
}

// collect cuts the items into batches, which are committed meanwhile.
func (sh *shard) collect(ctx context.Context, im *node.Import, items iter.Seq2[Item, error]) (failed error) {
	l := sh.beginImport(ctx, im)
	defer func() { failed = errors.Join(failed, l.end()) }()
	number := int64(0)
	for item, err := range items {
		own := node.Item(item)
		if err == nil {
			err = im.Check(&own)
		}
		if err == nil {
			err = ctx.Err()
		}
		number++
		if err != nil {
			return fmt.Errorf("item %d: %w", number, err)
		}
		for !im.Add(&own) {
			if !l.take(im.Cut()) {
				return nil // end says why
			}
		}
	}
	return nil
}
