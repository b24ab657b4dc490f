package peer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// ErrUnsure: no host that can be sure has answered: whether the key holds a record, or
// which, is not known; try again. It is ErrUnreachable, too.
var ErrUnsure = node.ErrUnsure

// routePatience is how long a routed read or write goes on, where its context does not end
// before; that of a page goes on for so long after a part of it has come. To make the lists equal in
// between takes what is left of it: a busy peer is not awaited any longer.
const routePatience = 10 * time.Second

// deadline is when a routed read or write is over, by the deciders' clock.
func (n *Node) deadline(ctx context.Context) time.Duration {
	over := n.elapsed() + routePatience
	if at, ok := ctx.Deadline(); ok {
		over = min(over, at.Sub(n.begun))
	}
	return over
}

// steady is a clock that never runs fast.
func (ns *Namespace) steady() time.Duration {
	if ns.follows != nil {
		return ns.follows.steady()
	}
	return ns.node.elapsed()
}

// lookedUp is what a look-up has found of a key.
type lookedUp = node.LookedUp

// lookUp finds the record under a key of a namespace that is cut into shards: here, if this
// node is a host that is sure, and otherwise at the shard's hosts. all: at all of them.
// The error is ErrUnsure where no host has answered; what is found without being sure is
// told without an error.
func (ns *Namespace) lookUp(ctx context.Context, key []byte, all bool) (found lookedUp, err error) {
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	found, err = ns.lookUpUntil(ctx, ns.node.deadline(ctx), key, all)
	ns.node.metrics.lookedUp(&found, err)
	return found, err
}

// ownPatience is for how long a read waits for the hosts that may have this node's own write.
const ownPatience = 2 * time.Second

// readKey is lookUp for a read on which nothing is written: where the placement has a locator, a
// key that is nowhere by it takes no request. Where a host gives what may be behind this node's own write, of which it
// may not have heard yet, all are asked; what does not tell of the write then is not sure.
func (ns *Namespace) readKey(ctx context.Context, key []byte, all bool) (found lookedUp, err error) {
	recalled := ns.core.Recall(key, ns.steady()) // before: what is written meanwhile is not awaited
	found, err = ns.readPlaced(ctx, key, all)
	if err != nil || !found.Sure || !recalled.Reads() || recalled.Tells(&found, all) {
		return found, err
	}
	if !all {
		asking, end := context.WithTimeout(ctx, ownPatience)
		again, failed := ns.lookUp(asking, key, true)
		end()
		switch {
		case failed == nil:
			found, all = again, true
		case ctx.Err() != nil:
			return found, context.Cause(ctx)
		}
	}
	if found.Sure && !recalled.Tells(&found, all) {
		found.Behind()
	}
	return found, nil
}

func (ns *Namespace) readPlaced(ctx context.Context, key []byte, all bool) (found lookedUp, err error) {
	if ns.follows == nil {
		return ns.lookUp(ctx, key, all)
	}
	ns.heedTellers() // a layout may have come since, with hosts that have told nothing
	if !all && ns.core.Nowhere(ns.follows.locator, key, ns.follows.now()) {
		found.Sure = true
		ns.node.metrics.lookedUp(&found, nil)
		return found, nil
	}
	if found, err = ns.lookUp(ctx, key, all); found.Record != nil {
		ns.core.Noticed(ns.follows.locator, key, false, ns.follows.now())
	}
	return found, err
}

// wrote tells the locator, if there is one for misses alone, of a write of this node that hosts
// hold, or may.
func (ns *Namespace) wrote(key []byte) {
	if ns.follows != nil {
		ns.core.Noticed(ns.follows.locator, key, true, ns.follows.now())
	}
}

// lookUpUntil is lookUp until a deadline.
func (ns *Namespace) lookUpUntil(ctx context.Context, over time.Duration, key []byte, all bool) (lookedUp, error) {
	var gone []node.ID
	anew := false
	for tries := 1; ; tries++ {
		found, why, err := ns.lookUpOnce(ctx, over, key, all, gone)
		if errors.Is(err, ErrClosed) && ctx.Err() == nil && tries == 1 {
			continue // the shard has left this node meanwhile
		}
		if !anew && found.Anew() && ctx.Err() == nil {
			gone, anew, over = found.Gone, true, max(over, ns.node.elapsed()+heedLeast)
			tries--
			continue
		}
		if err == nil && found.Sure || ctx.Err() != nil || tries > 1 || !ns.heed(ctx, over, why, found.Moved, found.MovedBy) {
			if err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return found, err
		}
		over = max(over, ns.node.elapsed()+heedLeast)
	}
}

