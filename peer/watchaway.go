package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// Times of a watch of a shard at its hosts.
const (
	// watchIdle is the pause after a page that has told something, and was the last one; after
	// each that tells nothing it doubles, up to watchIdleMost.
	watchIdle     = 50 * time.Millisecond
	watchIdleMost = time.Second
	// watchEmpty pages that tell nothing, though more follows, are asked for without a pause: a
	// host passes over many changes of other keys in each, or leads the watch on.
	watchEmpty = 16
	// watchGap is the longest time since the watch was level with its host after which another
	// one may do so: what was deleted meanwhile, and collected already, it could not tell.
	watchGap = 30 * time.Second
	// watchPatience is for how long a watch goes on without a host.
	watchPatience = time.Minute
)

// shardWatch is the watch of one shard. It is used by one goroutine.
type shardWatch struct {
	ns     *Namespace
	number placement.Shard
	prefix []byte
	place  shardPlace
	out    chan<- toldOf
	// room is that of the pages, and roomTaken what this shard has of it.
	room      *watchRoom
	roomTaken int64

	host    ID        // that has told last; empty: none has
	told    bool      // this watch has been told something, or where it is
	listing bool      // the watch has yet to tell that all that was held is told
	behind  bool      // the page before was not the last one: changes may have been passed over
	empty   int       // pages since the last one that told something
	last    time.Time // when a host has told, or the watch began

	pause time.Duration // before the next page that does not follow at once
	clock wakeful
	level time.Duration // by the clock: all changes of before are told, or are not to be
}

// newShardWatch is a watch of a shard from a place on.
func newShardWatch(ns *Namespace, number placement.Shard, place shardPlace) *shardWatch {
	s := &shardWatch{ns: ns, number: number, place: place, listing: place.cursor.Listing(), last: time.Now()}
	s.clock.now()           // begins at 0
	s.level = -2 * watchGap // how old a cursor is, is not known
	return s
}

// run tells what becomes of the shard until the context is over.
func (s *shardWatch) run(ctx context.Context) {
	s.pause = watchIdle
	for ctx.Err() == nil {
		var err error
		more := true
		if sh := s.ns.wholeHere(s.number, s.place.cursor); sh != nil && !s.place.all {
			err = s.here(ctx, sh)
		} else {
			more, err = s.turn(ctx)
		}
		if err != nil {
			s.tell(ctx, toldOf{err: err})
			return
		}
		if more {
			s.pause = watchIdle
			if s.empty <= watchEmpty {
				continue
			}
		}
		if !sleep(ctx, s.pause) {
			return
		}
		if !more {
			s.pause = min(2*s.pause, watchIdleMost)
		}
	}
}

// tell hands over what the shard has to tell; false: the watch is over.
func (s *shardWatch) tell(ctx context.Context, t toldOf) bool {
	t.number, t.place = s.number, s.place
	select {
	case s.out <- t:
		return true
	case <-ctx.Done():
		return false
	}
}

// here watches this node's own set, until the shard leaves the node.
func (s *shardWatch) here(ctx context.Context, sh *shard) error {
	s.leaveRoom()
	if s.place.cursor == node.FromStart {
		s.level = s.clock.now()
	}
	level := false // the watch waits for changes
	wait := func() { level, s.level = true, s.clock.now() }
	err := sh.watch(ctx, Cursor(s.place.cursor), &watch{prefix: s.prefix, wait: wait}, func(e *node.Watched) bool {
		level, s.place.cursor, s.told = false, e.Cursor, true
		events := []node.Watched{*e}
		if e.Kind == node.AtKind {
			if !s.listing {
				events = nil
			}
			s.listing = false
		}
		return s.tell(ctx, toldOf{events: events})
	})
	s.last, s.host = time.Now(), s.ns.node.self.id
	if level {
		s.level = s.clock.now()
	}
	if ctx.Err() == nil && errors.Is(err, ErrClosed) { // the shard alone
		s.told = true
		return nil
	}
	return err
}

// turn asks a whole host for a page: the one that has told last, or else the nearest. It reports
// whether the next page is to follow at once. The error ends the watch.
func (s *shardWatch) turn(ctx context.Context) (more bool, err error) {
	asked := s.clock.now()
	page, id, err := s.page(ctx)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil && time.Since(s.last) > watchPatience, err != nil && !s.told:
		return false, fmt.Errorf("what has become of shard %d is not known; go on from the last cursor when its hosts are there again: %w", s.number, err)
	case err != nil:
		s.leaveRoom()
		return false, nil
	case page.Expired && s.told && ID(id) != s.host && s.clock.now()-s.level <= watchGap:
		// The host is another one, and has another log: it tells all that it holds, with repeats.
		s.place, s.host, s.behind = shardPlace{node.FromStart, true}, ID(id), false
		return true, nil
	case page.Expired:
		return false, fmt.Errorf("%w: no host of shard %d that answers has made it; watch from %q, which tells all that is held first", ErrCursorExpired, s.number, string(FromStart))
	}
	if fits, err := s.fits(ctx, page); !fits {
		return true, err
	}
	s.host, s.last = ID(id), time.Now()
	if !page.More || s.place.cursor == node.FromStart && !s.place.all {
		s.level = asked
	}
	more = s.take(ctx, page)
	s.leaveRoom()
	return more, nil
}

// page asks the hosts.
func (s *shardWatch) page(ctx context.Context) (*node.WatchPage, node.ID, error) {
	ns := s.ns
	if err := ns.enter("watch"); err != nil {
		return nil, "", err
	}
	defer ns.gate.leave()
	return ns.hosts.Changes(ctx, s.number, node.ID(s.host), s.place.cursor, s.prefix, s.place.all)
}

// take tells what a page says, and reports whether more follows at once.
func (s *shardWatch) take(ctx context.Context, page *node.WatchPage) bool {
	again, events := s.place.all, page.Told[:0]
	for _, e := range page.Told {
		e.Coalesced = e.Coalesced || again || s.behind
		if e.Kind == node.AtKind {
			s.place.all = false
			if !s.listing {
				continue
			}
			s.listing = false
		}
		events = append(events, e)
	}
	if s.empty++; len(page.Told) > 0 {
		s.empty, s.pause = 0, watchIdle
	}
	changed := s.place.cursor != page.Next || again
	s.place.cursor, s.told, s.behind = page.Next, true, page.More && !page.Next.Listing()
	if changed && s.out != nil {
		s.tell(ctx, toldOf{events: events})
	}
	return page.More
}
