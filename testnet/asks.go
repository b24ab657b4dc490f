package testnet

import (
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/wire"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/model"
	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// waitAfter is a wait that a node began when nothing was wrong any more, for the others that it
// can reach.
type waitAfter struct {
	check.Await
	node int
	done bool
}

// ask makes the event's question at its node.
func (r *runner) ask(e *plan.Event) {
	n := r.cluster.Node(e.Node)
	switch e.Verb {
	case plan.Why:
		n.Why(e.Peer, e.Key, r.explained)
	case plan.Status:
		n.Status(e.Peer) // Answered judges it
	case plan.Wait:
		r.await(n, model.WaitFor{Peers: []int{e.Peer}, For: e.For}, nil)
	case plan.WaitAll:
		r.await(n, model.WaitFor{For: e.For}, nil)
	case plan.WaitKey:
		r.await(n, model.WaitFor{Key: e.Key, Version: r.history.Latest(e.Node, e.Key), Count: int(e.Amount), For: e.For}, nil)
	}
}

// await begins a wait, and has the checker judge it. begun may be nil.
func (r *runner) await(n *model.Node, o model.WaitFor, begun func(check.Await)) {
	var w check.Await
	number := slices.Index(r.cluster.Nodes(), n)
	o.Begun = func(of []int, version dbadapter.Version, held []dbadapter.Record) {
		w = r.history.Awaiting(number, of, o.Key, version, held)
		r.result.Asks++
		if begun != nil {
			begun(w)
		}
	}
	o.Confirmed = func(member int) {
		r.history.Confirmed(w, member, r.cluster.Node(member).FloorAt())
	}
	if o.Ended == nil {
		o.Ended = func(bool) {}
	}
	n.Wait(o)
}

// Answered implements model.Watcher.
func (r *runner) Answered(q *model.Question) {
	r.result.Asks++
	n := r.cluster.Node(q.Peer)
	switch a := q.Reply.Answer.(type) {
	case *wire.KeyAnswer:
		asked := q.Ask.Question.(*wire.AskKey)
		t := check.Told{Node: q.Peer, Asker: q.Node, Key: string(asked.Held.Key), Asked: asked.Held, Said: a.Held, Declines: a.Declines}
		t.Door = r.door(q.Peer, q.Node, q.There, q.Ask.Greeting.Floor)
		r.history.Told(&t)
	case *wire.SetAnswer:
		r.sumIs(q, n, a.Sum)
	case *wire.StatusAnswer:
		r.sumIs(q, n, a.Sum)
		for _, record := range n.Records() {
			if record.Version.Clock > a.Newest {
				r.violate(ruleStatus, q.Peer, "it tells node %d that %s is the newest version; it holds %s", q.Node, a.Newest.Time(), record.Version)
			}
		}
	}
}

// sumIs compares what a node tells of all that it holds with what it holds.
func (r *runner) sumIs(q *model.Question, n *model.Node, told dbadapter.Sum) {
	if wrong, _ := n.Wrong(); wrong.Any() {
		return
	}
	has := model.Recompute(r.cluster.Keys(), model.Buckets(r.cluster.Keys().Hasher, n.Records()), 0)
	if told != (dbadapter.Sum{Records: has.Records, Digest: has.Digest}) {
		r.violate(ruleStatus, q.Peer, "it tells node %d of %d records; it holds %d, or others", q.Node, told.Records, has.Records)
	}
}

// recovers is the floor that a node tells of that recovers.
const recovers = ^dbadapter.Timestamp(0)

// door is by what a node decides upon records of another one.
func (r *runner) door(number, from int, v model.View, theirs dbadapter.Timestamp) check.Door {
	n := r.cluster.Node(number)
	d := v.Door
	d.Theirs, d.TheyRecover = theirs, theirs == recovers
	if roster := n.Roster(); roster != nil {
		d.MayWrite, d.TheirsMayWrite = n.Writes(number), n.Writes(from)
		d.Allows = r.roster(n).Allows
	}
	return d
}

// explained judges what a node says of a key, and of another node.
func (r *runner) explained(e *model.Explained) {
	if e.Reply == nil {
		if r.again {
			r.violate(check.Why, e.Node, "all nodes are equal and in reach, and node %d does not answer: %v", e.Peer, e.Err)
		}
		return
	}
	if e.Err != nil {
		r.violate(check.Why, e.Node, "it makes nothing of the answer of node %d: %v", e.Peer, e.Err)
		return
	}
	asked := e.Ask.Question.(*wire.AskKey)
	x := check.Explained{
		Node: e.Node, Peer: e.Peer, Key: string(asked.Held.Key), Standing: string(e.Why.Standing), Here: e.Asked.Holds, There: e.There.Holds,
		Declined: e.Reply.Answer.(*wire.KeyAnswer).Declines, Lapsed: e.Lapsed, ListsDiffer: e.There.List != e.Here.List,
	}
	if !e.There.Recovers {
		x.PeerFloor = e.There.Floor
	}
	for _, c := range e.Why.Causes {
		r.caused(c)
		x.Causes = append(x.Causes, check.Cause{Kind: string(c.Kind), Rule: c.Rule})
	}
	x.Door = r.door(e.Node, e.Peer, e.Here, e.Reply.Greeting.Floor)
	r.history.Explained(&x)
}

// ruleWords are the rules by which records are declined, as expectations name them.
var ruleWords = map[wire.Reason]string{
	wire.ReasonClock: "clock", wire.ReasonSignature: "signature", wire.ReasonWriter: "writer", wire.ReasonFloor: "floor", wire.ReasonFull: "full", wire.ReasonBody: "body",
}

// caused counts a cause, as an expectation names it.
func (r *runner) caused(c status.Cause) {
	name := string(c.Kind)
	if c.Rule != 0 {
		name += ": " + ruleWords[c.Rule]
	}
	if r.result.outcome.Causes == nil {
		r.result.outcome.Causes = map[string]int{}
	}
	r.result.outcome.Causes[name]++
}

// asking reports whether the plan has questions.
func (r *runner) asking() bool {
	return slices.ContainsFunc(r.plan.Events, func(e plan.Event) bool { return e.Verb.Asks() })
}

// waitForAll has each node wait for all others that it reaches, when nothing is wrong any
// more. Each wait must have ended by the time that they are equal.
func (r *runner) waitForAll() {
	if !r.asking() {
		return
	}
	r.waits = nil // those before have ended while room was made
	for _, group := range r.reach() {
		for _, i := range group {
			others := slices.DeleteFunc(slices.Clone(group), func(other int) bool { return other == i || !r.cluster.Node(i).Lists(other) })
			if len(others) == 0 || len(group) > 12 {
				continue
			}
			w := &waitAfter{node: i}
			r.await(r.cluster.Node(i), model.WaitFor{Peers: others, Ended: func(bool) { w.done = true }}, func(a check.Await) {
				w.Await = a
				r.waits = append(r.waits, w)
			})
		}
	}
}

// lastWaits is how long a wait may take that nothing hinders.
const lastWaits = 30 * time.Second

// waited judges the waits that began when nothing was wrong any more, once all are equal.
func (r *runner) waited() error {
	over := func() bool {
		return !slices.ContainsFunc(r.waits, func(w *waitAfter) bool { return !w.done })
	}
	if _, err := r.wait(r.world.Now()+lastWaits, lastPace, over); err != nil {
		return err
	}
	for _, group := range r.reach() {
		if r.stuck(group[0]) {
			continue // they differ in what could be collected
		}
		for _, w := range r.waits {
			if !w.done && slices.Contains(group, w.node) {
				members := slices.DeleteFunc(slices.Clone(group), func(other int) bool {
					return other == w.node || !r.cluster.Node(w.node).Lists(other) || !r.cluster.Node(other).Lists(w.node)
				})
				r.history.Unheard(w.Await, members)
			}
		}
	}
	return nil
}

// lastQuestions has each pair ask about some keys when all are equal: each answers, and
// says the same.
func (r *runner) lastQuestions() error {
	if !r.asking() {
		return nil
	}
	for _, group := range r.reach() {
		if r.stuck(group[0]) || len(group) > 12 {
			continue
		}
		records := r.cluster.Node(group[0]).Records()
		keys := []string{"never-written"}
		for i := range min(2, len(records)) {
			keys = append(keys, string(records[i*(len(records)-1)].Key))
		}
		open := 0
		for _, i := range group {
			for _, other := range group {
				if i == other {
					continue
				}
				for _, key := range keys {
					open++
					r.cluster.Node(i).Why(other, key, func(e *model.Explained) {
						open--
						r.explained(e)
						if e.Err == nil && e.Why.Standing != status.StandingSame && e.Why.Standing != status.StandingNeither {
							r.violate(check.Why, i, "all nodes are equal, and of %q it says that it is %q at node %d", key, e.Why.Standing, other)
						}
					})
				}
			}
		}
		done, err := r.wait(r.world.Now()+lastWords, lastPace, func() bool { return open == 0 })
		if !done {
			r.violate(check.Why, group[0], "%d questions have not ended after %s", open, lastWords)
			return err
		}
	}
	return nil
}
