package node

import (
	"bytes"
	"context"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A scan of a shard that others hold goes in pages. A host answers each from what
// it holds then, and all that is between two of them is the last key.

// Page is some records of a shard, by key.
type Page struct {
	// Apart and Whole are as in HostAnswer. A page comes from a whole host alone.
	Apart, Whole bool
	Records      []dbadapter.Record
	// More: further ones follow behind the last one.
	More bool
}

// AskScan asks for a page of up to so many bytes.
func (a *Asker) AskScan(prefix, after []byte, most int) *wire.AskScan {
	return &wire.AskScan{ShardRow: a.at, Most: uint32(min(most, wire.BatchBytes)), Prefix: prefix, After: after}
}

// Page is what a message of the peer answers to AskScan. Each record is examined as one that
// comes in a sync, and must be one that was asked for.
func (a *Asker) Page(remote ID, ask *wire.Ask, m wire.Message) (*Page, error) {
	reply, err := a.reply(remote, ask, m)
	if err != nil {
		return nil, err
	}
	said, asked := reply.Answer.(*wire.ScanAnswer), ask.Question.(*wire.AskScan)
	p := &Page{Apart: said.Apart, Whole: said.Whole, More: said.More}
	last, size := asked.After, 0
	var buffer []byte
	for i := range said.Records {
		buffer = wire.AppendPushed(buffer[:0], &said.Records[i])
		if size += len(buffer); i > 0 && size > int(asked.Most) {
			return nil, fmt.Errorf("%w: a page of more than was asked for", reconcile.ErrProtocol)
		}
		record := said.Records[i].Clone()
		if bytes.Compare(record.Key, last) <= 0 || !bytes.HasPrefix(record.Key, asked.Prefix) || !a.ns.placedIn(record.Key, a.Shard()) {
			return nil, fmt.Errorf("%w: a page with a record that was not asked for, or out of order", reconcile.ErrProtocol)
		}
		if err := a.check(remote, &record, record.Key); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDeclined, err)
		}
		last = record.Key
		p.Records = append(p.Records, record)
	}
	return p, nil
}

// answerScan answers with a page of what is held, if this node is a whole host.
func (ns *Namespace) answerScan(ctx context.Context, q *wire.AskScan) (*wire.ScanAnswer, error) {
	set, err := ns.asHost(&q.ShardRow)
	if set == nil {
		return &wire.ScanAnswer{Apart: true}, err
	}
	if !set.settled() {
		return &wire.ScanAnswer{}, nil
	}
	snap, err := set.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	a := &wire.ScanAnswer{Whole: true}
	size := 0
	var buffer []byte
	for record, err := range snap.Scan(ctx, q.Prefix, q.After) {
		if err != nil {
			return nil, err
		}
		buffer = wire.AppendPushed(buffer[:0], &record.Record)
		size += len(buffer)
		if a.More = len(a.Records) == wire.BatchRecords || len(a.Records) > 0 && size > int(q.Most); a.More {
			break
		}
		a.Records = append(a.Records, record.Record.Clone())
	}
	switch {
	case !ns.goesBy(&q.ShardRow):
		return &wire.ScanAnswer{Apart: true}, nil
	case !set.settled(): // since
		return &wire.ScanAnswer{}, nil
	}
	return a, nil
}
