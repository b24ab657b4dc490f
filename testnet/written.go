package testnet

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/model"
	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// A namespace whose placement is writer: what is asked of it, and what is so in the end. A key may
// be in several shards there, so that check.Written judges it in the place of check.History.

// writtenWatcher is a runner of such a namespace, as its nodes tell it what they do.
type writtenWatcher struct{ *runner }

func (w writtenWatcher) Started(int, []dbadapter.Record)         {}
func (w writtenWatcher) Restamping(int, []dbadapter.Write)       {}
func (w writtenWatcher) Removing(int, []dbadapter.Write)         {}
func (w writtenWatcher) Collected(int, *dbadapter.Record, []int) {}
func (w writtenWatcher) SetAside(int, *dbadapter.Record)         {}
func (w writtenWatcher) Recovering(int, bool)                    {}
func (w writtenWatcher) Heard(int, []dbadapter.Record)           {}
func (w writtenWatcher) Holds(int, int)                          {}
func (w writtenWatcher) Observed(node int, record *dbadapter.Record) {
	w.written.Observed(node, record)
}

func (w writtenWatcher) Left(node, shard int, records []dbadapter.Record) {
	w.written.Left(node, w.cluster.Node(node).Hosts(shard), records)
}

func (w writtenWatcher) Ended(e *model.Ended) {
	if e.Initiator {
		w.result.Sessions++
	}
}

// Met implements model.Watcher.
func (r *runner) Met(_ int, what node.Meeting) {
	if what == node.Receded {
		r.result.Met++
	}
}

// watcher is what nodes tell what they do.
func (r *runner) watcher() model.Watcher {
	if r.plan.Writer {
		return writtenWatcher{r}
	}
	return r
}

// offerWritten writes at any node.
func (r *runner) offerWritten(e *plan.Event) {
	o := model.Offer{Key: e.Key, Deletes: e.Verb == plan.Del}
	if !o.Deletes {
		o.Value = r.plan.Value(e, 0)
	}
	o.Ack, _ = route.ParseAck(e.Ack) // the plan was checked
	op := r.written.Asked(e.Key, o.Deletes, o.Value, r.world.Now())
	o.Made = func(v dbadapter.Version) { r.written.Made(op, v) }
	o.Held = func(v dbadapter.Version, hosts []int) {
		r.result.Routed++
		r.written.Acknowledged(op, v, hosts, r.world.Now())
	}
	o.Failed = func(_ error, written bool) {
		if !written {
			r.written.Refused(op)
		}
	}
	r.cluster.Node(e.Node).Offer(o)
}

// readWritten reads a key at any node.
func (r *runner) readWritten(node int, key string, found func(*model.Found)) {
	read := check.WrittenRead{Node: node, Key: key, Asked: r.world.Now()}
	r.cluster.Node(node).Read(key, func(f *model.Found) {
		found(f)
		if f.Err == nil {
			r.result.Routed++
			r.written.Read(read, f.Record, f.Sure, f.By, f.Requests)
		}
	})
}

// writtenFinals are what the nodes of a group hold of each key.
func (r *runner) writtenFinals(group []int) (finals []check.WrittenFinal) {
	rule := r.plan.Rule()
	for _, key := range r.plannedKeys() {
		f := check.WrittenFinal{Key: key, Named: -1, Records: map[int]*dbadapter.Record{}}
		for _, i := range group {
			all, err := r.cluster.Node(i).Holdings(0)
			if err != nil {
				r.violate(check.KeptState, i, "%v", err)
			}
			for _, h := range all {
				at := slices.IndexFunc(h.Records, func(one dbadapter.Record) bool { return string(one.Key) == key })
				if at < 0 || h.Records[at].Deleted {
					continue
				}
				if !rule.Directory(placement.Shard(h.Shard)) {
					f.Records[h.Shard] = &h.Records[at]
				} else if named, err := directory.ShardOf(&h.Records[at], rule.Shards); err != nil {
					r.violate(check.Placed, i, "%v", err)
				} else {
					f.Named, f.Entry = int(named), &h.Records[at]
				}
			}
		}
		finals = append(finals, f)
	}
	return finals
}

// meets says what first writes that met have still to come to; empty: nothing.
func (r *runner) meets(group []int) string {
	for _, f := range r.writtenFinals(group) {
		switch {
		case len(f.Records) > 1, len(f.Records) == 1 && f.Records[f.Named] == nil:
			return fmt.Sprintf("%q is in %d shards, and its entry names %d", f.Key, len(f.Records), f.Named)
		}
	}
	return ""
}

