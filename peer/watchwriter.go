package peer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// By placement writer a key that was deleted may be written again in another shard, and one that
// two nodes wrote first is in two shards until that is decided. A watch follows each shard by
// itself, so that what one tells of a key may come behind what a later one has told. So where the
// locator does not place a key in the shard that tells of it, or the shard tells that it is gone,
// the directory is asked, by each shard for itself: a host that does not answer holds up no other
// shard. Where another shard has told of the key meanwhile, it is asked once more when the watch
// comes to the event: what is told then is at least as late as all that was told before, and what
// the last of a key's shards tells is what it holds. What is earlier than what was told of the key
// before is passed over, if the key still holds that or what is later: another shard was asked for it
// ahead of what that one tells, or another host tells again what is held, and is behind.

// Of a host of the directory that does not answer.
const (
	// watchLate is for how long it is awaited by the look-ups that follow,
	watchLate = route.Overdue / 2
	// and after watchLateAgain one of them awaits it in full.
	watchLateAgain = 10 * time.Second
)

// placing is what the shards of a watch share that ask the directory.
type placing struct {
	ns *Namespace

	mu   sync.Mutex           // guards what follows
	keys map[string]*askedKey // of the events that wait to be told
	late map[node.ID]time.Duration

	lately toldLately // used by the watch alone
}

// toldLately is the version that was told last of keys. It has two halves, of which the older one
// goes when the newer one is full.
type toldLately struct {
	newer, older map[string]dbadapter.Version
	bytes        int // of the keys of newer
}

// The bounds of a half.
const (
	latelyKeys  = 1024
	latelyBytes = 64 << 10
)

func (t *toldLately) of(key []byte) (v dbadapter.Version, known bool) {
	if v, known = t.newer[string(key)]; !known {
		v, known = t.older[string(key)]
	}
	return v, known
}

func (t *toldLately) note(key []byte, v dbadapter.Version) {
	if _, known := t.newer[string(key)]; !known {
		if t.newer == nil || len(t.newer) >= latelyKeys || t.bytes+len(key) > latelyBytes {
			t.newer, t.older, t.bytes = map[string]dbadapter.Version{}, t.newer, 0
		}
		t.bytes += len(key)
	}
	t.newer[string(key)] = v
}

// askedKey is a key that shards have asked about.
type askedKey struct {
	events int // of it that wait to be told
	told   int // so often it was told of meanwhile
}

// placedEvent is what the directory has made of an event.
type placedEvent struct {
	event *node.Watched // nil: none
	told  int           // of the key, when it was asked
}

func newPlacing(ns *Namespace) *placing {
	return &placing{ns: ns, keys: map[string]*askedKey{}, late: map[node.ID]time.Duration{}}
}