// lookUpRested looks up a key on which a write rests, until a deadline: where what was found may be behind what
// this node itself has written, at all hosts.
func (ns *Namespace) lookUpRested(ctx context.Context, over time.Duration, key []byte) (lookedUp, error) {
	return ns.core.Recall(key, ns.steady()).LookUp(func(all bool) (lookedUp, error) { return ns.lookUpUntil(ctx, over, key, all) })
}

// getRouted is Get in a namespace that is cut into shards. That a key holds nothing is said
// where a host is sure of it; otherwise the error is ErrUnsure, beside which a record is
// given that was found without a host that is sure.
func (ns *Namespace) getRouted(ctx context.Context, key []byte) (dbadapter.Record, error) {
	found, err := ns.readKey(ctx, key, false)
	switch {
	case err != nil:
		return dbadapter.Record{}, err
	case found.Record != nil && found.Sure:
		return *found.Record, ns.core.Absent(found.Record)
	case found.Record != nil:
		return *found.Record, found.Unsure()
	case !found.Sure:
		return dbadapter.Record{}, found.Unsure()
	}
	return dbadapter.Record{}, ErrNotFound
}

func (ns *Namespace) lookUpOnce(ctx context.Context, over time.Duration, key []byte, all bool, gone []node.ID) (f lookedUp, why map[ID]error, err error) {
	remote := ns.core.Remote(key)
	remote.Gone(gone)
	o, err := remote.GetOptions()
	if err != nil {
		return f, nil, err
	}
	o.All, o.Deadline = all, over
	if own := o.Here; own != nil && own.Host {
		f.Here = true
		if own.Current && own.Record != nil && !all {
			f.Record, f.Sure = own.Record, true
			return f, nil, nil
		}
	}
	f.Found, err = ns.readAt(ctx, remote, o, &ns.node.routing.times, func(ctx context.Context, id ID, _ func()) (route.Answer, error) { return ns.readOf(ctx, remote, id) })
	why = map[ID]error{}
	for i := range f.Heard {
		h := &f.Heard[i]
		switch {
		case h.Err != nil:
			why[ID(h.Peer)] = h.Err
		case h.Answer != nil && h.Answer.OtherList:
			why[ID(h.Peer)] = errOtherList
		}
	}
	ns.contradicted(&f.Found)
	if err != nil && f.Record == nil && !f.Sure {
		return f, why, fmt.Errorf("%w: %s", ErrUnsure, words(why))
	}
	return f, why, nil
}

// contradicted counts and logs the hosts that are current and lack what another one that is
// settled holds: they lag for a moment, or hide it.
func (ns *Namespace) contradicted(f *route.Found) {
	if !f.Sure || f.Record == nil {
		return
	}
	n := ns.node
	for _, h := range f.Heard {
		if h.Answer != nil && h.Answer.Current && h.Answer.Record == nil {
			n.metrics.routed.WithLabelValues("contradicted").Inc()
			n.log.With(logPeer(ID(h.Peer)), logNamespace(ns)).Warn("a host said of a key that it holds nothing, and another one holds a record: the first has not heard of it yet, or hides it")
		}
	}
}

// words say why hosts have not answered, on one line.
func words(why map[ID]error) string {
	if len(why) == 0 {
		return "none was reached"
	}
	var all []string
	for _, id := range slices.Sorted(maps.Keys(why)) {
		all = append(all, fmt.Sprintf("%s: %v", id, why[id]))
	}
	return strings.Join(all, "; ")
}

// request runs a request beside its caller; it ends before the namespace does.
func (ns *Namespace) request(run func()) {
	if !ns.gate.enter() {
		return // the namespace closes: its context is over, too
	}
	go func() {
		defer ns.gate.leave()
		run()
	}()
}

// readOf asks one host.
func (ns *Namespace) readOf(ctx context.Context, remote *node.Remote, id ID) (route.Answer, error) {
	n := ns.node
	n.metrics.routed.WithLabelValues("read").Inc()
	leave, err := n.routing.places.take(ctx, id)
	if err != nil {
		return route.Answer{}, err
	}
	defer leave()
	ask, m, _, err := n.askRouted(ctx, id, remote.AskRecord, nil)
	if err != nil {
		return route.Answer{}, err
	}
	answer, err := remote.Record(node.ID(id), ask, m)
	n.blame(ns, id, m, err)
	return answer, err
}

// blame counts and logs an answer that was refused, and one that this node refuses.
func (n *Node) blame(ns *Namespace, id ID, m wire.Message, err error) {
	switch _, refused := m.(*wire.Refuse); {
	case err == nil:
	case refused:
		n.metrics.routed.WithLabelValues("refused").Inc()
	default:
		n.metrics.routed.WithLabelValues("false").Inc()
		n.log.With(logPeer(id), logNamespace(ns)).Warn("a host has answered what this node does not believe", logError(err))
	}
}
