package node

import (
	"bytes"
	"context"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A scan of a shard that others hold: pages, each of which a host answers from what it holds
// then, and what is between two of which is the last key alone.

// Shard is a shard by its number, as Remote is that of a key: to ask for its records.
func (ns *Namespace) Shard(number placement.Shard) *Remote { return ns.remote(number, nil) }

// Page is some records of a shard, by key.
type Page struct {
	// Answer is what the host says of itself. Its record is not nil if the page is one.
	Answer  route.Answer
	Records []dbadapter.Record
	// More: further ones follow behind the last one.
	More bool
}

// AskScan asks a host for a page of up to so many bytes.
func (r *Remote) AskScan(remote ID, prefix, after []byte, most int) (*wire.Ask, error) {
	return r.ask(remote, &wire.AskScan{Shard: uint32(r.shard), Most: uint32(min(most, wire.BatchBytes)), Prefix: prefix, After: after})
}

// Page is what a message of the peer answers to AskScan. Each record is examined as one that
// comes in a sync, and must be one that was asked for.
func (r *Remote) Page(remote ID, ask *wire.Ask, m wire.Message) (*Page, error) {
	reply, err := r.reply(remote, ask, m)
	if err != nil {
		return nil, err
	}
	said, asked := reply.Answer.(*wire.ScanAnswer), ask.Question.(*wire.AskScan)
	p := &Page{Answer: route.Answer{Host: said.Elsewhere == nil, Settled: said.Settled, Current: said.Settled, Layout: layoutOf(said.Elsewhere)}, More: said.More}
	if !said.Settled {
		return p, nil
	}
	last, size := asked.After, 0
	var buffer []byte
	for i := range said.Records {
		buffer = wire.AppendPushed(buffer[:0], &said.Records[i])
		if size += len(buffer); i > 0 && size > int(asked.Most) {
			return nil, fmt.Errorf("%w: a page of more than was asked for", reconcile.ErrProtocol)
		}
		record := said.Records[i].Clone()
		if bytes.Compare(record.Key, last) <= 0 || !bytes.HasPrefix(record.Key, asked.Prefix) || !r.ns.placedIn(record.Key, r.shard) {
			return nil, fmt.Errorf("%w: a page with a record that was not asked for, or out of order", reconcile.ErrProtocol)
		}
		if err := r.check(remote, &record, record.Key); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDeclined, err)
		}
		last = record.Key
		p.Records = append(p.Records, record)
	}
	p.Answer.Record = &dbadapter.Record{} // of one version: pages are not compared
	return p, nil
}

// scan answers with a page of what is held, if this node is a host that is settled, and was
// found equal with another one since it took up the shard or was started.
func (r *Routed) scan(ctx context.Context, q *wire.AskScan) (*wire.ScanAnswer, error) {
	shard := placement.Shard(q.Shard)
	away, set := r.ns.elsewhere(shard), r.ns.held(shard)
	if away != nil || set == nil || !set.Prove() {
		return &wire.ScanAnswer{Elsewhere: away}, nil
	}
	snap, err := set.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	a := &wire.ScanAnswer{Settled: true}
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
	if away := r.ns.elsewhere(shard); away != nil || !set.Proved() { // since
		return &wire.ScanAnswer{Elsewhere: away}, nil
	}
	return a, nil
}
