package testnet

import (
	"fmt"
	"time"

	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/model"
)

const (
	// settlePace is how often nodes sync while they settle, if the plan has no
	// background syncs.
	settlePace = 5 * time.Second
	// collecting is how many rounds of syncs a collection takes at the most.
	collecting = 60
	// forgotten is longer than a node keeps the refusals of its peers.
	forgotten = 6 * time.Minute
	// underWay is how long sessions may take that are under way when all is healed.
	underWay = 30 * time.Second
	// lastWords is how long sessions may take that are under way when all nodes
	// are equal.
	lastWords = time.Minute
	lastPace  = 100 * time.Millisecond
	// mostHelps is how often a person does something about nodes that do not become equal.
	mostHelps = 6
)

// settle heals everything, waits until all are equal, and has every pair sync
// once more.
func (r *runner) settle() error {
	if err := r.run(r.thaw() + lastPace); err != nil { // what waits for a frozen process, or for a sync of the disk, still happens
		return err
	}
	if err := r.heal(); err != nil {
		return err
	}
	pace := r.plan.Every
	if pace == 0 {
		pace = settlePace
	}
	from := r.world.Now()
	r.healed = from
	passed := !r.plan.Writer
	for end := from + r.plan.Settle; ; {
		r.cluster.Settle(pace)
		r.waitForAll()
		done, err := r.wait(end, pace/2, r.settling)
		// Shards that were forced into other hosts may need further rounds.
		for tries := 0; !done && err == nil && tries < mostHelps && (r.lapseSilent() || r.forceLayout() || r.cut()); tries++ {
			end += r.plan.Settle
			done, err = r.wait(end, pace/2, r.settling)
		}
		if !done {
			return err // if it is nil: the checker will say what differs
		}
		if !r.equal() {
			if again, err := r.makeRoom(); !again {
				return err
			}
			end = r.world.Now() + r.plan.Settle
			continue
		}
		settled := r.world.Now() - from
		if !passed { // bodies that nothing names are old enough then
			passed = true
			r.cluster.Settle(bodies.Collectable) // no sync is to take so long
			if _, err := r.wait(r.world.Now()+lastWords, lastPace, r.quiet); err != nil {
				return err
			}
			r.world.Skip(bodies.Collectable)
			end, r.healed = end+bodies.Collectable, r.world.Now()
			r.cluster.Settle(pace)
		}
		// Collection follows: pledges need some rounds.
		if done, err := r.wait(end+r.plan.Settle+collecting*pace, pace/2, func() bool {
			return r.equal() && r.rested()
		}); !done {
			if err == nil {
				r.violate(ruleEndless, -1, "all nodes were equal, and %s later they are not, or have not collected all", r.world.Now()-from-settled)
			}
			return err
		}
		if err := r.waited(); err != nil {
			return err
		}
		if err := r.lastLooks(); err != nil {
			return err
		}
		r.cluster.Rest()
		if done, err := r.wait(r.world.Now()+lastWords, lastPace, r.quiet); !done {
			r.violate(ruleEndless, -1, "sessions are still under way %s after all nodes had become equal", lastWords)
			return err
		}
		if r.equal() && r.rested() { // what was under way has changed nothing
			r.result.SettledMS = settled.Milliseconds()
			r.audit()
			return r.idle()
		}
	}
}

// wait lets time pass until a condition holds, which it checks at intervals.
func (r *runner) wait(end, pace time.Duration, so func() bool) (bool, error) {
	for !so() {
		if r.world.Now() >= end {
			return false, nil
		}
		if err := r.run(min(end, r.world.Now()+pace)); err != nil {
			return false, err
		}
		r.sample()
	}
	return true, nil
}

// thaw is when the last frozen process goes on.
func (r *runner) thaw() (last time.Duration) {
	last = r.world.Now()
	for _, n := range r.cluster.Nodes() {
		last = max(last, n.Frozen())
	}
	return last
}

// heal ends all faults of links, processes, clocks and disks. It then waits until
// versions ahead of the true time are of the past, the terms of roles have ended, and
// the nodes' notes of refusals have expired. Nodes that could not join try again, since
// a member that never comes holds all collection back.
func (r *runner) heal() error {
	r.net.HealAll()
	r.net.Calm()
	for i, n := range r.cluster.Nodes() {
		r.fills[i] += 1 << 30 // no fill that ends later matters
		n.Fill(false)
		n.SetClock()
		n.Disarm()
		_ = n.Start() // one that is damaged stays down, and is named in the result
		n.WatchOn()
	}
	// What is under way would be refused by the time before, and noted at the one after.
	if err := r.run(r.world.Now() + underWay); err != nil {
		return err
	}
	latest := r.restamped
	for _, n := range r.cluster.Nodes() {
		if n.Up() {
			latest = max(latest, n.Latest())
		}
	}
	ahead := max(latest.Time().Sub(model.Epoch.Add(r.world.Now())), r.terms-r.world.Now())
	if len(r.result.Refused) > 0 || ahead > 0 {
		r.world.Skip(max(ahead, 0) + forgotten)
	}
	for _, n := range r.cluster.Nodes() {
		n.JoinAgain()
	}
	return nil
}

// quiet reports whether no session, no frame of an earlier session, and no write
// is under way. The first frame of an abandoned session would begin one at the
// other side, with an old digest.
func (r *runner) quiet() bool {
	if r.net.Flying() > 0 {
		return false
	}
	for _, n := range r.cluster.Nodes() {
		if n.Busy() {
			return false
		}
	}
	return true
}

