package changes

import (
	"context"
	"time"
)

// Options are those of a watch.
type Options struct {
	// Prefix is that of the keys; empty: all.
	Prefix []byte
	// Every, if not 0, makes the watch yield an event of kind At when there is nothing
	// else: at once, and again after so long.
	Every time.Duration
	// BeforeWait, if not nil, is called when there is nothing to yield, before the watch
	// waits.
	BeforeWait func()
}

// keptEvents is for how many events a watcher keeps the memory.
const keptEvents = 16

// Watch yields what is behind a cursor, and then what follows, until yield returns false,
// which is no error, or the context is over. The events are the watcher's: yield must not
// keep them.
func (f *Feed) Watch(ctx context.Context, cursor Cursor, o Options, yield func(*Event) bool) error {
	leave, err := f.enter()
	if err != nil {
		return err
	}
	w, err := f.source.Watcher(cursor, o.Prefix)
	group := 0
	if err == nil {
		w.expire = true
		group, err = f.join()
	}
	leave()
	if err != nil {
		return err
	}
	defer f.leave(group)
	var told time.Time // when there was something to tell last; zero: never
	var events []Event
	// The first look is the watcher's own: the feed does not know whether its cursor is
	// of this log at all.
	for first := true; ; first = false {
		events, err = f.step(ctx, w, group, first, o, told, events[:0])
		for i := range events {
			if !yield(&events[i]) {
				return nil
			}
		}
		if len(events) > 0 {
			told = time.Now()
		}
		if clear(events); cap(events) > keptEvents { // a watcher that waits takes little memory
			events = nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// step appends the next events of a watcher, and waits until there are some. Nothing of
// the store is held when it returns, so that a slow yield holds nothing up.
func (f *Feed) step(ctx context.Context, w *Watcher, group int, first bool, o Options, told time.Time, events []Event) ([]Event, error) {
	win, behind, changed := f.next(w, group)
	if w.Listing() || behind || first {
		leave, err := f.enter()
		if err != nil {
			return events, err
		}
		defer leave()
		if w.Listing() {
			events, _, err = w.list(ctx, events)
			return events, err
		}
		if win, err = w.read(ctx); err != nil {
			return events, err
		}
	}
	if win != nil && win.to > win.from {
		return w.take(win, events), nil
	}
	if events = w.expired(events); len(events) > 0 {
		return events, nil
	}
	if o.BeforeWait != nil {
		o.BeforeWait()
	}
	var due, quiet <-chan time.Time
	if in, ok := w.due(); ok {
		due = time.After(in)
	}
	if o.Every > 0 {
		quiet = time.After(time.Until(told.Add(o.Every)))
	}
	select {
	case <-due: // the next step yields what has expired
	case <-changed:
	case <-ctx.Done():
	case <-quiet:
		events = append(events, Event{Kind: At, Cursor: w.Cursor()})
	}
	return events, nil
}
