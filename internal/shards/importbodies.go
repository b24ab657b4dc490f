package shards

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
)

// Large values of an import: what is there already is asked first, and no body of it is sent.

// hintsAtOnce travel in one message.
const hintsAtOnce = 256

// tag gives an item the value of a record, unless the user's value is to be a body.
func (im *importing) tag(i *imported) {
	i.user = i.Value
	switch {
	case !im.NS.Bodied() || i.Deleted:
	case im.large(i.Value):
		i.Value, i.large = nil, true
	default:
		i.Value = bodies.Inline(i.Value)
	}
}

// putBody sends the body of an item, unless its key holds the same value, or something later than its date, or its
// date is not taken.
func (im *importing) putBody(ctx context.Context, i *imported) error {
	if i.hides(im.NS.Time()) {
		return nil
	}
	asking, cut, over := im.Shards.begin(ctx)
	defer cut()
	level := quorum.Quorum
	if im.Level == quorum.All || im.Level == quorum.One {
		level = im.Level
	}
	found, err := im.get(asking, i.Key, GetOptions{Level: level}, over)
	if err != nil {
		return err
	}
	if held := found.Record; held != nil {
		date := dbadapter.TimestampAt(i.Time)
		if p := im.held(held, i); p != nil && im.enoughHave(&found) && (i.Time.IsZero() || held.Version.Clock >= date) {
			if !im.there(asking, i.Key, p, over) {
				err = im.sendBody(asking, p, i.Key, i.user, im.Level)
				i.body, i.record, i.fresh = p, held, err == nil
			}
			i.done = err == nil
			return err
		}
		if !i.Time.IsZero() && held.Version.Clock > date {
			i.done, i.stale = true, true
			return nil
		}
	}
	if a, err := NewAsker(im.NS, found.Shard); err == nil && i.dated() {
		if from, covered := a.view.Covers(i.Time, im.floor(&found, i)); !covered && !im.refuse(i, from) {
			return nil
		}
	}
	if i.body, err = im.Shards.putBody(ctx, i.Key, i.user, im.Level); err == nil {
		i.Value = i.body.AppendBinary(nil)
	}
	return err
}

// enoughHave reports whether as many hosts as the import asks for have answered that they have what was found.
func (im *importing) enoughHave(found *Found) bool {
	answer := func(id node.ID) *HostAnswer {
		at := slices.IndexFunc(found.Hosts, func(a Answer) bool {
			return a.Peer == id && a.Answer != nil && a.Answer.Version == found.Record.Version
		})
		if at < 0 {
			return nil
		}
		return found.Hosts[at].Answer
	}
	row, has := im.NS.Row(found.Shard), func(id node.ID) bool { return answer(id) != nil }
	return row != nil && im.reaches(im.Level, row, has, func(id node.ID) bool { return has(id) && answer(id).Whole })
}

// floor is up to when enough of the hosts that have answered have collected deletions, if an item is not dated
// behind that; they do not take it.
func (im *importing) floor(found *Found, i *imported) (floor dbadapter.Timestamp) {
	row, of := im.NS.Row(found.Shard), map[node.ID]dbadapter.Timestamp{}
	for _, a := range found.Hosts {
		if a.Answer != nil {
			of[a.Peer] = a.Answer.Floor
			floor = max(floor, a.Answer.Floor)
		}
	}
	past := func(id node.ID) bool { return of[id] >= dbadapter.TimestampAt(i.Time) }
	if row == nil || !im.reaches(im.Level, row, past, past) {
		return 0
	}
	return floor
}

// there reports whether the body that a record names is there. Its first version is as old as it is: a later one
// may be a deletion, and then the body is read.
func (im *importing) there(ctx context.Context, key []byte, p *bodies.Pointer, over time.Duration) bool {
	h, err := anew(ctx, im.Shards, p.Shard, over, func(a *Asker) (HostAnswer, error) {
		return askSoon(ctx, im.Shards, a, im.nearest(a.Row().Old)[0], min(over, im.Net.Now()+bodyWait), a.record(p.Key(key), true))
	})
	if err == nil && !h.Version.IsZero() && bodies.MayTake(p, nil, h.Version.Clock.Time()) {
		return true
	}
	_, _, err = im.Shards.body(ctx, key, p, over)
	return err == nil
}

// held is where the value of a record is, if the record says what an item does; nil: it does not.
func (im *importing) held(held *dbadapter.Record, i *imported) *bodies.Pointer {
	expires := dbadapter.Timestamp(0)
	if !i.Expires.IsZero() {
		expires = dbadapter.TimestampAt(i.Expires)
	}
	if held.Deleted || held.Expires != expires {
		return nil
	}
	_, p, err := bodies.Read(held.Value)
	if err != nil || p == nil || int(p.Shard) >= im.NS.Rule().Shards || !p.Proves(i.user) {
		return nil
	}
	return p
}

// hints tells the hosts of bodies which records name them.
func (im *importing) hints(items []*imported) {
	of := map[placement.Shard][]*dbadapter.Record{}
	for _, i := range items {
		if i.body != nil && i.fresh && i.record != nil && i.body.Shard != im.NS.Home(i.Key) {
			of[i.body.Shard] = append(of[i.body.Shard], i.record)
		}
	}
	for _, shard := range slices.Sorted(maps.Keys(of)) {
		im.Net.Outlive(func(ctx context.Context) {
			for some := range slices.Chunk(of[shard], hintsAtOnce) {
				im.hint(ctx, shard, some...)
			}
		})
	}
}
