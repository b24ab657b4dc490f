package shards

import (
	"context"
	"errors"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Where the namespace has a locator, this node follows the sets of others at whole hosts of theirs, and reads
// at level one rest on what it has heard (package locator).

// followTick is how often it is looked what is due.
const followTick = 500 * time.Millisecond

// NewFollower returns one for the node of a namespace; left, if not nil, is told which host is not followed
// for a while.
func NewFollower(ns *node.Namespace, index *locator.Index, left func(host node.ID, err error)) *locator.Follower {
	return locator.NewFollower(index, locator.Net{Self: ns.Self(), Row: ns.Leads, Mark: ns.RowMark, Left: left})
}

// Follow follows sets until the context ends. failed is told errors of the copies' disk.
func (s *Shards) Follow(ctx context.Context, failed func(error)) {
	for s.Net.Sleep(ctx, followTick) == nil {
		turns := s.Locator.Turns(s.Net.Now())
		for _, t := range turns {
			s.Net.Go(ctx, func(ctx context.Context) { s.follow(ctx, t) })
		}
		if run := s.Locator.Index.Work(s.Locator.Fetching()); run != nil {
			s.Net.Go(ctx, func(context.Context) {
				if err := run(); err != nil {
					failed(err)
				}
			})
		}
	}
}

// follow asks one host until the turn is over.
func (s *Shards) follow(ctx context.Context, t *locator.Turn) {
	for m := t.Next(s.Net.Now()); m != nil; m = t.Next(s.Net.Now()) {
		answer, err := s.askFeed(ctx, t, m)
		t.Answered(answer, err, s.Net.Now())
	}
}

func (s *Shards) askFeed(ctx context.Context, t *locator.Turn, m locator.Message) (locator.Message, error) {
	a, err := s.NS.Asker(t.Set) // while its row is the same, lists are synced where the host's are not
	if err != nil {
		return nil, err
	}
	q, err := s.NS.AskFeed(m)
	if err != nil {
		return nil, err
	}
	answer, _, err := ask(ctx, s, a, t.Host, s.Net.Now()+Patience, q, func(asked *wire.Ask, reply wire.Message) (locator.Message, bool, error) {
		return a.Feed(t.Host, asked, reply)
	})
	if errors.Is(err, errRow) || ctx.Err() != nil {
		err = locator.ErrAgain
	}
	return answer, err
}

// Locate says where the value of a key is by what this node has heard: in a shard, which need not be that of
// the key's record; nowhere; or that hosts are to be asked. Reads at level one alone may rest on it.
func (s *Shards) Locate(key []byte) (locator.Where, placement.Shard) {
	if s.Locator == nil || bodies.Reserved(key) { // those are not followed
		return locator.Ask, 0
	}
	home, index := s.NS.IndexOf(key)
	return s.Locator.Locate(home, index, s.Net.Now())
}

// wrote has the locator know a record that this node has written, before it is acknowledged: what this node
// writes it reads, until another host is followed, which may lack it yet.
func (s *Shards) wrote(r *dbadapter.Record) {
	if s.Locator == nil {
		return
	}
	if home, e := s.NS.EntryOf(r); e.Code() != locator.Gone {
		s.Locator.Wrote(home, e)
	}
}
