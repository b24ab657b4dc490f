package shards

import (
	"context"
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// What hosts of bodies were told: the record that points to each of them.

// Reindex hands the records that this node was told to the hosts of their keys, and counts those of which a
// majority of these has each now, or something later. It is for when the hosts of keys have lost their data, and
// hosts of bodies have not. The error is that of the first record that was not confirmed; the others are handed
// on all the same.
func (s *Shards) Reindex(ctx context.Context) (handed int, failed error) {
	if !s.NS.Bodied() {
		return 0, fmt.Errorf("%w: only by placement writer do hosts know records of other shards", node.ErrInvalid)
	}
	for _, set := range s.NS.Sets() {
		for hint, err := range ScanSet(ctx, set, &ScanOptions{Prefix: bodies.HintPrefix(set.Shard())}) {
			if err != nil {
				return handed, err
			}
			record, err := wire.ParsePushed(hint.Value)
			if err != nil {
				continue // its writer sent no record: nothing is known of it
			}
			if err = s.pass(ctx, &record); err == nil {
				handed++
			} else if failed == nil {
				failed = fmt.Errorf("%q: %w", record.Key, err)
			}
		}
	}
	return handed, errors.Join(failed, context.Cause(ctx))
}

// pass gives a record to all hosts of its key, as it is, and waits for a majority that has it, or something later.
func (s *Shards) pass(ctx context.Context, r *dbadapter.Record) error {
	ctx, cut, over := s.begin(ctx)
	defer cut()
	home := s.NS.Home(r.Key)
	_, err := anew(ctx, s, home, over, func(a *Asker) (Written, error) {
		w := &write{Shards: s, drafts: make([]node.Draft, 1), over: over, shard: home, seen: make([][]*dbadapter.Record, 1), records: []dbadapter.Record{*r}, passed: true}
		return w.offer(ctx, a)
	})
	return err
}

// WhereBody says where the value of a key is by its record, read at quorum, and asks each host of that. It
// is nil where the value is in the record, or there is none.
func (s *Shards) WhereBody(ctx context.Context, key []byte) (*status.Body, error) {
	ctx, cut, over := s.begin(ctx)
	defer cut()
	found, err := s.get(ctx, key, GetOptions{Level: quorum.Quorum}, over)
	if err != nil || found.Record == nil || found.Record.Deleted {
		return nil, err
	}
	_, p, err := bodies.Read(found.Record.Value)
	if err != nil || p == nil {
		return nil, err
	}
	hosts, err := anew(ctx, s, p.Shard, over, func(a *Asker) (hosts []status.BodyAt, err error) {
		for _, id := range a.Row().Hosts() {
			at := status.BodyAt{Peer: status.ID(id)}
			held := func(key []byte) *dbadapter.Record {
				answer, failed := askSoon(ctx, s, a, id, min(over, s.Net.Now()+bodyWait), a.record(key, false))
				if failed != nil {
					at.Err = failed
				}
				return answer.Record
			}
			if body := held(p.Key(key)); at.Err == nil {
				at.Has = body != nil && !body.Deleted && p.Proves(body.Value)
				if s.NS.Home(key) == p.Shard { // it needs no hint
					record := held(key)
					at.Told = record != nil && record.Version == found.Record.Version
				} else if hint := held(bodies.HintKey(p.Shard, key)); hint != nil && !hint.Deleted {
					record, failed := wire.ParsePushed(hint.Value)
					at.Told = failed == nil && record.Version == found.Record.Version
				}
			}
			if !a.Current() {
				return nil, errRow
			}
			hosts = append(hosts, at)
		}
		return hosts, nil
	})
	if err != nil {
		return nil, err
	}
	return &status.Body{Shard: int(p.Shard), Size: int(p.Size), Sent: p.Sent.Time().UTC(), Hosts: hosts}, nil
}