// together are all members, where they are in reach of one another; nil: they are not.
func (r *runner) together() (group []int) {
	for _, g := range r.reach() {
		if !r.cluster.Node(g[0]).Member() {
			continue
		}
		if group != nil {
			return nil
		}
		group = g
	}
	return group
}

// followed is how long a node may take until it knows what the directory says, when nothing changes.
const followed = 2 * time.Minute

// lastTurns is how often what is held may change then: hosts may have records to write anew.
const lastTurns = 100

// lastFinals are what a group holds of each key once it has held that for as long as a read may lag
// behind, and each node has heard what the directory says; nil: one has not. A record that a host
// has written anew just now is read as one that is not there.
func (r *runner) lastFinals(group []int) ([]check.WrittenFinal, error) {
	all := func() []check.WrittenFinal {
		return append(r.writtenFinals(group), check.WrittenFinal{Key: "never-written", Named: -1})
	}
	finals := all()
	for range lastTurns {
		if err := r.run(r.world.Now() + check.AnswerAge + time.Second); err != nil {
			return nil, err
		}
		// A look-up is sure while the hosts of the directory were heard lately, and agree.
		done, err := r.wait(r.world.Now()+followed, lastPace, func() bool {
			return !slices.ContainsFunc(group, func(i int) bool {
				return slices.ContainsFunc(finals, func(f check.WrittenFinal) bool { return !r.cluster.Node(i).Follows(f.Key) })
			})
		})
		if !done {
			r.violate(check.Answer, group[0], "after %s of rest a node does not know what the directory says", followed)
			return nil, err
		}
		now := all()
		if slices.EqualFunc(finals, now, sameFinal) {
			return now, nil
		}
		finals = now
	}
	r.violate(check.Answer, group[0], "what is held changes again and again while all rests")
	return nil, nil
}

// sameFinal reports whether the same versions are held of a key.
func sameFinal(a, b check.WrittenFinal) bool {
	same := func(x, y *dbadapter.Record) bool {
		return (x == nil) == (y == nil) && (x == nil || x.Version == y.Version)
	}
	return a.Key == b.Key && a.Named == b.Named && same(a.Entry, b.Entry) && maps.EqualFunc(a.Records, b.Records, same)
}

// lastWritten reads each key at each node, when all hosts are equal.
func (r *runner) lastWritten() error {
	if group := r.together(); group != nil && r.replicas(group) == "" {
		finals, err := r.lastFinals(group)
		if err != nil || finals == nil {
			return err
		}
		open := 0
		for n := range finals {
			f := &finals[n]
			if len(f.Records) == 0 && f.Named >= 0 {
				continue // its author has ended in between: a look-up is sure after a while
			}
			// So is one that finds an earlier record, if the key has moved.
			held := f.Records[f.Named]
			ended := held != nil && f.Entry != nil && !f.Entry.Deleted && f.Entry.Version.Compare(held.Version) > 0
			for _, i := range group {
				read := check.WrittenRead{Node: i, Key: f.Key, Asked: r.world.Now()}
				open++
				r.cluster.Node(i).Read(f.Key, func(found *model.Found) {
					open--
					r.result.Routed++
					r.written.Read(read, found.Record, found.Sure, found.By, found.Requests)
					r.written.Final(i, f.Key, found.Record, found.Sure || ended, found.Err, held)
				})
			}
		}
		if done, err := r.wait(r.world.Now()+lastWords, lastPace, func() bool { return open == 0 }); !done {
			r.violate(check.Answer, group[0], "%d reads have not ended after %s", open, lastWords)
			return err
		}
	}
	return nil
}

// judgeWritten judges what is held in the end.
func (r *runner) judgeWritten() {
	for i := range r.cluster.Nodes() {
		all, _ := r.cluster.Node(i).Holdings(0)
		for _, h := range all {
			for k := range h.Kept {
				r.written.Listed(&h.Kept[k])
			}
		}
	}
	if group := r.together(); group != nil {
		r.result.outcome.Met = map[string]string{}
		for _, f := range r.writtenFinals(group) {
			r.written.Last(&f)
			if slices.Contains(r.plan.Expect.Met, f.Key) {
				r.result.outcome.Met[f.Key] = r.written.Met(&f)
			}
		}
	}
	r.result.Violations = append(r.result.Violations, r.written.Verdict()...)
}
