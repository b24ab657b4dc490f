package shards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Copies are read one after the other while writes go on. So those of a shard may differ though
// each write reaches all. Where they do, they are asked for again, copyLooks times in all. Copies
// that were the same at any two of these times count as equal.
const (
	copyLooks = 4
	copyPause = 200 * time.Millisecond
	// mostRecords is how many records of a shard a member may say to hold: numbers of all shards
	// are added up.
	mostRecords = 1 << 48
)

// errNotAsked is of a shard that a member was not asked about.
var errNotAsked = errors.New("the time was over before it was asked about this shard: give it longer")

// setCopy is a shard as one member holds it.
type setCopy struct {
	status.MemberShard
	set    placement.Shard
	of     *status.ClusterMember
	seen   []dbadapter.Sum
	newest time.Time
}

func (c *setCopy) take(a *wire.StatusAnswer) {
	c.Problem, c.Records, c.Digest = nil, min(ask.Bounded(a.Sum.Records), mostRecords), a.Sum.Digest
	c.seen, c.newest = append(c.seen, a.Sum), ask.Newest(a)
}

// same reports whether both were seen to be the same set.
func (c *setCopy) same(other *setCopy) bool {
	return slices.ContainsFunc(c.seen, func(s dbadapter.Sum) bool { return slices.Contains(other.seen, s) })
}

// inquiry asks members about shards.
type inquiry struct {
	*Shards
	*ask.Inquiry
}

// Cluster asks each member about each shard that it is a host of, or says that it holds.
func (s *Shards) Cluster(ctx context.Context, how *ask.Inquiry, members []status.ClusterMember) {
	q, rule, at := inquiry{s, how}, s.NS.Rule(), map[node.ID]int{}
	for i := range members {
		at[node.ID(members[i].ID)] = i
	}
	copies := make([][]*setCopy, len(members))
	for set := range placement.Shard(rule.Shards) {
		for id, host := range s.mayHold(set) {
			i, ok := at[id]
			if !ok {
				continue // it has joined meanwhile
			}
			one := status.MemberShard{Number: int(set), Host: host}
			copies[i] = append(copies[i], &setCopy{MemberShard: one, set: set, of: &members[i]})
		}
	}
	q.Each(members, func(i int) { copies[i] = q.member(ctx, &members[i], copies[i]) })
	by := make([][]*setCopy, rule.Shards)
	for _, of := range copies {
		for _, c := range of {
			by[c.set] = append(by[c.set], c)
		}
	}
	for look := 1; look < copyLooks; look++ {
		again := make([][]*setCopy, len(members))
		for i := range members {
			again[i] = slices.DeleteFunc(slices.Clone(copies[i]), func(c *setCopy) bool { return c.Problem != nil || len(c.unlike(by[c.set])) == 0 })
		}
		if !slices.ContainsFunc(again, func(of []*setCopy) bool { return len(of) > 0 }) || s.Net.Sleep(ctx, copyPause) != nil {
			break
		}
		q.Each(members, func(i int) {
			for _, c := range again[i] {
				was := c.MemberShard
				if q.copy(ctx, c) != nil {
					c.MemberShard = was // what it held is known
				}
			}
		})
	}
	for i := range members {
		compare(&members[i], copies[i], by)
	}
}

// mayHold are the members that hold a set, by the layout or by their word, this node among them if
// it does. It also says whether the layout names them.
func (s *Shards) mayHold(set placement.Shard) (all map[node.ID]bool) {
	all = map[node.ID]bool{}
	isHost := func(node.ID) bool { return false } // without a layout
	if row := s.NS.Row(set); row != nil {
		isHost = row.IsHost
	}
	for _, id := range s.NS.Holders(set) {
		all[id] = isHost(id)
	}
	self := s.NS.Self()
	if s.NS.Held(set) != nil || isHost(self) {
		all[self] = isHost(self)
	}
	return all
}

