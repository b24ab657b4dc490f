package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// A watch follows each shard by itself at one whole host, which may be this node: page by page, since
// a host keeps nothing of it between two of them. Its cursor is that of each shard, in their order:
//
//	s1,SHARD,SHARD,…	each is the cursor of a watch of the shard at the host that has made it

// shardsCursor begins the cursors of this version.
const shardsCursor = "s1"

// Times of a watch.
const (
	// watchIdle is the pause after a page that has told something, and was the last one; after
	// each that tells nothing it doubles, up to watchIdleMost.
	watchIdle     = 50 * time.Millisecond
	watchIdleMost = time.Second
	// watchEmpty pages that tell nothing, though more follows, are asked for without a pause: a
	// host passes over many changes of other keys in each, or leads the watch on.
	watchEmpty = 16
	// watchGap is the longest time since all was told after which a watch may begin anew at another log:
	// what was deleted meanwhile, and collected already, it could not tell.
	watchGap = 30 * time.Second
	// watchPatience is for how long a watch goes on without a host.
	watchPatience = time.Minute
)

// WatchOptions are those of a watch of shards.
type WatchOptions struct {
	changes.Options
	// Room is how many bytes of pages wait to be told, of all shards, while who is told is slow. Of a page that
	// does not fit the bytes are kept in mind alone: it is asked for again once it does. Beside them are the
	// pages on their way.
	Room int64
}

// cursorOf is the cursor of a watch that has come to these places.
func cursorOf(places []changes.Cursor) changes.Cursor {
	var b strings.Builder
	b.WriteString(shardsCursor)
	for _, p := range places {
		b.WriteByte(',')
		b.WriteString(string(p))
	}
	return changes.Cursor(b.String())
}

// placesOf are those that a cursor names, of so many shards.
func placesOf(c changes.Cursor, shards int) ([]changes.Cursor, error) {
	if c == changes.FromStart {
		return slices.Repeat([]changes.Cursor{c}, shards), nil
	}
	bad := fmt.Errorf("%w: %.80q is no cursor of a watch of %d shards: take that of an event, or %q", node.ErrInvalid, string(c), shards, string(changes.FromStart))
	if len(c) > len(shardsCursor)+shards*(1+changes.MaxCursor) {
		return nil, bad
	}
	parts := strings.Split(string(c), ",")
	if parts[0] != shardsCursor || len(parts) != shards+1 {
		return nil, bad
	}
	places := make([]changes.Cursor, shards)
	for i, part := range parts[1:] {
		if places[i] = changes.Cursor(part); part == "" || places[i].Check() != nil {
			return nil, bad
		}
	}
	return places, nil
}

// Cursor is that of now: what is acknowledged from now on follows it.
func (s *Shards) Cursor(ctx context.Context) (changes.Cursor, error) {
	places := make([]changes.Cursor, s.NS.Rule().Shards)
	_, err := within(ctx, s, s.Net.Now()+2*Patience, func(ctx context.Context) (none struct{}, err error) {
		ctx, cut := context.WithCancelCause(ctx) // one that fails ends the others
		defer cut(nil)
		err = each(ctx, s, len(places), len(places), func(ctx context.Context, i int) error {
			page, _, err := s.changes(ctx, placement.Shard(i), "", "", nil)
			if err != nil {
				cut(err)
				return err
			}
			places[i] = page.Next
			return nil
		})
		return none, cmp.Or(context.Cause(ctx), err)
	})
	switch {
	case errors.Is(err, errSilent):
		return "", fmt.Errorf("%w: the hosts of some shards have not answered in time", ErrTooFew)
	case err != nil:
		return "", err
	}
	return cursorOf(places), nil
}

// watch is one watch. It is used by one goroutine; what asks the hosts runs beside it.
type watch struct {
	*Shards
	WatchOptions
	yield   func(*changes.Event) bool
	box     Mailbox
	places  []changes.Cursor
	listed  int           // shards that have told all that they held
	held    atomic.Int64  // bytes of pages that wait to be told
	waiting []*follow     // whose pages had no room
	quiet   time.Duration // since when nothing was told
	told    bool          // something, since it waited last
	err     error         // why the watch is over; errOver: who is told has enough
}

