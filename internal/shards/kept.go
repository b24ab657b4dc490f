package shards

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// What members keep in their kept logs, they say without the values.

// answerKept answers with a page of what this node keeps, without the values.
func answerKept(ctx context.Context, ns *node.Namespace, q *wire.AskKept) (*wire.KeptAnswer, error) {
	a, size := &wire.KeptAnswer{}, 0
	var buffer []byte
	for k, err := range ns.Kept(ctx, whyOf(q), q.After) {
		if err != nil {
			return nil, err
		}
		r := k.Record
		r.Value, r.Signature, r.Signer, r.Replaces = nil, nil, 0, nil
		e := wire.KeptEntry{Seq: k.Seq, At: uint64(max(0, k.At.UnixMilli())), Size: uint64(ns.Size(&k.Record)), Record: r, By: k.By}
		buffer = wire.AppendKept(buffer[:0], &e)
		if size += len(buffer); len(a.Entries) == wire.BatchRecords || size > wire.BatchBytes {
			a.More = true
			break
		}
		a.Entries = append(a.Entries, e)
	}
	return a, nil
}

func whyOf(q *wire.AskKept) dbadapter.Why {
	if q.Aside {
		return dbadapter.KeptSetAside
	}
	return dbadapter.KeptConflict
}

// KeptAt asks a member for a page of what it keeps, behind an entry: the member's own word. A member that denies
// may not know yet that this node is one.
func (s *Shards) KeptAt(ctx context.Context, id node.ID, why dbadapter.Why, after uint64) (page []status.KeptAt, more bool, err error) {
	q := &wire.AskKept{Aside: why == dbadapter.KeptSetAside, After: after}
	var reply *wire.Reply
	read := func() error {
		ask, m, _, err := s.Net.Ask(ctx, id, q)
		if err == nil {
			reply, err = s.NS.Answered(id, ask, m)
		}
		return err
	}
	if err = read(); errors.Is(err, node.ErrDenied) {
		if err = s.Net.SyncLists(ctx, id); err == nil {
			err = read()
		}
	}
	if err != nil {
		return nil, false, err
	}
	said := reply.Answer.(*wire.KeptAnswer)
	for i := range said.Entries {
		e := &said.Entries[i]
		if e.Seq <= after || e.Seq > node.MaxKept || e.Size > dbadapter.MaxValue {
			return nil, false, fmt.Errorf("%w: an entry that was not asked for, or out of order", reconcile.ErrProtocol)
		}
		after = e.Seq
		const most = 253_402_300_799_000 // the year 9999, the last that JSON can write
		page = append(page, status.KeptAt{Kept: dbadapter.Kept{Seq: e.Seq, Why: why, Record: e.Record.Clone(), By: e.By, At: time.UnixMilli(int64(min(e.At, most))).UTC()}, Size: int64(e.Size)})
	}
	return page, said.More, nil
}
