package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// Reads and writes where the placement is writer: the locator says which shard a key is in,
// and where it is not sure, the key's entry of the directory does.

// lookUpWritten is lookUp where the placement is writer. A key that is nowhere for sure takes
// no request; one that the locator places takes one, if it is there; any other, one to
// the directory first.
func (ns *Namespace) lookUpWritten(ctx context.Context, key []byte, all bool) (lookedUp, error) {
	a := ns.whereIs(key)
	if a.Where == directory.Nowhere && !all {
		return lookedUp{Found: route.Found{Sure: true}, Shard: ns.core.Entries(key)}, nil
	}
	var hinted lookedUp
	var err error
	asked := false
	if a.Where == directory.In || a.Where == directory.Here {
		asked = true
		if hinted, err = ns.lookUpIn(ctx, a.Shard, key, all); err == nil && hinted.Sure && a.Decided() && !all && there(hinted.Record) {
			return hinted, nil
		}
	}
	entry, err := ns.lookUpIn(ctx, ns.core.Entries(key), key, all)
	entry.add(&hinted)
	switch {
	case err != nil && there(hinted.Record):
		hinted.add(&entry)
		hinted.Sure = false
		return hinted, nil
	case err != nil:
		return entry, err
	case entry.Record == nil && hinted.Record != nil:
		hinted.add(&entry)
		hinted.Sure = false
		return hinted, nil
	case entry.Record == nil, entry.Record.Deleted:
		return entry, nil
	}
	shard, err := directory.ShardOf(entry.Record, ns.core.Rule().Shards)
	if err != nil {
		return entry, fmt.Errorf("%w: %w", ErrCorrupt, err) // it was examined when it came
	}
	found := hinted
	if asked && shard == a.Shard && hinted.Sure && there(hinted.Record) {
		found.add(&entry)
	} else {
		found, err = ns.lookUpIn(ctx, shard, key, all)
		found.add(&entry)
	}
	// While the hosts of the directory are not heard to agree, another first write may win.
	found.Sure = found.Sure && entry.Sure && (a.Decided() || a.Answering && ns.entriesName(ctx, key, shard, &found))
	if err == nil && found.Sure && dangles(entry.Record, found.Record) {
		found.Sure = false
		ns.lookBehind(ctx, shard, entry.Record, &found)
	}
	return found, err
}

// entriesName reports whether all hosts of a key's entry, each of which is asked, hold one that names a
// shard, or none. So what a feed leaves open of a host that tells otherwise than others is
// decided by the records: those it cannot make. What it takes is added to found.
func (ns *Namespace) entriesName(ctx context.Context, key []byte, shard placement.Shard, found *lookedUp) bool {
	in := ns.core.Entries(key)
	tellers := ns.core.Tellers().Of[ns.core.Home(key)]
	entry, err := ns.lookUpIn(ctx, in, key, true)
	found.add(&entry)
	if err != nil || len(tellers) == 0 {
		return false
	}
	said := map[node.ID]*route.Answer{}
	for _, h := range entry.Heard {
		said[h.Peer] = h.Answer
	}
	if here := ns.core.RemoteIn(key, in).Here(); here != nil {
		own, err := here.Answer(key)
		if err != nil {
			return false
		}
		said[node.ID(ns.node.self.id)] = &own
	}
	for _, id := range tellers {
		a := said[id]
		if a == nil || !a.Host || !a.Settled || a.OtherList {
			return false
		}
		if !there(a.Record) {
			continue
		}
		if named, err := directory.ShardOf(a.Record, ns.core.Rule().Shards); err != nil || named != shard {
			return false
		}
	}
	return true
}

// shardFor is the shard that a key's record is in; ErrNotFound: this node does not hold it, or by
// placement writer the key is in none.
func (ns *Namespace) shardFor(ctx context.Context, key []byte) (*shard, error) {
	if !ns.core.Writers() {
		return ns.shardOf(key)
	}
	found, err := ns.lookUp(ctx, key, false)
	switch {
	case err != nil:
		return nil, err
	case found.Record == nil && !found.Sure:
		return nil, ErrUnsure
	case ns.core.Rule().Directory(found.Shard):
		return nil, ErrNotFound
	}
	return ns.numbered(found.Shard)
}

// add adds what another look-up of the key took.
func (f *lookedUp) add(o *lookedUp) {
	f.Requests, f.Hedges = f.Requests+o.Requests, f.Hedges+o.Hedges
	f.Heard = append(f.Heard, o.Heard...)
}

func there(r *dbadapter.Record) bool { return r != nil && !r.Deleted }

// whereIs is what the locator says of a key.
func (ns *Namespace) whereIs(key []byte) directory.Answer {
	home, index := ns.core.EntryIndex(key)
	return ns.follows.locator.Locate(home, index, ns.follows.now())
}

