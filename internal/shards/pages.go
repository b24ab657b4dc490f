package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// pageWait is how long a host is waited for that is asked for a page, before the next one is.
const pageWait = 20 * time.Second

// page reads the records of a shard behind a key at its nearest whole old host. ErrTooFew: none answers.
func (s *Shards) page(ctx context.Context, shard placement.Shard, prefix, after []byte, most int) (page, error) {
	return anew(ctx, s, shard, s.Net.Now()+Patience, func(a *Asker) (page, error) {
		page, _, err := atWhole(ctx, s, a, "", a.scan(prefix, after, most))
		return page, err
	})
}

// errExpired: a host has not made the cursor.
var errExpired = errors.New("it has not made the cursor")

// changes reads what a watch of a shard has to say next, at one whole old host, which may be this node:
// first, if that is one and answers, or else the nearest that has made the cursor. It says which host has
// answered. errExpired: no host that answers has made the cursor.
func (s *Shards) changes(ctx context.Context, shard placement.Shard, first node.ID, cursor changes.Cursor, prefix []byte) (page *WatchPage, host node.ID, err error) {
	page, err = anew(ctx, s, shard, s.Net.Now()+Patience, func(a *Asker) (page *WatchPage, err error) {
		page, host, err = atWhole(ctx, s, a, first, a.changes(cursor, prefix))
		return page, err
	})
	return page, host, err
}

// atWhole asks the old hosts one after the other, first first, until a whole one answers. The error is errExpired
// where one has said so, which is named, and none has answered otherwise.
func atWhole[T any](ctx context.Context, s *Shards, a *Asker, first node.ID, q question[T]) (none T, host node.ID, err error) {
	hosts := s.nearest(a.Row().Old)
	if i := slices.Index(hosts, first); i > 0 {
		hosts = slices.Insert(slices.Delete(hosts, i, i+1), 0, first)
	}
	why, expired := map[node.ID]error{}, node.ID("")
	for _, id := range hosts {
		t, err := askSoon(ctx, s, a, id, s.Net.Now()+pageWait, q)
		switch {
		case err == nil, errors.Is(err, errRow):
			return t, id, err
		case ctx.Err() != nil:
			return none, "", context.Cause(ctx)
		}
		if why[id] = err; errors.Is(err, errExpired) && expired == "" {
			expired = id
		}
	}
	if expired != "" {
		return none, expired, errExpired
	}
	return none, "", tooFewOf(0, len(a.Row().Old), fmt.Sprintf("no whole host of shard %d answered", a.Shard()), why)
}

// A scan of a shard that others hold goes in pages. A host answers each from what
// it holds then, and all that is between two of them is the last key.

// scan asks a whole host for a page of up to so many bytes. Each record must be one that was asked for.
func (a *Asker) scan(prefix, after []byte, most int) question[page] {
	q := &wire.AskScan{ShardRow: a.at, Most: uint32(min(most, wire.BatchBytes)), Prefix: prefix, After: after}
	return question[page]{q, func(from node.ID, reply *wire.Reply) (p page, err error) {
		said := reply.Answer.(*wire.ScanAnswer)
		if !said.Whole {
			return page{}, errNotWhole
		}
		last, size := after, 0
		var buffer []byte
		for i := range said.Records {
			buffer = wire.AppendPushed(buffer[:0], &said.Records[i])
			if size += len(buffer); i > 0 && size > int(q.Most) {
				return page{}, fmt.Errorf("%w: a page of more than was asked for", reconcile.ErrProtocol)
			}
			key := said.Records[i].Key
			if bytes.Compare(key, last) <= 0 || !bytes.HasPrefix(key, prefix) || a.ns.Home(key) != a.Shard() {
				return page{}, fmt.Errorf("%w: a page with a record that was not asked for, or out of order", reconcile.ErrProtocol)
			}
			record, err := a.taken(from, &said.Records[i], key)
			if err != nil {
				return page{}, err
			}
			last = record.Key
			p.records = append(p.records, *record)
		}
		p.more = said.More && len(p.records) > 0
		return p, nil
	}}
}