// member asks a member about sets, and returns those of which something is to be said.
func (q inquiry) member(ctx context.Context, m *status.ClusterMember, copies []*setCopy) []*setCopy {
	heard := m.Self
	for i, c := range copies {
		err := q.copy(ctx, c)
		if err == nil || m.Self || errors.Is(err, node.ErrDenied) {
			heard = heard || err == nil
			continue
		}
		if ctx.Err() == nil || !heard {
			m.Problem = err
			break
		}
		// It answers: there are more sets than it lets a peer ask about in this time.
		for _, rest := range copies[i:] {
			rest.Problem = errNotAsked
		}
		break
	}
	if !heard && m.Problem == nil {
		m.Problem = q.greet(ctx, m)
	}
	if m.Problem != nil {
		m.Problem = fmt.Errorf("ask %s how it is: %w", m.ID, m.Problem)
		for _, c := range copies {
			if len(c.seen) == 0 {
				c.Problem = m.Problem
			}
		}
		return copies
	}
	// It knows this node, so it does not hold what it denies. A host has not taken it yet, and a
	// member that is no host has handed it over.
	return slices.DeleteFunc(copies, func(c *setCopy) bool {
		denied := errors.Is(c.Problem, node.ErrDenied)
		if denied && c.Host {
			c.Problem = fmt.Errorf("it does not hold shard %d yet, and fetches it", c.Number)
		}
		return denied && !c.Host
	})
}

// copy asks a member about a set. With each answer it tells of itself, too.
func (q inquiry) copy(ctx context.Context, c *setCopy) error {
	if c.of.Self {
		set := q.NS.Held(c.set)
		if set == nil {
			c.Problem = fmt.Errorf("%w: this node does not hold shard %d yet", dbadapter.ErrNotFound, c.set)
			return c.Problem
		}
		own := set.Status()
		q.Describe(c.of, own)
		c.take(own)
		return nil
	}
	view := q.NS.View(c.set)
	a, theirs, err := q.Status(ctx, view, node.ID(c.of.ID))
	if err != nil {
		c.Problem = err
		return err
	}
	q.Describe(c.of, theirs)
	if c.of.Took == 0 { // the first answer, with the dial
		ask.Met(c.of, view.Lists(), &a)
	}
	c.take(theirs)
	return nil
}

// greet asks a member that holds nothing for a record, which it says is elsewhere. Its
// answer brings its clock, and which list of members it has.
func (q inquiry) greet(ctx context.Context, m *status.ClusterMember) error {
	remote, err := NewAsker(q.NS, 0)
	if err != nil {
		return err
	}
	begun, a := q.Net.Now(), ask.Answered{Left: q.NS.Time()}
	asked, reply, _, err := q.Net.Ask(ctx, node.ID(m.ID), remote.record([]byte{0}, true).Question)
	if err == nil {
		a.Came, a.Took = q.NS.Time(), q.Net.Now()-begun
		a.Reply, err = q.NS.Answered(node.ID(m.ID), asked, reply)
	}
	if err == nil {
		ask.Met(m, q.NS.Members().Digest(), &a)
	}
	return err
}

// unlike are the copies of a set that are known and differ from this one.
func (c *setCopy) unlike(all []*setCopy) []*setCopy {
	return slices.DeleteFunc(slices.Clone(all), func(other *setCopy) bool { return other.Problem != nil || c.same(other) })
}

// compare compares what a member holds with the others; by are those of each set.
func compare(m *status.ClusterMember, copies []*setCopy, by [][]*setCopy) {
	m.Records, m.Digest, m.Newest, m.Equal = 0, dbadapter.Digest{}, time.Time{}, m.Problem == nil
	m.Missing, m.Behind, m.Shards = 0, 0, []status.MemberShard{}
	for _, c := range copies {
		if c.Problem == nil {
			for _, other := range by[c.set] {
				if other.Problem == nil && c.same(other) {
					c.Copies++
				}
			}
			c.Equal = c.Copies == len(by[c.set])
			for _, other := range c.unlike(by[c.set]) {
				c.Missing = max(c.Missing, other.Records-c.Records)
				m.Behind = max(m.Behind, other.newest.Sub(c.newest))
			}
			m.Records += c.Records
			m.Missing += c.Missing
			if c.newest.After(m.Newest) {
				m.Newest = c.newest
			}
		}
		m.Equal = m.Equal && c.Equal
		m.Shards = append(m.Shards, c.MemberShard)
	}
}

// TakeLeave makes the list of members equal with that of another member, which hears then that this node holds no
// shard. ErrUnreachable: none has heard.
func (s *Shards) TakeLeave(ctx context.Context) error {
	others := s.nearest(s.NS.Others())
	var failed error
	for _, id := range others {
		err := s.Net.SyncLists(ctx, id)
		if err == nil || errors.Is(err, syncing.ErrRejected) { // one side declines what counts no longer there
			return nil
		}
		if failed = errors.Join(failed, fmt.Errorf("%s: %w", id, err)); ctx.Err() != nil {
			break
		}
	}
	if len(others) == 0 {
		return nil
	}
	return fmt.Errorf("%w: no other member has heard that this node holds no shard any more: try again, or force it and have an admin remove this member: %w", reconcile.ErrUnreachable, failed)
}
