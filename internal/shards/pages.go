package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// pageWait is how long a host is waited for that is asked for a page, before the next one is.
const pageWait = 20 * time.Second

// forever is a time that does not come.
const forever = time.Duration(1 << 62)

// page reads the records of a shard behind a key at its nearest whole old host. ErrTooFew: none answers.
func (s *Shards) page(ctx context.Context, shard placement.Shard, prefix, after []byte, most int) (*Page, error) {
	return anew(ctx, s, shard, s.Net.Now()+Patience, func(a *Asker) (*Page, error) {
		page, _, err := atWhole(ctx, s, a, "", a.AskScan(prefix, after, most), nil, func(id node.ID, asked *wire.Ask, m wire.Message) (*Page, bool, bool, error) {
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
func (s *Shards) changes(ctx context.Context, shard placement.Shard, first node.ID, cursor changes.Cursor, prefix []byte) (*WatchPage, node.ID, error) {
	var host node.ID
	page, err := anew(ctx, s, shard, s.Net.Now()+Patience, func(a *Asker) (*WatchPage, error) {
		q := a.AskChanges(cursor, prefix)
		read := func(p *WatchPage, err error) (*WatchPage, bool, bool, error) {
			if err == nil && p.Expired {
				err = errExpired
			}
			if err != nil {
				return nil, false, false, err
			}
			return p, p.Apart, p.Whole, nil
		}
		here := func() (*WatchPage, bool, bool, error) { return read(a.ChangesHere(ctx, q)) }
		page, id, err := atWhole(ctx, s, a, first, q, here, func(id node.ID, asked *wire.Ask, m wire.Message) (*WatchPage, bool, bool, error) {
			return read(a.Changes(id, asked, m))
		})
		if host = id; err == errExpired { //nolint:errorlint // it is atWhole's own
			return &WatchPage{Whole: true, Expired: true}, nil
		}
		return page, err
	})
	return page, host, err
}

// atWhole asks the old hosts one after the other, first first, until a whole one answers; this node by
// here, unless that is nil. The error is errExpired where one has said so, which is named, and none has
// answered otherwise.
func atWhole[T any](ctx context.Context, s *Shards, a *Asker, first node.ID, q wire.Question, here func() (t T, apart, whole bool, err error), read func(node.ID, *wire.Ask, wire.Message) (t T, apart, whole bool, err error)) (T, node.ID, error) {
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
				t, _, err = askOne(ctx, s, a, id, s.Net.Now()+pageWait, q, func(asked *wire.Ask, m wire.Message) (t T, apart bool, err error) {
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
	return none, "", tooFewOf(0, len(a.Row().Old), fmt.Sprintf("no whole host of shard %d answered", a.Shard()), why)
}

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
func (a *Asker) Page(remote node.ID, ask *wire.Ask, m wire.Message) (*Page, error) {
	reply, err := a.ns.Answered(remote, ask, m)
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
		if bytes.Compare(record.Key, last) <= 0 || !bytes.HasPrefix(record.Key, asked.Prefix) || a.ns.Home(record.Key) != a.Shard() {
			return nil, fmt.Errorf("%w: a page with a record that was not asked for, or out of order", reconcile.ErrProtocol)
		}
		if err := a.check(remote, &record, record.Key); err != nil {
			return nil, fmt.Errorf("%w: %w", node.ErrDeclined, err)
		}
		last = record.Key
		p.Records = append(p.Records, record)
	}
	return p, nil
}

// answerScan answers with a page of what is held, if this node is a whole host.
func answerScan(ctx context.Context, ns *node.Namespace, q *wire.AskScan) (*wire.ScanAnswer, error) {
	set, err := ns.AsHost(&q.ShardRow)
	if set == nil {
		return &wire.ScanAnswer{Apart: true}, err
	}
	if !set.Settled() {
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
	case !ns.GoesBy(&q.ShardRow):
		return &wire.ScanAnswer{Apart: true}, nil
	case !set.Settled(): // since
		return &wire.ScanAnswer{}, nil
	}
	return a, nil
}

// A watch of a shard that others hold: pages of what a host's own watch would tell. Nothing
// is kept at the host between two of them: the cursor says all.

// WatchPage is what a watch of a shard has to tell next.
type WatchPage struct {
	// Apart and Whole are as in HostAnswer. A page comes from a whole host alone.
	Apart, Whole bool
	// Expired: the cursor is none of the host's, or reaches too far back.
	Expired bool
	Told    []changes.Event
	Next    changes.Cursor
	More    bool // at once
}

// AskChanges asks a host for what a watch has to tell behind a cursor.
func (a *Asker) AskChanges(cursor changes.Cursor, prefix []byte) *wire.AskChanges {
	return &wire.AskChanges{ShardRow: a.at, Cursor: []byte(cursor), Prefix: prefix}
}

// Changes is what a message of the peer answers to AskChanges. Each record is examined as one
// that comes in a sync. It keeps nothing of m.
func (a *Asker) Changes(remote node.ID, ask *wire.Ask, m wire.Message) (*WatchPage, error) {
	reply, err := a.ns.Answered(remote, ask, m)
	if err != nil {
		return nil, err
	}
	return a.changes(remote, ask.Question.(*wire.AskChanges), reply.Answer.(*wire.ChangesAnswer))
}

// ChangesHere is what this node, a host, answers to AskChanges.
func (a *Asker) ChangesHere(ctx context.Context, q *wire.AskChanges) (*WatchPage, error) {
	said, err := answerChanges(ctx, a.ns, q)
	if err != nil {
		return nil, err
	}
	return a.changes(a.ns.Self(), q, said)
}

func (a *Asker) changes(remote node.ID, asked *wire.AskChanges, said *wire.ChangesAnswer) (*WatchPage, error) {
	p := &WatchPage{Apart: said.Apart, Whole: said.Whole, Expired: said.Expired, Next: changes.Cursor(said.Next), More: said.More}
	from := changes.Cursor(asked.Cursor)
	if said.Expired && from == changes.FromStart {
		return nil, fmt.Errorf("%w: what is held is said to have expired", reconcile.ErrProtocol)
	}
	if !said.Whole || said.Expired {
		return p, nil
	}
	if p.Next.Log() == 0 && p.Next != changes.FromStart {
		return nil, fmt.Errorf("%w: a page of a watch with no cursor", reconcile.ErrProtocol)
	}
	if log := from.Log(); log != 0 && p.Next.Log() != log {
		return nil, fmt.Errorf("%w: a page of a watch leads into another log", reconcile.ErrProtocol)
	}
	if said.More && p.Next == from {
		return nil, fmt.Errorf("%w: a page of a watch, behind which more follows, leads no further", reconcile.ErrProtocol)
	}
	if p.Next.Listing() && !from.Listing() {
		return nil, fmt.Errorf("%w: a page of a watch begins a listing that was not asked for", reconcile.ErrProtocol)
	}
	// Only a page with which a listing ends may say that it has ended.
	ends := from.Listing() && !p.Next.Listing()
	for i := range said.Changes {
		c := &said.Changes[i]
		t := changes.Event{Cursor: from, Coalesced: c.Coalesced, Kind: changes.Gone, Key: bytes.Clone(c.Key)}
		switch {
		case c.Record != nil:
			record := c.Record.Clone()
			if remote != a.ns.Self() {
				if err := a.check(remote, &record, record.Key); err != nil {
					return nil, fmt.Errorf("%w: %w", node.ErrDeclined, err)
				}
			}
			t.Record, t.Key, t.Kind = &record, record.Key, changes.Put
			if record.Deleted {
				t.Kind = changes.Delete
			}
		case len(c.Key) == 0 && ends && i == len(said.Changes)-1:
			t.Kind = changes.At
		case len(c.Key) == 0:
			return nil, fmt.Errorf("%w: a page of a watch ends a listing where there is none", reconcile.ErrProtocol)
		}
		if t.Kind != changes.At && (!bytes.HasPrefix(t.Key, asked.Prefix) || a.ns.Home(t.Key) != a.Shard() || reserved(a.ns, t.Key)) {
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
func answerChanges(ctx context.Context, ns *node.Namespace, q *wire.AskChanges) (*wire.ChangesAnswer, error) {
	set, err := ns.AsHost(&q.ShardRow)
	if set == nil {
		return &wire.ChangesAnswer{Apart: true}, err
	}
	if !set.Settled() {
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
	switch {
	case !ns.GoesBy(&q.ShardRow):
		return &wire.ChangesAnswer{Apart: true}, nil
	case !set.Settled(): // since
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
