package peer

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/shards"
)

// Cursor says how far a watch has come. It is text to be kept and given back; programs
// need not understand it. The zero Cursor stands for now.
type Cursor string

// FromStart is the cursor of a watch that yields first what is held, by key. An EventAt
// then says that this is all, and the changes since follow.
const FromStart = Cursor(node.FromStart)

// ErrCursorExpired: the change log reaches no longer back to the cursor, or belongs to a
// store that was restored or repaired since. Watch FromStart.
var ErrCursorExpired = node.ErrCursorExpired

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
	EventPut = EventKind(node.PutKind)
	// EventDelete: the key was deleted, and holds a tombstone.
	EventDelete = EventKind(node.DeleteKind)
	// EventGone: the key holds nothing any more: what was deleted or has expired was
	// collected, or a record was set aside.
	EventGone = EventKind(node.GoneKind)
	// EventAt is of no key: all up to the cursor was yielded.
	EventAt = EventKind(node.AtKind)
	// EventExpired: the record that the watch has yielded has expired by this node's clock,
	// and reads as absent. Its EventGone follows when it is collected.
	EventExpired = EventKind(node.ExpiredKind)
)

// String is the kind in a word.
func (k EventKind) String() string {
	switch k {
	case EventPut:
		return "put"
	case EventDelete:
		return "delete"
	case EventGone:
		return "gone"
	case EventAt:
		return "at"
	case EventExpired:
		return "expired"
	}
	return "unknown"
}

// WatchOption is an option of a watch.
type WatchOption func(*watch)

type watch struct {
	prefix []byte
	every  time.Duration
	wait   func()
}

// watchBytes of pages wait to be yielded, of all shards of a watch whose loop is slow.
const watchBytes = 16 << 20

// WithPrefix makes the watch one of the keys that begin with a prefix.
func WithPrefix(prefix []byte) WatchOption { return func(w *watch) { w.prefix = prefix } }

// WithProgress makes the watch yield an EventAt at once if it has nothing to tell then. It
// yields another whenever it had nothing to tell for so long. A watch of few keys in a
// namespace that changes much has a cursor then that does not expire.
func WithProgress(every time.Duration) WatchOption { return func(w *watch) { w.every = every } }

// BeforeWait is called in the loop's goroutine when the watch has nothing to tell, before
// it waits. What a program has gathered of the events can then go out.
func BeforeWait(fn func()) WatchOption { return func(w *watch) { w.wait = fn } }

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
	w, err := ns.shards()[0].set.NewWatcher("", nil)
	if err != nil {
		return "", err
	}
	return Cursor(w.Cursor()), nil
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
				of := shards.WatchOptions{Prefix: o.prefix, Every: o.every, Wait: o.wait, Room: watchBytes}
				err = ns.orRemoved(ns.hosts.Watch(ctx, node.Cursor(cursor), of, func(e *node.Watched) bool { return yield(eventOf(e), nil) }))
			}
		} else {
			err = ns.shards()[0].watch(ctx, cursor, &o, func(e *node.Watched) bool { return yield(eventOf(e), nil) })
		}
		if err != nil {
			yield(Event{}, fmt.Errorf("watch %s: %w", ns.Name(), err))
		}
	}
}

// eventOf is an event whose slices are the caller's: others watch the same.
func eventOf(e *node.Watched) Event {
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

// mostTold is for how many events a watcher keeps the memory.
const mostTold = 16

func (sh *shard) watch(ctx context.Context, cursor Cursor, o *watch, yield func(*node.Watched) bool) error {
	ctx, cancel := bind(ctx, sh.ctx)
	defer cancel()
	if err := sh.ns.enter("watch"); err != nil {
		return err
	}
	w, err := sh.set.NewWatcher(node.Cursor(cursor), o.prefix)
	group := 0
	if err == nil {
		w.Expiries = true
		group, err = sh.feed.join(sh)
	}
	sh.ns.gate.leave()
	if err != nil {
		return err
	}
	defer sh.feed.leave(group)
	quiet := newQuiet(o)
	defer quiet.stop()
	var told []node.Watched
	// The first look is the watcher's own: whether its cursor is of this log at all, the
	// feed does not tell.
	for first := true; ; first = false {
		told, err = sh.watchStep(ctx, w, group, first, quiet, told[:0])
		for i := range told {
			if !yield(&told[i]) {
				return nil
			}
		}
		if len(told) > 0 && told[len(told)-1].Kind != node.AtKind {
			quiet.reset()
		}
		if clear(told); cap(told) > mostTold { // a watcher that waits takes little memory
			told = nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// watchStep appends what a watcher has to tell next, and waits until there is something.
// Nothing of the store is held when it returns, so that a slow loop holds nothing up.
func (sh *shard) watchStep(ctx context.Context, w *node.Watcher, group int, first bool, quiet *quiet, told []node.Watched) ([]node.Watched, error) {
	win, behind, changed := sh.feed.next(w, group)
	if w.Listing() || behind || first {
		if err := sh.ns.enter("watch"); err != nil {
			return told, err
		}
		defer sh.ns.gate.leave()
		if w.Listing() {
			return w.List(ctx, told)
		}
		var err error
		if win, err = w.Read(ctx); err != nil {
			return told, err
		}
	}
	if win != nil && win.To > win.From {
		return w.Take(win, told), nil
	}
	if told = w.Expired(told); len(told) > 0 {
		return told, nil
	}
	quiet.wait()
	var due <-chan time.Time
	if in, ok := w.Due(); ok {
		timer := time.NewTimer(in)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due: // Expired tells of it
	case <-changed:
	case <-ctx.Done():
	case <-quiet.timer.C:
		quiet.reset()
		told = append(told, node.Watched{Kind: node.AtKind, Cursor: w.Cursor()})
	}
	return told, nil
}

// quiet is what a watch does when it has nothing to tell.
type quiet struct {
	wait  func()
	every time.Duration // 0: never
	timer *time.Timer
}

func newQuiet(o *watch) *quiet {
	q := &quiet{wait: o.wait, every: o.every, timer: &time.Timer{}}
	if q.wait == nil {
		q.wait = func() {}
	}
	if q.every > 0 {
		q.timer = time.NewTimer(0)
	}
	return q
}

// reset begins anew.
func (q *quiet) reset() {
	if q.every > 0 {
		q.timer.Reset(q.every)
	}
}

func (q *quiet) stop() {
	if q.every > 0 {
		q.timer.Stop()
	}
}
