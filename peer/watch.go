package peer

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/shards"
)

// Cursor says how far a watch has come. It is text to be kept and given back; programs
// need not understand it. The zero Cursor stands for now.
type Cursor string

// Event is what a watch tells of a key: what it holds.
type Event struct {
	// Cursor is that of a watch that goes on behind this event.
	Cursor Cursor
	Kind   EventKind
	Key    []byte // nil where Kind is EventAt
	// Record is what the key held when the log was read: the record of EventPut, the
	// tombstone of EventDelete.
	Record dbadapter.Record
	// Coalesced: earlier changes of the key, which this watch has not yielded, are
	// passed over, because their records are overwritten. It may be
	// set without such changes where the watch is far behind, or several keys share an
	// index.
	Coalesced bool
}

// EventKind says what has become of a key.
type EventKind uint8

// The kinds of events.
const (
	// EventPut: the key holds a record. It may expire, and may have expired.
	EventPut = EventKind(changes.Put)
	// EventDelete: the key was deleted, and holds a tombstone.
	EventDelete = EventKind(changes.Delete)
	// EventGone: the key holds nothing any more: what was deleted or has expired was
	// collected, or a record was set aside.
	EventGone = EventKind(changes.Gone)
	// EventAt is of no key: all up to the cursor was yielded.
	EventAt = EventKind(changes.At)
	// EventExpired: the record that the watch has yielded has expired by this node's clock,
	// and reads as absent. Its EventGone follows when it is collected.
	EventExpired = EventKind(changes.Expired)
)

// String is the kind in a word.
func (k EventKind) String() string {
	if k < EventPut || k > EventExpired {
		return "unknown"
	}
	return [...]string{EventPut: "put", EventDelete: "delete", EventGone: "gone", EventAt: "at", EventExpired: "expired"}[k]
}

// WatchOption is an option of a watch.
type WatchOption func(*watch)

type watch = changes.Options

// watchBytes of pages wait to be yielded, of all shards of a watch whose loop is slow.
const watchBytes = 16 << 20

// WithPrefix makes the watch one of the keys that begin with a prefix.
func WithPrefix(prefix []byte) WatchOption { return func(o *watch) { o.Prefix = prefix } }

// WithProgress makes the watch yield an EventAt at once if it has nothing to tell then. It
// yields another whenever it had nothing to tell for so long. A watch of few keys in a
// namespace that changes much has a cursor then that does not expire.
func WithProgress(every time.Duration) WatchOption { return func(o *watch) { o.Every = every } }

// BeforeWait is called in the loop's goroutine when the watch has nothing to tell, before
// it waits. What a program has gathered of the events can then go out.
func BeforeWait(fn func()) WatchOption { return func(o *watch) { o.BeforeWait = fn } }

// Cursor is that of a watch of all that follows now.
func (ns *Namespace) Cursor() (Cursor, error) {
	if err := ns.enter("watch"); err != nil {
		return "", err
	}
	defer ns.gate.leave()
	if ns.core.Rule() != nil {
		now, err := ns.hosts.Cursor(ns.ctx)
		if err != nil {
			return "", fmt.Errorf("watch %s: %w", ns.Name(), err)
		}
		return Cursor(now), nil
	}
	return Cursor(ns.shards()[0].set.Watched().Cursor()), nil
}

// Watch yields each key's latest change behind a cursor, in the order of the commits.
// Then it yields the changes that follow as they are made, until the context or the
// loop ends. It yields what a key holds, not each write: a watch that is slower than
// the writes yields the last one, and marks it.
//
// A watch holds up no write, and no trimming of the change log (Config.WatchLog). One
// that is too far behind ends with ErrCursorExpired. A watch that goes on from a cursor
// may yield some events again: those of a change of several keys that share an index,
// and of what was held FromStart. A watch does not end the life of the namespace: when
// that closes, the watch ends with ErrClosed.
//
// A watch remembers when the records that it has yielded expire, of up to 1,024 keys or
// 64 KiB of them at a time. It yields that (EventExpired) once it has yielded all
// changes. For other records it yields an event when they are collected (EventGone).
//
// In a namespace that is cut into shards an expiry is no event. The order is that of
// the commits in each shard, and so of the changes of a key. What is held is yielded by
// key in each shard, and EventAt follows when all shards have done so.
//
// A shard that this node does not hold is watched at a host that is whole. Such a host
// is asked anew within a second. Where that host does not answer, another one yields
// again what it holds, tombstones too, with Coalesced set. It cannot know what was
// deleted meanwhile, and already collected. So only the host that has made a cursor
// goes on from one that is given to Watch, and from any cursor 30 s after the watch had
// last yielded all there was. Where others answer, the watch ends with
// ErrCursorExpired. Where none does for a minute, or at the beginning, it ends with
// ErrTooFew. It goes on from the last cursor when the hosts are there again.
//
// An event that is not the last one of a page has the cursor before the page. From it
// the page is yielded again. If a watch FromStart goes on before it has yielded all
// that is held, all of that may be yielded again.
func (ns *Namespace) Watch(ctx context.Context, cursor Cursor, options ...WatchOption) iter.Seq2[Event, error] {
	var o watch
	for _, option := range options {
		option(&o)
	}
	return func(yield func(Event, error) bool) {
		var err error
		if ns.core.Rule() != nil {
			err = ns.core.Outside()
			if err == nil {
				ctx, cancel := ns.bind(ctx)
				defer cancel()
				of := shards.WatchOptions{Options: o, Room: watchBytes}
				err = ns.orRemoved(ns.hosts.Watch(ctx, changes.Cursor(cursor), of, func(e *changes.Event) bool { return yield(eventOf(e), nil) }))
			}
		} else {
			err = ns.shards()[0].watch(ctx, changes.Cursor(cursor), o, func(e *changes.Event) bool { return yield(eventOf(e), nil) })
		}
		if err != nil {
			yield(Event{}, fmt.Errorf("watch %s: %w", ns.Name(), err))
		}
	}
}

func (sh *shard) watch(ctx context.Context, cursor changes.Cursor, o changes.Options, yield func(*changes.Event) bool) error {
	if err := cursor.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	ctx, cancel := bind(ctx, sh.ctx)
	defer cancel()
	return sh.feed.Watch(ctx, cursor, o, yield)
}

// eventOf is an event whose slices are the caller's: others watch the same.
func eventOf(e *changes.Event) Event {
	out := Event{Cursor: Cursor(e.Cursor), Kind: EventKind(e.Kind), Coalesced: e.Coalesced}
	if e.Record != nil {
		out.Record = *e.Record
		r := &out.Record
		b := make([]byte, 0, len(r.Key)+len(r.Value)+len(r.Signature)) // one piece: a thousand may watch
		for _, of := range []*[]byte{&r.Key, &r.Value, &r.Signature} {
			if *of != nil {
				from := len(b)
				b = append(b, *of...)
				*of = b[from:len(b):len(b)]
			}
		}
		r.Replaces = slices.Clone(r.Replaces)
	}
	if e.Key != nil {
		out.Key = append([]byte{}, e.Key...)
	}
	return out
}
