package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

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
func (a *Asker) Changes(remote ID, ask *wire.Ask, m wire.Message) (*WatchPage, error) {
	reply, err := a.reply(remote, ask, m)
	if err != nil {
		return nil, err
	}
	return a.changes(remote, ask.Question.(*wire.AskChanges), reply.Answer.(*wire.ChangesAnswer))
}

// ChangesHere is what this node, a host, answers to AskChanges.
func (a *Asker) ChangesHere(ctx context.Context, q *wire.AskChanges) (*WatchPage, error) {
	said, err := a.ns.answerChanges(ctx, q)
	if err != nil {
		return nil, err
	}
	return a.changes(a.ns.Self(), q, said)
}

func (a *Asker) changes(remote ID, asked *wire.AskChanges, said *wire.ChangesAnswer) (*WatchPage, error) {
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
					return nil, fmt.Errorf("%w: %w", ErrDeclined, err)
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
		if t.Kind != changes.At && (!bytes.HasPrefix(t.Key, asked.Prefix) || !a.ns.placedIn(t.Key, a.Shard()) || a.ns.reserved(t.Key)) {
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
func (ns *Namespace) answerChanges(ctx context.Context, q *wire.AskChanges) (*wire.ChangesAnswer, error) {
	set, err := ns.asHost(&q.ShardRow)
	if set == nil {
		return &wire.ChangesAnswer{Apart: true}, err
	}
	if !set.settled() {
		return &wire.ChangesAnswer{}, nil
	}
	w, err := set.Watched().Watcher(changes.Cursor(q.Cursor), q.Prefix)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", reconcile.ErrProtocol, err)
	}
	w.ListAll()
	var told []changes.Event
	more := true
	if w.Listing() {
		told, err = w.List(ctx, nil)
	} else {
		var win *changes.Window
		if win, err = w.Read(ctx); err == nil {
			told, more = w.Take(win, nil), win.To < win.End
		}
	}
	if errors.Is(err, changes.ErrCursorExpired) {
		return &wire.ChangesAnswer{Whole: true, Expired: true}, nil
	}
	if err != nil {
		return nil, err
	}
	a := &wire.ChangesAnswer{Whole: true, More: more, Next: []byte(w.Cursor())}
	fillPage(a, told, changes.Cursor(q.Cursor))
	switch {
	case !ns.goesBy(&q.ShardRow):
		return &wire.ChangesAnswer{Apart: true}, nil
	case !set.settled(): // since
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
