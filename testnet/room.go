package testnet

import (
	"errors"
	"slices"

	"github.com/syncd-io/syncd/internal/refusals"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// maxRooms is how often a person makes room: what was declined may have been under way.
const maxRooms = 5

// An index that is full keeps nodes different, until a person makes room.

// settled reports whether nodes that reach each other have nothing left to bring to one
// another. They are equal, or differ in what finds an index full.
func (r *runner) settled() bool {
	if r.equal() {
		return true
	}
	if r.result.outcome.Refused[plan.RefusedLimit] == 0 {
		return false
	}
	lacks, settled := r.lacks()
	return settled && len(lacks) > 0
}

// dumps is what each group of nodes holds.
func (r *runner) dumps() (groups [][]check.Final) {
	if r.cut() {
		return nil // an index is one of a shard
	}
	for _, group := range r.reach() {
		var finals []check.Final
		for _, i := range group {
			finals = append(finals, check.Final{Node: i, Dump: r.cluster.Node(i).Records()})
		}
		groups = append(groups, finals)
	}
	return groups
}

// lacks is what nodes lack since they have no room for it. settled is false if they
// differ in anything else.
func (r *runner) lacks() (lacks []check.Lack, settled bool) {
	reach := r.reach()
	for i, group := range r.dumps() {
		list := r.cluster.Node(reach[i][0]).List()
		for _, n := range reach[i] {
			if r.cluster.Node(n).List() != list {
				return nil, false
			}
		}
		in, settled := check.Lacking(group, r.cluster.Index, r.due())
		if !settled {
			return nil, false
		}
		for _, l := range in {
			if !l.Collectable || r.listed(&l) {
				lacks = append(lacks, l)
			}
		}
	}
	return lacks, true
}

// listed reports whether a node lists what it lacks as declined.
func (r *runner) listed(l *check.Lack) bool {
	return slices.ContainsFunc(r.cluster.Node(l.Node).Rejected(), func(j refusals.Rejection) bool {
		return string(j.Key) == l.Key && j.Version == l.Version
	})
}

// makeRoom judges nodes that differ only in what finds an index full. It has a person
// do what the list of what was declined asks for: delete such keys where they are held.
// again is false if that is of no use.
func (r *runner) makeRoom() (again bool, err error) {
	r.cluster.Rest()
	if done, err := r.wait(r.world.Now()+lastWords, lastPace, r.quiet); !done {
		r.violate(ruleEndless, -1, "sessions are still under way %s after nodes differed only in what finds an index full", lastWords)
		return false, err
	}
	if r.rooms++; r.rooms > maxRooms {
		return false, nil // the checker will say what differs
	}
	if !r.settled() || r.equal() {
		return true, nil // what was under way has brought more
	}
	r.crowded = true
	err = r.pairs(func(a, b int, err error) {
		if err != nil && !errors.Is(err, syncing.ErrRejected) {
			r.violate(check.Full, a, "a sync with node %d, which differs in nothing but what finds an index full, failed: %v", b, err)
		}
	})
	r.crowded = false
	if err != nil {
		return false, err
	}
	lacks, settled := r.lacks()
	if !settled {
		r.violate(check.Full, -1, "nodes that differed only in what finds an index full differ in more after syncs")
		return false, nil
	}
	for _, group := range r.dumps() {
		r.history.Overfull(group, r.cluster.Index)
	}
	r.result.Full += len(lacks)
	deleted := map[string]bool{}
	for _, l := range lacks {
		r.history.Listed(l, r.listed(&l))
		if deleted[l.Key] {
			continue
		}
		deleted[l.Key] = true
		if l.Expires { // a key that has expired reads as free, and is deleted once it is written
			r.write(&plan.Event{Verb: plan.Put, Node: l.Held, Key: l.Key})
		}
		r.write(&plan.Event{Verb: plan.Del, Node: l.Held, Key: l.Key})
	}
	if err := r.run(r.world.Now() + lastPace); err != nil { // the deletions are committed
		return false, err
	}
	r.world.Skip(forgotten) // what was declined is offered again
	return true, nil
}