// all asks about the events of a shard.
func (p *placing) all(ctx context.Context, shard placement.Shard, events []node.Watched) ([]placedEvent, error) {
	all := make([]placedEvent, len(events))
	for i := range events {
		key := string(events[i].Key)
		p.mu.Lock()
		if p.keys[key] == nil {
			p.keys[key] = &askedKey{}
		}
		p.keys[key].events++
		all[i].told = p.keys[key].told
		p.mu.Unlock()
		var err error
		if all[i].event, err = p.placed(ctx, shard, &events[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// next is the event that the watch makes now of one that a shard has told, and of what the directory has
// made of that.
func (p *placing) next(ctx context.Context, shard placement.Shard, e *node.Watched, asked placedEvent) (*node.Watched, error) {
	p.mu.Lock()
	of := p.keys[string(e.Key)]
	if of.events--; of.events == 0 {
		delete(p.keys, string(e.Key))
	}
	p.mu.Unlock()
	event := asked.event
	if of.told != asked.told {
		var err error
		if event, err = p.placed(ctx, shard, e); err != nil {
			return nil, err
		}
	}
	if event == nil {
		return nil, nil //nolint:nilnil // another shard tells of the key
	}
	if event.Record != nil {
		if over, err := p.overtaken(ctx, event); over || err != nil {
			return nil, err
		}
		p.lately.note(event.Key, event.Record.Version)
	}
	p.mu.Lock()
	of.told++
	p.mu.Unlock()
	return event, nil
}

// overtaken reports whether a later version was told of the key than an event has, which the key
// still holds, or a yet later one. What was told may be lost: then the event is the truth.
func (p *placing) overtaken(ctx context.Context, e *node.Watched) (bool, error) {
	told, known := p.lately.of(e.Key)
	if !known || e.Record.Version.Compare(told) >= 0 {
		return false, nil
	}
	entry, err := p.lookUp(ctx, p.ns.core.Entries(e.Key), e.Key)
	switch {
	case err != nil:
		return false, err
	case entry.Record == nil:
		return e.Kind == node.PutKind && entry.Sure, nil
	case entry.Record.Deleted:
		return entry.Record.Version.Compare(told) >= 0, nil
	}
	in, err := directory.ShardOf(entry.Record, p.ns.core.Rule().Shards)
	if err != nil {
		return false, err
	}
	now, err := p.lookUp(ctx, in, e.Key)
	return err == nil && now.Record != nil && now.Record.Version.Compare(told) >= 0, err
}

// placed is the event that a watch makes of what a shard tells; nil: none, since the key is in
// another shard, which tells of it.
func (p *placing) placed(ctx context.Context, shard placement.Shard, e *node.Watched) (*node.Watched, error) {
	ns := p.ns
	if e.Kind == node.AtKind {
		return e, nil
	}
	there := e.Kind == node.PutKind
	if a := ns.whereIs(e.Key); there && (a.Where == directory.In || a.Where == directory.Here) && a.Shard == shard {
		return e, nil
	}
	entry, err := p.lookUp(ctx, ns.core.Entries(e.Key), e.Key)
	if err != nil {
		return nil, err
	}
	switch {
	case entry.Record == nil && there && entry.Sure:
		return nil, nil //nolint:nilnil // it reads as absent; written anew, it is told
	case entry.Record == nil:
		return e, nil
	case entry.Record.Deleted && there && entry.Record.Version.Compare(e.Record.Version) > 0:
		return nil, nil //nolint:nilnil // the tombstone follows
	case entry.Record.Deleted:
		return e, nil
	}
	in, err := directory.ShardOf(entry.Record, ns.core.Rule().Shards)
	if err != nil || in == shard {
		return e, err
	}
	if there {
		return nil, nil //nolint:nilnil // that shard tells of it
	}
	now, err := p.lookUp(ctx, in, e.Key)
	if err != nil || now.Record == nil || now.Record.Deleted { // its record follows
		return e, err
	}
	told := *e
	told.Kind, told.Record, told.Coalesced = node.PutKind, now.Record, true
	return &told, nil
}

// lookUp asks all hosts of a set for a key, until one has answered.
func (p *placing) lookUp(ctx context.Context, in placement.Shard, key []byte) (lookedUp, error) {
	ns := p.ns
	over := ns.node.elapsed() + p.patience(in, key)
	for began := time.Now(); ; over = ns.node.deadline(ctx) {
		found, err := ns.lookUpUntil(ctx, over, in, key, true)
		p.heard(&found)
		switch {
		case err == nil:
			return found, nil
		case time.Since(began) > watchPatience:
			return found, fmt.Errorf("%w: of %q, whose shard the directory is to say; go on from the last cursor when its hosts are there again: %w", ErrUnsure, clip(key), err)
		case !sleep(ctx, watchIdleMost):
			return found, context.Cause(ctx)
		}
	}
}

// patience is for how long the hosts of a set are awaited at first.
func (p *placing) patience(in placement.Shard, key []byte) time.Duration {
	n := p.ns.node
	patience := route.Abandoned
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.ns.core.RemoteIn(key, in).Candidates(func(node.ID) bool { return true }) {
		again, late := p.late[c.ID]
		switch {
		case late && n.elapsed() < again:
			patience = watchLate
		case late:
			p.late[c.ID] = n.elapsed() + watchLateAgain // the other shards do not await it, too
		}
	}
	return patience
}

// heard notes which hosts have answered.
func (p *placing) heard(found *lookedUp) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range found.Heard {
		if h.Answer != nil || h.Err != nil {
			delete(p.late, h.Peer)
		} else if _, late := p.late[h.Peer]; !late {
			p.late[h.Peer] = p.ns.node.elapsed() + watchLateAgain
		}
	}
}