// errOver ends a watch whose caller has enough.
var errOver = errors.New("the watch is over")

// Watch tells what becomes of the keys behind a cursor, in the order of each shard's commits at a host, until
// the context ends or yield says no. The cursor of an event that is not the last one of a page is that before the page.
func (s *Shards) Watch(ctx context.Context, cursor changes.Cursor, o WatchOptions, yield func(*changes.Event) bool) error {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	w := &watch{Shards: s, WatchOptions: o, yield: yield, box: s.Net.Mailbox(), quiet: -o.Every, told: true}
	level := s.Net.Now()
	var err error
	if cursor == "" {
		cursor, err = s.Cursor(ctx)
	} else {
		level -= 2 * watchGap // how old it is, is not known
	}
	if err == nil {
		w.places, err = placesOf(cursor, s.NS.Rule().Shards)
	}
	if err != nil {
		return err
	}
	for i, place := range w.places {
		f := &follow{watch: w, shard: placement.Shard(i), listing: place.Listing(), fresh: place == changes.FromStart, again: place.Listing() && place != changes.FromStart, pause: watchIdle, last: s.Net.Now(), level: level}
		if !f.listing {
			w.listed++
		}
		f.next(ctx, 0)
	}
	for w.err == nil && ctx.Err() == nil {
		note := w.box.Take(ctx, 0)
		if note == nil {
			if w.BeforeWait != nil && w.told {
				w.BeforeWait()
			}
			w.told = false
			note = w.box.Take(ctx, w.until())
		}
		switch {
		case note != nil:
			note()
		case w.Every > 0 && ctx.Err() == nil:
			w.tell(&changes.Event{Kind: changes.At, Cursor: cursorOf(w.places)})
		}
	}
	if w.err == errOver { //nolint:errorlint // it is the watch's own
		return nil
	}
	return cmp.Or(context.Cause(ctx), w.err)
}

// until is when the watch is to tell where it is.
func (w *watch) until() time.Duration {
	if w.Every == 0 {
		return forever
	}
	return w.quiet + w.Every
}

func (w *watch) tell(e *changes.Event) {
	if w.err == nil && !w.yield(e) {
		w.err = errOver
	}
	w.quiet, w.told = w.Net.Now(), true
}

// hold takes more room for a page of a size, and reports whether there is some: for one page there always is.
func (w *watch) hold(more, size int64) bool {
	if held := w.held.Add(more); held <= w.Room || held == size {
		return true
	}
	w.held.Add(-more)
	return false
}

// follow is a watch of one shard.
type follow struct {
	*watch
	shard   placement.Shard
	host    node.ID       // that has told last; empty: none has
	listing bool          // the watch has yet to tell that all that was held is told
	fresh   bool          // of what is listed nothing was told before: what reads as absent is not told
	again   bool          // what is listed was told before, perhaps by another host
	behind  bool          // the page before was not the last one: changes may have been passed over
	empty   int           // pages since the last one that told something
	size    int64         // of the room that it has, or waits for
	pause   time.Duration // before the next page that does not follow at once
	last    time.Duration // when a host has told, or the watch began
	level   time.Duration // all changes of before are told, or are not to be
}

// next asks for the next page, after a pause.
func (f *follow) next(ctx context.Context, pause time.Duration) {
	place := f.places[f.shard]
	f.Net.Go(ctx, func(beside context.Context) {
		if pause > 0 && f.rest(beside, place, pause) != nil {
			return
		}
		asked := f.Net.Now()
		page, host, err := f.changes(beside, f.shard, f.host, place, f.Prefix)
		size := int64(0)
		if err == nil {
			size = sizeOf(page)
		}
		fits := size <= f.size || f.hold(size-f.size, size)
		if !fits {
			page = nil
		}
		f.box.Put(func() {
			room := max(size, f.size)
			if fits {
				pause = f.took(ctx, asked, page, host, err)
			} else {
				room = f.size
			}
			f.held.Add(-room)
			if f.size = size; fits {
				f.size = 0
				f.next(ctx, pause)
			} else {
				f.waiting = append(f.waiting, f)
			}
			for len(f.waiting) > 0 && f.hold(f.waiting[0].size, f.waiting[0].size) {
				f.waiting[0].next(ctx, 0)
				f.waiting = f.waiting[1:]
			}
		})
	})
}

