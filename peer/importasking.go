package peer

import (
	"context"
	"errors"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// An import asks the hosts of a set at once, and does not wait for all of them: one that hangs would hold
// up each message for importPatience.

const (
	// importPatience is for how long a host has to take a message of an import: many records.
	importPatience = 30 * time.Second
	// importLinger is for how long further hosts are awaited where enough have answered, and at least for
	// as long again as those took. What was sent to the others goes on.
	importLinger = 2 * time.Second
	// importSlow is for how long a host counts as slow that has failed, or was not awaited. It is
	// asked where the others are too few; to one that others do for, a push or a sync brings the records.
	importSlow = time.Minute
)

// inquiry is a message to several hosts.
type inquiry struct {
	weight int // of the records
	// oneList: a host counts as settled only if it has the list of members that this node has. By another
	// one a further node may hold the records.
	oneList bool
	// remembered are the records that this node remembers until each host was heard to hold them.
	remembered []dbadapter.Record
	about      func(node.ID) (*wire.Ask, error)
	// heard is told what a host has answered, by one goroutine.
	heard func(id ID, outcomes []route.Outcome, sent bool, err error)
	// lacks: too few hosts have answered.
	lacks func() bool
}

// inquire asks hosts. It ends when all that it has asked have answered, or a moment after enough have; what
// is heard later is left.
func (im *shardImport) inquire(ctx context.Context, remote *node.Remote, named []node.ID, q *inquiry) {
	r := &im.ns.node.routing
	var hosts, slow []ID
	for _, host := range named {
		switch id := ID(host); {
		case id == im.ns.node.self.id:
		case r.isSlow(id, im.ns.node.elapsed()):
			slow = append(slow, id)
		default:
			hosts = append(hosts, id)
		}
	}
	over, end := context.WithCancel(ctx)
	defer end()
	answers := make(chan func())
	waiting := map[ID]bool{}
	ask := func(hosts []ID) {
		for _, id := range hosts {
			waiting[id] = true
			im.ns.request(func() {
				outcomes, sent, err := im.ask(over, remote, id, q)
				select {
				case answers <- func() { delete(waiting, id); q.heard(id, outcomes, sent, err) }:
				case <-over.Done():
				}
			})
		}
	}
	ask(hosts)
	begun, until := time.Now(), time.Now().Add(importLinger)
	for enough := false; ; {
		if lacks := q.lacks(); lacks && (len(waiting) == 0 || !time.Now().Before(until)) && len(slow) > 0 {
			ask(slow)
			slow = nil
		} else if !lacks && !enough {
			enough, until = true, time.Now().Add(max(importLinger, time.Since(begun)))
		}
		if len(waiting) == 0 {
			return
		}
		wait := importPatience // each answers by then, or has failed
		if enough || len(slow) > 0 {
			wait = time.Until(until)
		}
		select {
		case note := <-answers:
			note()
		case <-time.After(wait):
			if enough {
				for id := range waiting {
					r.slowed(id, true, im.ns.node.elapsed())
				}
				return
			}
		case <-ctx.Done():
			for id := range waiting {
				q.heard(id, nil, true, context.Cause(ctx))
			}
			return
		}
	}
}

// ask asks one host. It lasts as long as the namespace, and not as the import's wait, which over ends.
func (im *shardImport) ask(over context.Context, remote *node.Remote, id ID, q *inquiry) (outcomes []route.Outcome, sent bool, err error) {
	ns, n := im.ns, im.ns.node
	ctx, cancel := context.WithTimeout(ns.ctx, importPatience)
	defer cancel()
	leave, err := n.placeFor(ctx, over, id, q.weight)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	n.metrics.routed.WithLabelValues("write").Inc()
	ask, m, sent, err := n.askRouted(ctx, id, q.about, nil)
	n.routing.slowed(id, err != nil, n.elapsed())
	if err != nil {
		return nil, sent, err
	}
	outcomes, err = remote.Outcomes(node.ID(id), ask, m)
	n.blame(ns, id, m, err)
	if err == nil && q.oneList {
		said, failed := remote.Greeting(node.ID(id), ask, m)
		for at := range outcomes {
			outcomes[at].Settled = outcomes[at].Settled && failed == nil && remote.SameList(&said)
		}
	}
	if err == nil && outcomes[0].Elsewhere {
		return nil, false, &elsewhere{outcomes[0].Layout}
	}
	for at := range q.remembered {
		if err == nil && outcomes[at].Held {
			ns.core.HeldBy(&q.remembered[at], node.ID(id))
		}
	}
	return outcomes, sent && err != nil && !errors.Is(err, ErrDenied) && !errors.Is(err, ErrBusy), err
}

// isSlow reports whether imports do without a host where others are enough.
func (r *routing) isSlow(id ID, now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	until, is := r.slow[id]
	if is && now >= until {
		delete(r.slow, id)
	}
	return now < until
}

// slowed notes whether a host was slow.
func (r *routing) slowed(id ID, was bool, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !was:
		delete(r.slow, id)
	case r.slow == nil:
		r.slow = map[ID]time.Duration{id: now + importSlow}
	default:
		r.slow[id] = now + importSlow
	}
}