// offerWritten is offer where the placement is writer: the entry goes to the directory
// first, and then the record to its shard, which is this node's own where the key has none.
func (ns *Namespace) offerWritten(ctx context.Context, d node.Draft, deletes bool, ack route.Ack) (offered, error) {
	key := d.Record.Key
	if err := (&dbadapter.Record{Key: key}).Validate(); err != nil {
		return offered{}, err
	}
	conditional := deletes || d.If != nil
	taken := false                 // a host holds the entry, or may
	var others []*dbadapter.Record // of hosts that hold what was not seen
	for tries := 1; ; tries++ {
		entries := ns.core.RemoteIn(key, ns.core.Entries(key))
		if _, err := entries.Enough(ack); err != nil {
			return offered{}, err
		}
		shard, seen, err := ns.writtenIn(ctx, key, tries == 1)
		if err != nil {
			return offered{}, err
		}
		remote := ns.core.RemoteIn(key, shard)
		if conditional {
			held, err := ns.mayOffer(ctx, remote, d, deletes, seen)
			if err != nil {
				return offered{}, err
			}
			seen = append([]*dbadapter.Record{held}, seen...)
		}
		d.Seen = append(seen, others...)
		record, err := remote.Make(d)
		if err != nil {
			return offered{}, err
		}
		entry, err := entries.Entry(record, shard)
		if err != nil {
			return offered{}, err
		}
		begun := ns.follows.now()
		written, err := ns.handOver(ctx, entries, entry, ack)
		taken = taken || written.Taken()
		if err == nil && ns.follows.now()-begun > entryPatience {
			err = errSlept
		}
		if err == nil {
			written, err = ns.handOver(ctx, remote, record, ack)
			taken = true
		}
		switch {
		case err == nil:
			if !record.Deleted {
				home, index := ns.core.EntryIndex(key)
				ns.follows.locator.Wrote(home, index, shard, ns.follows.now())
			}
			return offered{written, record.Version}, nil
		case errors.Is(err, route.ErrOvertaken) && ctx.Err() == nil && tries < node.OfferTries && !(taken && conditional):
			others = append(others, append(written.Others, record)...)
			continue
		}
		return offered{written, record.Version}, ns.unacknowledged(ctx, &written, taken, err)
	}
}

// entryPatience is how much later than its entry a record is written, at the latest: an entry
// without a record for longer counts as one whose author has ended.
const entryPatience = 30 * time.Second

var errSlept = fmt.Errorf("%w: this machine has slept between the entry of the directory and the record, or was too slow: write it again", ErrBusy)

// writtenIn is the shard in which a write of a key belongs, and the key's entry, if the
// directory has one. first: what is nowhere needs no question; a host of the directory
// tells if it holds an entry all the same.
func (ns *Namespace) writtenIn(ctx context.Context, key []byte, first bool) (placement.Shard, []*dbadapter.Record, error) {
	if first && ns.whereIs(key).Where == directory.Nowhere {
		return ns.core.OwnShard(key), nil, nil
	}
	entry, err := ns.lookUpIn(ctx, ns.core.Entries(key), key, false)
	switch {
	case err != nil:
		return 0, nil, err
	case entry.Record == nil:
		return ns.core.OwnShard(key), nil, nil
	case entry.Record.Deleted:
		return ns.core.OwnShard(key), []*dbadapter.Record{entry.Record}, nil
	}
	shard, err := directory.ShardOf(entry.Record, ns.core.Rule().Shards)
	return shard, []*dbadapter.Record{entry.Record}, err
}

// handOver gives a record to the hosts of its set, this node among them if it is one.
func (ns *Namespace) handOver(ctx context.Context, remote *node.Remote, record *dbadapter.Record, ack route.Ack) (route.Written, error) {
	need, err := remote.Enough(ack)
	if err != nil {
		return route.Written{}, err
	}
	var here node.ID
	settled := false
	if remote.Here() != nil {
		held, err := remote.HoldHere(ctx, record, true)
		switch {
		case err != nil:
			return route.Written{}, err
		case held.Declined != nil:
			return route.Written{}, held.Declined
		case held.Other != nil:
			return route.Written{Others: []*dbadapter.Record{held.Other}}, route.ErrOvertaken
		case held.Elsewhere:
			return route.Written{}, node.ErrNotHost
		case need <= 1:
			return route.Written{Need: need, Held: 1, Settled: held.Settled}, nil // a push brings it to the others
		}
		here, settled = node.ID(ns.node.self.id), held.Settled
	}
	hosts, err := remote.Hosts()
	if err != nil {
		return route.Written{}, err
	}
	put, err := route.NewPut(hosts, here, settled, route.Ack(need), ns.node.deadline(ctx), ns.node.elapsed())
	if err != nil {
		return route.Written{}, err
	}
	return ns.hand(ctx, remote, record, put)
}