// sizeOf is what a page takes, about.
func sizeOf(page *WatchPage) (size int64) {
	for i := range page.Told {
		size += recordCost + int64(len(page.Told[i].Key))
		if r := page.Told[i].Record; r != nil {
			size += int64(r.Weight())
		}
	}
	return size
}

// rest waits before the next page: where this node tells, until the shard has changed.
func (f *follow) rest(ctx context.Context, place changes.Cursor, pause time.Duration) error {
	if set := f.NS.WholeHere(f.shard); set != nil && f.host == f.NS.Self() {
		return f.Net.Changed(ctx, set, place.Seq(), watchIdleMost)
	}
	return f.Net.Sleep(ctx, pause)
}

// took tells what a page says, and returns the pause before the next one.
func (f *follow) took(ctx context.Context, asked time.Duration, page *WatchPage, host node.ID, err error) time.Duration {
	place := &f.places[f.shard]
	switch expired := errors.Is(err, errExpired); {
	case expired && f.host != "" && host != f.host && asked-f.level <= watchGap:
		// The host is another one, and has another log: it tells all that it holds, with repeats.
		*place, f.host, f.fresh, f.again, f.behind = changes.FromStart, host, false, true, false
	case expired:
		f.err = fmt.Errorf("%w: no host of shard %d that answers has made it; watch from %q, which tells all that is held first", changes.ErrCursorExpired, f.shard, string(changes.FromStart))
	case err != nil && (f.host == "" || f.Net.Now()-f.last > watchPatience):
		f.err = fmt.Errorf("what has become of shard %d is not known; go on from the last cursor when its hosts are there again: %w", f.shard, err)
	case err != nil:
		f.pause = min(2*f.pause, watchIdleMost)
		return f.pause
	default:
		if !page.More || *place == changes.FromStart && !f.again {
			f.level = asked
		}
		f.host, f.last = host, f.Net.Now()
		return f.take(ctx, page)
	}
	return 0
}

// take tells what a page says, and returns the pause before the next one.
func (f *follow) take(ctx context.Context, page *WatchPage) time.Duration {
	told := page.Told[:0]
	for _, e := range page.Told {
		e.Coalesced = e.Coalesced || f.again || f.behind
		switch {
		case e.Kind == changes.At && f.listing:
			if f.listing, f.listed = false, f.listed+1; f.listed < len(f.places) {
				continue
			}
		case e.Kind == changes.At, f.fresh && e.Record != nil && f.NS.Absent(e.Record) != nil:
			continue
		}
		told = append(told, e)
	}
	if f.empty++; len(page.Told) > 0 {
		f.empty, f.pause = 0, watchIdle
	}
	var before changes.Cursor
	if len(told) > 1 {
		before = cursorOf(f.places)
	}
	if f.places[f.shard] = page.Next; !page.Next.Listing() {
		f.fresh, f.again = false, false
	}
	f.behind = page.More && !page.Next.Listing()
	for i := range told {
		if told[i].Cursor = before; i == len(told)-1 {
			told[i].Cursor = cursorOf(f.places)
		}
	}
	f.tellAll(ctx, told)
	pause := f.pause
	switch {
	case !page.More:
		f.pause = min(2*pause, watchIdleMost)
	case f.empty <= watchEmpty:
		pause = 0
	}
	return pause
}

// tellAll tells events, each with its user's value.
func (f *follow) tellAll(ctx context.Context, told []changes.Event) {
	all := func(yield func(changes.Event, error) bool) {
		for i := range told {
			if !yield(told[i], nil) {
				return
			}
		}
	}
	openAll(ctx, f.Shards, all, watchPatience, func(e *changes.Event) *dbadapter.Record { return e.Record }, func(e *changes.Event, now *dbadapter.Record, err error) bool {
		switch {
		case errors.Is(err, bodies.ErrLost): // there is nothing to tell of it
		case err != nil:
			f.err = fmt.Errorf("go on from the last cursor: %w", err)
		case e.Record != nil && (now == nil || now.Version != e.Record.Version): // it was overwritten, which follows
		default:
			e.Record = now
			f.tell(e)
		}
		return f.err == nil
	})
}
