package model

import (
	"context"
	"errors"
	"slices"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile"
)

// turn syncs with one peer, a set after the other, and then the list of members, where that
// is all that is shared. over is called when all is done, but not if the process ends
// before.
func (p *process) turn(t node.Turn, over func()) {
	n := p.node
	remote := n.cluster.byID[t.Remote].number
	var next func(sets []*node.Set, control []*node.Namespace)
	next = func(sets []*node.Set, control []*node.Namespace) {
		schedule := p.core.Schedule
		for ; len(sets) > 0; sets = sets[1:] {
			set, sh := sets[0], p.of(sets[0])
			if p.ns == nil || sh == nil || !schedule.Due(set, t.Remote, p.time()) {
				continue
			}
			p.sync(sh, remote, set.Course(t.Remote, node.Ask{}), func(err error) {
				schedule.Note(set, t.Remote, p.time(), n.cluster.nodes[remote].Up(), err)
				next(sets[1:], control)
			})
			return
		}
		for ; len(control) > 0; control = control[1:] {
			ns := control[0]
			if !schedule.DueControl(ns, t.Remote, p.time()) {
				continue
			}
			p.sync(p.bare(), remote, ns.Course(t.Remote), func(err error) {
				schedule.NoteControl(ns, t.Remote, p.time(), n.cluster.nodes[remote].Up(), err)
				next(nil, control[1:])
			})
			return
		}
		over()
	}
	next(t.Sets, t.Control)
}

// syncAll syncs the shards that another node is to hold, too, one after the other; where the
// two share none, the list of members. What is denied is not there, or not yet.
func (p *process) syncAll(remote int, a node.Ask, done func(error)) {
	id := p.node.cluster.nodes[remote].id
	all := slices.DeleteFunc(slices.Clone(p.shards), func(sh *shard) bool { return !sh.set.With(id) })
	if len(all) == 0 {
		p.sync(p.bare(), remote, p.ns.Course(id), done)
		return
	}
	var failed error
	var next func(all []*shard)
	next = func(all []*shard) {
		if len(all) == 0 {
			done(failed)
			return
		}
		p.sync(all[0], remote, all[0].set.Course(id, a), func(err error) {
			if !errors.Is(err, node.ErrDenied) {
				failed = errors.Join(failed, err)
			}
			next(all[1:])
		})
	}
	next(all)
}

// caller is what begins the conversations of a sync: a set, or where the two nodes share
// none, the control namespace.
type caller interface {
	Call(remote node.ID, a node.Ask) (done func())
	Initiate(ctx context.Context, remote node.ID, a node.Ask, enter func(reconcile.Step)) (*node.Conversation, error)
}
