package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// A watch of a namespace that is cut into shards follows each shard by itself: here, if this
// node is a host that is settled, and otherwise at a host (watchaway.go). Its cursor is that
// of each shard, in their order:
//
//	s1,SHARD,SHARD,…	each is the cursor of a watch of the shard at the node that has made it, behind a
//	                	+ if it tells again what is held, tombstones too

// shardsCursor begins the cursors of this version.
const shardsCursor = "s1"

// shardPlace is how far a watch has come in a shard.
type shardPlace struct {
	cursor node.Cursor
	// all: what is held is told again, tombstones and what has expired too, since the host
	// that had told of the shard is not there.
	all bool
}

// cursorOf is the cursor of so many shards.
func cursorOf(places []shardPlace) Cursor {
	var b strings.Builder
	b.WriteString(shardsCursor)
	for _, p := range places {
		b.WriteByte(',')
		if p.all {
			b.WriteByte('+')
		}
		b.WriteString(string(p.cursor))
	}
	return Cursor(b.String())
}

// places are those that a cursor names, of so many shards.
func (c Cursor) places(shards int) ([]shardPlace, error) {
	bad := fmt.Errorf("%w: %.80q is no cursor of a watch of %d shards: take that of an event, or %q", ErrInvalid, string(c), shards, string(FromStart))
	if c == FromStart {
		return slices.Repeat([]shardPlace{{cursor: node.FromStart}}, shards), nil
	}
	if len(c) > len(shardsCursor)+shards*(2+node.MaxCursor) {
		return nil, bad
	}
	parts := strings.Split(string(c), ",")
	if parts[0] != shardsCursor || len(parts) != shards+1 {
		return nil, bad
	}
	places := make([]shardPlace, shards)
	for i, part := range parts[1:] {
		text, all := strings.CutPrefix(part, "+")
		places[i] = shardPlace{node.Cursor(text), all}
		if text == "" || places[i].cursor.Check() != nil {
			return nil, bad
		}
	}
	return places, nil
}

// nowShards is the cursor of now: what is acknowledged from now on follows it.
func (ns *Namespace) nowShards(ctx context.Context) ([]shardPlace, error) {
	places := make([]shardPlace, ns.core.Rule().Shards)
	errs := make([]error, len(places))
	slots := make(chan struct{}, shardsAwaited)
	var asking sync.WaitGroup
	for i := range places {
		asking.Go(func() {
			if errs[i] = enter(ctx, slots); errs[i] != nil {
				return
			}
			defer func() { <-slots }()
			number := placement.Shard(i)
			if sh := ns.wholeHere(number, ""); sh != nil {
				var w *node.Watcher
				if w, errs[i] = sh.set.NewWatcher("", nil); errs[i] == nil {
					places[i].cursor = w.Cursor()
				}
				return
			}
			s := newShardWatch(ns, number, shardPlace{})
			for errs[i] == nil && s.place.cursor == "" {
				if _, errs[i] = s.turn(ctx); errs[i] == nil && s.place.cursor == "" && !sleep(ctx, watchIdle) {
					errs[i] = context.Cause(ctx)
				}
			}
			places[i] = s.place
		})
	}
	asking.Wait()
	return places, errors.Join(errs...)
}

// wholeHere is this node's shard, if it is a host that is whole and has made the cursor.
func (ns *Namespace) wholeHere(number placement.Shard, c node.Cursor) *shard {
	if set := ns.core.WholeHere(number); set != nil && c.Made(set) {
		return ns.node.shard(set)
	}
	return nil
}

// toldOf is what one shard has to tell.
type toldOf struct {
	number placement.Shard
	events []node.Watched
	place  shardPlace // behind them
	err    error      // the end of the watch
}

// watchShards is Watch in a namespace that is cut into shards.
func (ns *Namespace) watchShards(ctx context.Context, cursor Cursor, o *watch, yield func(Event) bool) error {
	ctx, cancel := ns.bind(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var places []shardPlace
	var err error
	began := time.Now()
	if cursor == "" {
		places, err = ns.nowShards(ctx)
	} else {
		places, err = cursor.places(ns.core.Rule().Shards)
	}
	if err != nil {
		return err
	}
	room := newWatchRoom(o.room)
	out := make(chan toldOf)
	listing := 0 // shards that have not told all that they held
	for i, place := range places {
		s := newShardWatch(ns, placement.Shard(i), place)
		s.prefix, s.out, s.room = o.prefix, out, room
		if s.listing {
			listing++
		}
		if cursor == "" {
			s.level = -time.Since(began)
		}
		running.Go(func() { s.run(ctx) })
	}
	quiet := newQuiet(o)
	defer quiet.stop()
	for {
		var t toldOf
		select {
		case t = <-out:
		default:
			quiet.wait()
			select {
			case t = <-out:
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-quiet.timer.C:
				quiet.reset()
				if !yield(Event{Kind: EventAt, Cursor: cursorOf(places)}) {
					return nil
				}
				continue
			}
		}
		if t.err != nil {
			return t.err
		}
		before := cursorOf(places)
		places[t.number] = t.place
		for i := range t.events {
			e := eventOf(&t.events[i])
			if e.Cursor = before; i == len(t.events)-1 {
				e.Cursor = cursorOf(places)
			}
			if e.Kind == EventAt {
				if listing--; listing != 0 {
					continue
				}
			}
			if !yield(e) {
				return nil
			}
		}
		if len(t.events) > 0 {
			quiet.reset()
		}
	}
}