// answerScan answers with a page of what is held, if this node is a whole host.
func answerScan(ctx context.Context, set *node.Set, q *wire.AskScan) (*wire.ScanAnswer, error) {
	if set.Recovers() {
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
	if set.Recovers() { // since
		return &wire.ScanAnswer{}, nil
	}
	return a, nil
}

// A watch of a shard that others hold: pages of what a host's own watch would tell. Nothing
// is kept at the host between two of them: the cursor says all.

// WatchPage is what a watch of a shard has to tell next.
type WatchPage struct {
	Told []changes.Event
	Next changes.Cursor
	More bool // at once
}

// changes asks a whole host for what a watch has to tell behind a cursor. errExpired: the cursor is none of the
// host's, or reaches too far back.
func (a *Asker) changes(cursor changes.Cursor, prefix []byte) question[*WatchPage] {
	q := &wire.AskChanges{ShardRow: a.at, Cursor: []byte(cursor), Prefix: prefix}
	return question[*WatchPage]{q, func(from node.ID, reply *wire.Reply) (*WatchPage, error) {
		switch said := reply.Answer.(*wire.ChangesAnswer); {
		case said.Expired && cursor == changes.FromStart:
			return nil, fmt.Errorf("%w: what is held is said to have expired", reconcile.ErrProtocol)
		case said.Expired:
			return nil, errExpired
		case !said.Whole:
			return nil, errNotWhole
		default:
			return a.told(from, cursor, prefix, said)
		}
	}}
}

// told reads a page of a watch behind a cursor.
func (a *Asker) told(from node.ID, at changes.Cursor, prefix []byte, said *wire.ChangesAnswer) (*WatchPage, error) {
	p := &WatchPage{Next: changes.Cursor(said.Next), More: said.More}
	if p.Next.Log() == 0 && p.Next != changes.FromStart {
		return nil, fmt.Errorf("%w: a page of a watch with no cursor", reconcile.ErrProtocol)
	}
	if log := at.Log(); log != 0 && p.Next.Log() != log {
		return nil, fmt.Errorf("%w: a page of a watch leads into another log", reconcile.ErrProtocol)
	}
	if said.More && p.Next == at {
		return nil, fmt.Errorf("%w: a page of a watch, behind which more follows, leads no further", reconcile.ErrProtocol)
	}
	if p.Next.Listing() && !at.Listing() {
		return nil, fmt.Errorf("%w: a page of a watch begins a listing that was not asked for", reconcile.ErrProtocol)
	}
	// Only a page with which a listing ends may say that it has ended.
	ends := at.Listing() && !p.Next.Listing()
	for i := range said.Changes {
		c := &said.Changes[i]
		t := changes.Event{Cursor: at, Coalesced: c.Coalesced, Kind: changes.Gone, Key: bytes.Clone(c.Key)}
		switch {
		case c.Record != nil:
			record, err := a.taken(from, c.Record, c.Record.Key)
			if err != nil {
				return nil, err
			}
			t.Record, t.Key, t.Kind = record, record.Key, changes.Put
			if record.Deleted {
				t.Kind = changes.Delete
			}
		case len(c.Key) == 0 && ends && i == len(said.Changes)-1:
			t.Kind = changes.At
		case len(c.Key) == 0:
			return nil, fmt.Errorf("%w: a page of a watch ends a listing where there is none", reconcile.ErrProtocol)
		}
		if t.Kind != changes.At && (!bytes.HasPrefix(t.Key, prefix) || a.ns.Home(t.Key) != a.Shard() || reserved(a.ns, t.Key)) {
			return nil, fmt.Errorf("%w: a page of a watch with a key that was not asked for", reconcile.ErrProtocol)
		}
		p.Told = append(p.Told, t)
	}
	if n := len(p.Told); ends && (n == 0 || p.Told[n-1].Kind != changes.At) {
		return nil, fmt.Errorf("%w: a page of a watch leads out of a listing without saying that it has ended", reconcile.ErrProtocol)
	}
	if n := len(p.Told); n > 0 {
		p.Told[n-1].Cursor = p.Next // of the others, what a watch would be told again is the page
	}
	return p, nil
}

// answerChanges answers with a page of a watch, if this node is a whole host.
func answerChanges(ctx context.Context, set *node.Set, q *wire.AskChanges) (*wire.ChangesAnswer, error) {
	if set.Recovers() {
		return &wire.ChangesAnswer{}, nil
	}
	w, err := set.Watched().Watcher(changes.Cursor(q.Cursor), q.Prefix)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", reconcile.ErrProtocol, err)
	}
	w.ListAll()
	listed := w.Listing()
	told, end, err := w.Next(ctx, nil)
	if errors.Is(err, changes.ErrCursorExpired) {
		return &wire.ChangesAnswer{Whole: true, Expired: true}, nil
	}
	if err != nil {
		return nil, err
	}
	a := &wire.ChangesAnswer{Whole: true, More: listed || w.Cursor().Seq() < end, Next: []byte(w.Cursor())}
	fillPage(a, told, changes.Cursor(q.Cursor))
	if set.Recovers() { // since
		return &wire.ChangesAnswer{}, nil
	}
	return a, nil
}

// fillPage takes into a page what is told behind the asked cursor, as much as a page holds.
func fillPage(a *wire.ChangesAnswer, told []changes.Event, asked changes.Cursor) {
	size := 0
	var buffer []byte
	for i := range told {
		c := wire.Change{Coalesced: told[i].Coalesced, Key: told[i].Key, Record: told[i].Record}
		if c.Record != nil {
			c.Key = nil
			buffer = wire.AppendPushed(buffer[:0], c.Record)
			size += len(buffer)
		}
		size += len(c.Key)
		// In the midst of a change of several keys, the cursor is that before the
		// change. A page that ends there may lead no further, so it is made larger.
		full := size > wire.BatchBytes && i > 0 && (told[i-1].Cursor != asked || size > wire.MaxFrame-frameRoom)
		if full || i == wire.BatchRecords {
			a.More, a.Next = true, []byte(told[i-1].Cursor)
			return
		}
		a.Changes = append(a.Changes, c)
	}
}

// frameRoom is what a page takes at most beside the keys and records.
const frameRoom = 1 << 15