// idle lets each pair of equal nodes ask and sync once more.
func (r *runner) idle() error {
	r.again = true
	if err := r.lastQuestions(); err != nil {
		return err
	}
	if r.cut() {
		if err := r.lastReads(); err != nil {
			return err
		}
	}
	return r.pairs(func(a, b int, err error) {
		if err != nil {
			r.violate(check.Idle, a, "all nodes were equal, and a sync with node %d failed: %v", b, err)
		}
	})
}

// pairs lets each pair sync; of many nodes, each with the next. It tells the outcome of
// each sync.
func (r *runner) pairs(ended func(a, b int, err error)) error {
	for _, group := range r.reach() {
		if r.stuck(group[0]) {
			continue // they differ in what could be collected
		}
		for a := range group {
			for b := a + 1; b < len(group) && (b == a+1 || len(group) <= 12); b++ {
				over := false
				r.cluster.Node(group[a]).Sync(group[b], syncing.Ask{}, func(err error) {
					over = true
					ended(group[a], group[b], err)
				})
				done, err := r.wait(r.world.Now()+lastWords, lastPace, func() bool { return over && r.quiet() })
				if !done {
					r.violate(ruleEndless, group[a], "a sync with node %d has not ended after %s", group[b], lastWords)
					return err
				}
			}
		}
	}
	return nil
}

// judge hands the records of all nodes to the checker, and fills in the result.
func (r *runner) judge() {
	res := &r.result
	var finals []check.Final
	for group, nodes := range r.reach() {
		for _, i := range nodes {
			of, err := r.finals(i, group, nodes)
			if err != nil {
				r.violate(check.KeptState, i, "%v", err)
			}
			finals = append(finals, of...)
		}
		if r.cut() && !r.panicked && r.cluster.Node(nodes[0]).Member() {
			if wrong := r.replicas(nodes); wrong != "" {
				r.violate(check.Replicas, nodes[0], "%s", wrong)
			}
		}
	}
	for i, n := range r.cluster.Nodes() {
		if n.Up() {
			continue
		}
		finals = append(finals, check.Final{Node: i, Down: true})
		res.outcome.Down = append(res.outcome.Down, i)
		if n.Damage() != nil {
			res.Damaged = append(res.Damaged, i)
			if !n.Flipped() {
				r.violate(ruleDamage, i, "it does not start: %v; its disk had no fault", n.Damage())
			}
		}
	}
	for _, group := range r.dumps() {
		r.history.Overfull(group, r.cluster.Index)
	}
	res.Converged = r.equal() && len(res.outcome.Down) == len(res.Damaged)
	r.sample()
	r.powerCut()
	r.cluster.Close()
	r.history.Measured("sessions that have not given back what they held", int64(r.cluster.Open()), 0)
	res.Violations = append(append(res.Violations, r.history.Check(finals)...), r.own...)
	res.outcome.Converged, res.outcome.Corrupt, res.outcome.Misread = res.Converged, res.Damaged, r.misread()
	for _, v := range res.Violations {
		res.outcome.Violations = append(res.outcome.Violations, string(v.Rule))
	}
	res.Unmet = r.plan.Expect.Unmet(res.outcome)
}

// powerCut ends all machines at once and starts them again: acknowledged writes
// must survive that, also in a plan without crashes. A node whose disk has a
// flipped bit may find the damage only now, which is no violation.
func (r *runner) powerCut() {
	for i, n := range r.cluster.Nodes() {
		if !n.Up() || n.Flipped() || r.panicked {
			continue
		}
		n.Crash()
		if err := n.Start(); err != nil {
			r.violate(ruleDamage, i, "it does not start after the last power cut: %v", err)
			continue
		}
		all, err := n.Holdings(finalCells)
		if err != nil {
			r.violate(check.KeptState, i, "after the last power cut: read its cells: %v", err)
		}
		for _, h := range all { // what it has taken up from its disk
			r.history.Kept(&check.Final{Node: i, Dump: h.Records, Kept: h.Kept, Recomputed: h.Recompute()})
		}
	}
}

// finalCells is how many cells are recomputed. A pair shows in about 2·√n of
// the first n.
const finalCells = 1 << 10

// finals are what a node holds in the end; in a namespace of shards its list, and each shard.
func (r *runner) finals(node, group int, members []int) (finals []check.Final, err error) {
	n := r.cluster.Node(node)
	whole := check.Final{
		Node: node, Reach: group * (r.plan.Shards + 1), Outside: !n.Member(), Roster: r.roster(n), Shard: -1, Members: members,
		Stated: r.stated(node), Stuck: r.stuck(node), Now: r.due(),
	}
	if w, _ := n.Wrong(); w.Any() {
		whole.Audit = fmt.Errorf("the sums of %d ranges and %d cells are not those of its records", w.Sums, w.Cells)
	}
	all, err := n.Holdings(finalCells)
	if r.cut() || len(all) == 0 {
		finals = append(finals, whole)
	}
	for _, h := range all {
		f := whole
		if r.cut() {
			f.Reach, f.Shard = whole.Reach+1+h.Shard, h.Shard
		}
		f.Dump, f.Kept, f.Recomputed = h.Records, h.Kept, h.Recompute()
		finals = append(finals, f)
	}
	finals[0].Log = n.Kept()
	return finals, err
}
