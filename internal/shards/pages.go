package shards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// pageWait is how long a host is waited for that is asked for a page, before the next one is.
const pageWait = 20 * time.Second

// forever is a time that does not come.
const forever = time.Duration(1 << 62)

// page reads the records of a shard behind a key at its nearest whole old host. ErrTooFew: none answers.
func (s *Shards) page(ctx context.Context, shard placement.Shard, prefix, after []byte, most int) (*node.Page, error) {
	return anew(ctx, s, shard, s.Net.Now()+Patience, func(a *node.Asker) (*node.Page, error) {
		page, _, err := atWhole(ctx, s, a, "", a.AskScan(prefix, after, most), nil, func(id node.ID, asked *wire.Ask, m wire.Message) (*node.Page, bool, bool, error) {
			p, err := a.Page(id, asked, m)
			if err != nil {
				return nil, false, false, err
			}
			return p, p.Apart, p.Whole, nil
		})
		return page, err
	})
}

// errExpired: a host has not made the cursor.
var errExpired = errors.New("it has not made the cursor")

// changes reads what a watch of a shard has to say next, at one whole old host, which may be this node:
// first, if that is one and answers, or else the nearest that has made the cursor. It says which host has
// answered. The cursor has expired where no host that answers has made it.
func (s *Shards) changes(ctx context.Context, shard placement.Shard, first node.ID, cursor changes.Cursor, prefix []byte) (*node.WatchPage, node.ID, error) {
	var host node.ID
	page, err := anew(ctx, s, shard, s.Net.Now()+Patience, func(a *node.Asker) (*node.WatchPage, error) {
		q := a.AskChanges(cursor, prefix)
		read := func(p *node.WatchPage, err error) (*node.WatchPage, bool, bool, error) {
			if err == nil && p.Expired {
				err = errExpired
			}
			if err != nil {
				return nil, false, false, err
			}
			return p, p.Apart, p.Whole, nil
		}
		here := func() (*node.WatchPage, bool, bool, error) { return read(a.ChangesHere(ctx, q)) }
		page, id, err := atWhole(ctx, s, a, first, q, here, func(id node.ID, asked *wire.Ask, m wire.Message) (*node.WatchPage, bool, bool, error) {
			return read(a.Changes(id, asked, m))
		})
		if host = id; err == errExpired { //nolint:errorlint // it is atWhole's own
			return &node.WatchPage{Whole: true, Expired: true}, nil
		}
		return page, err
	})
	return page, host, err
}

// atWhole asks the old hosts one after the other, first first, until a whole one answers; this node by
// here, unless that is nil. The error is errExpired where one has said so, which is named, and none has
// answered otherwise.
func atWhole[T any](ctx context.Context, s *Shards, a *node.Asker, first node.ID, q wire.Question, here func() (t T, apart, whole bool, err error), read func(node.ID, *wire.Ask, wire.Message) (t T, apart, whole bool, err error)) (T, node.ID, error) {
	hosts := s.nearest(a.Row().Old)
	if i := slices.Index(hosts, first); i > 0 {
		hosts = slices.Insert(slices.Delete(hosts, i, i+1), 0, first)
	}
	why, expired := map[node.ID]error{}, node.ID("")
	for _, id := range hosts {
		self := id == s.NS.Self()
		if self && here == nil {
			continue // its caller reads it here
		}
		t, err := within(ctx, s, s.Net.Now()+pageWait, func(ctx context.Context) (t T, err error) {
			apart, whole := false, false
			if self {
				if t, apart, whole, err = here(); !a.Current() {
					err = errRow
				}
			} else {
				t, _, err = ask(ctx, s, a, id, s.Net.Now()+pageWait, q, func(asked *wire.Ask, m wire.Message) (t T, apart bool, err error) {
					t, apart, whole, err = read(id, asked, m)
					return t, apart, err
				})
			}
			if err == nil && (apart || !whole) {
				err = errNotWhole
			}
			return t, err
		})
		switch {
		case err == nil, errors.Is(err, errRow):
			return t, id, err
		case ctx.Err() != nil:
			return t, "", context.Cause(ctx)
		}
		if why[id] = err; errors.Is(err, errExpired) && expired == "" {
			expired = id
		}
	}
	var none T
	if expired != "" {
		return none, expired, errExpired
	}
	return none, "", &TooFew{Answers: fmt.Sprintf("0/%d", len(a.Row().Old)), text: fmt.Sprintf("no whole host of shard %d answered", a.Shard()), why: why}
}
