package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// What node.ByWriter decides of the keys of a namespace whose placement is writer is carried out here.

// byWriter is a namespace, as the driver of its node.ByWriter.
type byWriter struct{ ns *Namespace }

// setsAtOnce sets are asked for one key at once.
const setsAtOnce = 8

var _ node.WriterDriver = byWriter{}

// LookUpIn implements node.WriterDriver.
func (b byWriter) LookUpIn(ctx context.Context, in placement.Shard, key []byte, all bool) (lookedUp, error) {
	return b.ns.lookUpIn(ctx, in, key, all)
}

// Hand implements node.WriterDriver.
func (b byWriter) Hand(ctx context.Context, remote *node.Remote, record *dbadapter.Record, here node.ID, settled bool, need int, how route.Manner) (route.Written, error) {
	n := b.ns.node
	hosts, err := remote.Hosts()
	if err != nil {
		return route.Written{}, err
	}
	put, err := route.NewPut(hosts, here, settled, route.Ack(need), n.deadline(ctx), n.elapsed())
	if err != nil {
		return route.Written{}, err
	}
	put.Manner = how
	return b.ns.hand(ctx, remote, record, put)
}

// Heed implements node.WriterDriver.
func (b byWriter) Heed(ctx context.Context, written *route.Written) bool {
	return b.ns.heed(ctx, b.ns.node.deadline(ctx), refusals(written), written.Moved, written.MovedBy)
}

// Each implements node.WriterDriver.
func (b byWriter) Each(ctx context.Context, sets []placement.Shard, do func(placement.Shard)) {
	places := make(chan struct{}, setsAtOnce)
	var running sync.WaitGroup
	defer running.Wait()
	for _, set := range sets {
		places <- struct{}{}
		if ctx.Err() != nil {
			return
		}
		running.Go(func() {
			defer func() { <-places }()
			do(set)
		})
	}
}

// Connected implements node.WriterDriver.
func (b byWriter) Connected(id node.ID) bool { return b.ns.node.connected(ID(id)) }

// Locator implements node.WriterDriver.
func (b byWriter) Locator() *directory.Locator {
	b.ns.heedTellers() // a layout may have come since, with hosts that have told nothing
	return b.ns.follows.locator
}

// Now implements node.WriterDriver.
func (b byWriter) Now() time.Duration { return b.ns.follows.now() }

// Steady implements node.WriterDriver.
func (b byWriter) Steady() time.Duration { return b.ns.follows.steady() }

// Met implements node.WriterDriver.
func (b byWriter) Met(what node.Meeting, shard placement.Shard, err error) {
	ns := b.ns
	say := func(level slog.Level, text string) {
		args := []slog.Attr{logNamespace(ns), slog.Int("shard", int(shard))}
		if err != nil {
			args = append(args, logError(err))
		}
		ns.node.log.LogAttrs(context.Background(), level, text, args...)
	}
	met := func(how string) { ns.node.metrics.met.WithLabelValues(ns.Name(), how).Inc() }
	switch what {
	case node.Receded:
		met("receded")
		say(slog.LevelWarn, "a key was first written by two nodes that had not heard of one another: what was later stands, a record or its deletion, and the other record is in the list of conflicts of this shard's hosts (syncd conflicts)")
	case node.RestoredLost:
		met("restored")
		say(slog.LevelWarn, "a record was written anew: no entry of the directory led to it: the entry was lost, or was that of a deletion of another record of the key, and was collected since; if the key was deleted, delete it again")
	case node.RestoredHidden:
		met("restored")
		say(slog.LevelWarn, "a record was written anew: the entry of the directory that had hidden it leads to none, since its author has ended before the record was written, or that was lost")
	case node.Undecided:
		say(slog.LevelDebug, "what becomes of a record that the directory places elsewhere could not be decided, and is tried again")
	case node.Unlooked:
		say(slog.LevelWarn, "the records of a shard could not be looked through, and it is tried again")
	}
}

// shardFor is the shard that a key's record is in; ErrInvalid: this node does not hold it; ErrNotFound: by
// placement writer the key is in none.
func (ns *Namespace) shardFor(ctx context.Context, key []byte) (*shard, error) {
	if !ns.core.Writers() {
		return ns.atHost(ns.shardOf(key))
	}
	found, err := ns.lookUp(ctx, key, false)
	switch {
	case err != nil:
		return nil, err
	case found.Record == nil && !found.Sure:
		return nil, found.Unsure()
	case ns.core.Rule().Directory(found.Shard):
		return nil, ErrNotFound
	}
	return ns.atHost(ns.numbered(found.Shard))
}

// atHost says of a shard that this node does not hold that the call is for its hosts.
func (ns *Namespace) atHost(sh *shard, err error) (*shard, error) {
	if errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w: this node is no host of the key's shard, and holds nothing to compare: ask at a host of it, which syncd locate names", ErrInvalid)
	}
	return sh, err
}

// whereIs is what the locator says of a key.
func (ns *Namespace) whereIs(key []byte) directory.Answer { return ns.follows.byWriter.WhereIs(key) }

// offerWritten is offer where the placement is writer.
func (ns *Namespace) offerWritten(ctx context.Context, d node.Draft, deletes bool, ack route.Ack) (offered, error) {
	o, err := ns.follows.byWriter.Offer(ctx, d, deletes, ack, nil)
	if err != nil && (o.Need > 0 || o.Taken) {
		err = ns.unacknowledged(ctx, &o.Written, o.Taken, err)
	}
	return offered{o.Written, o.Version}, err
}
