package shards

import (
	"context"
	"errors"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/quorum"
)

// lookPauseMost is the longest pause between two looks at a host that lacks a version.
const lookPauseMost = 2 * time.Second

// errLacks: a host has answered, and does not hold what is waited for.
var errLacks = errors.New("it does not hold it yet")

// Await looks until a host of a key's shard holds a version of it, or a later one, or the context
// ends. A host that lacks it is given the record, which may be nil. lacks is told after each look in vain.
func (s *Shards) Await(ctx context.Context, id node.ID, key []byte, v dbadapter.Version, record *dbadapter.Record, lacks func(error)) error {
	for pause := pauseFirst; ; pause = min(2*pause, lookPauseMost) {
		held, err := s.give(ctx, id, key, v, record)
		if held {
			return nil
		}
		if err == nil {
			err = errLacks
		}
		if ctx.Err() == nil {
			lacks(err)
		}
		if failed := s.Net.Sleep(ctx, pause); failed != nil {
			return failed
		}
	}
}

// give looks whether a host holds a version, and gives it the record where it does not.
func (s *Shards) give(ctx context.Context, id node.ID, key []byte, v dbadapter.Version, record *dbadapter.Record) (bool, error) {
	a, err := NewAsker(s.NS, s.NS.Home(key))
	if err != nil {
		return false, err
	}
	over := s.Net.Now() + Patience
	answer, err := s.recordAt(ctx, a, id, key, true, over)
	if err != nil || answer.Version.Compare(v) >= 0 {
		return err == nil, err
	}
	if record == nil || record.Version.Compare(v) < 0 {
		return false, nil
	}
	h, _, err := s.hold(ctx, a, id, over, a.AskPass(*record))
	if err != nil || len(h.Outcomes) == 0 {
		return false, err
	}
	o := &h.Outcomes[0]
	return o.Held || o.Other != nil && o.Other.Version.Compare(v) >= 0, o.Declined
}

// recordAt asks one host for what it holds, or for its version alone.
func (s *Shards) recordAt(ctx context.Context, a *Asker, id node.ID, key []byte, head bool, over time.Duration) (HostAnswer, error) {
	r := &read{Shards: s, asker: a, row: a.Row(), key: key, GetOptions: GetOptions{Level: quorum.One}, over: over, look: over, box: s.Net.Mailbox(), of: map[node.ID]*asked{}}
	r.ask(ctx, id, head)
	for r.open > 0 {
		note := r.box.Take(ctx, over)
		if note == nil {
			return HostAnswer{}, errSilent
		}
		note()
	}
	if h := r.of[id]; h.answer != nil {
		return *h.answer, nil
	}
	return HostAnswer{}, r.of[id].err
}
