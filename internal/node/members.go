package node

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/watermark"
)

// What a namespace has of its members is a membership.Group. Here the group gets its store, and the
// rest of the node follows what changes in it.

// The kinds of records in the control namespace that the group knows nothing of.
const (
	// kindPledge begins the key of a member's pledge; its id follows and, where the namespace
	// is cut into shards, the shard.
	kindPledge = 'w'
	// kindShards begins the key of which shards a member holds; its id follows.
	kindShards = 'h'
	// kindTable begins the key of the table of the layout that counts; its hash follows.
	kindTable = 't'
)

// membership is what the node gives each of its groups.
func (n *Node) membership() membership.Config {
	return membership.Config{
		Self: n.ID, Now: n.Now, Sign: n.Sign, Verify: n.verify, Refused: n.Refused,
		Random: func(b []byte) { n.random(b, ForToken) },
	}
}

// newGroup is the namespace's group, whose list is to be read.
func (ns *Namespace) newGroup(o *Opening) *membership.Group {
	c := ns.node.membership()
	c.Namespace, c.Creator, c.Placement, c.Name = ns.id, ID(o.State.Creator), string(o.State.Placement), o.State.Name
	c.Control, c.Observer, c.KeepList = &ns.Control, follower{ns}, o.KeepList
	c.Clock, c.Version = ns.clock, ns.NextVersion
	c.Save = func(r *membership.Record) error {
		return ns.update(func(s *State) error { s.Record = *r; return nil })
	}
	c.Kinds = map[byte]membership.Kind{
		kindPledge: {By: ns.pledgedBy, Check: func(r *dbadapter.Hashed) error { _, err := watermark.ParsePledge(r.Value); return err }},
		kindTable:  {Check: ns.examineTable},
	}
	if ns.rule != nil {
		c.Kinds[kindShards] = membership.Kind{By: membership.By, Check: func(r *dbadapter.Hashed) error { _, err := readShardsHeld(r.Value); return err }}
	}
	return membership.New(c)
}

// pledgedBy is the member that the key of a pledge names.
func (ns *Namespace) pledgedBy(key []byte) (ID, error) {
	by, shard := ns.about(key)
	if ns.rule != nil && int(shard) >= ns.rule.Shards {
		return by, fmt.Errorf("there is no shard %d", shard)
	}
	return by, nil
}

// Hash hashes a record.
func (p *Part) Hash(r dbadapter.Record) (dbadapter.Hashed, error) {
	return dbadapter.Hash(p.Keys.Hasher, r)
}

// OfKind yields the records of a kind in the control namespace.
func (p *Part) OfKind(ctx context.Context, kind byte) iter.Seq2[dbadapter.Hashed, error] {
	return func(yield func(dbadapter.Hashed, error) bool) {
		snap, err := p.Store.Snapshot()
		if err != nil {
			yield(dbadapter.Hashed{}, err)
			return
		}
		defer snap.Close()
		snap.Scan(ctx, []byte{kind}, nil)(yield)
	}
}

// follower follows the changes of a namespace's group.
type follower struct{ ns *Namespace }

func (f follower) Relisted() error {
	ns := f.ns
	// A record that a peer declined for its writer may be acceptable now.
	for _, p := range ns.parts() {
		p.declined.Forget()
	}
	failed := ns.readLayout()
	ns.rehost()
	ns.relisted()
	ns.node.Schedule.Wake()
	for _, set := range ns.Sets() {
		set.pushable()
	}
	for _, set := range ns.Sets() {
		failed = errors.Join(failed, set.relisted())
	}
	return failed
}

// Removed has each set follow this node's right to write, as far as it has heard of that by now.
func (f follower) Removed() (failed error) {
	for _, set := range f.ns.Sets() {
		failed = errors.Join(failed, set.gc.Update(set.relist))
	}
	return failed
}

func (f follower) Said(records []*dbadapter.Record) (failed error) {
	ns, moved := f.ns, false // what members say of the shards that they hold
	for _, r := range records {
		switch r.Key[0] {
		case membership.KindAddresses:
			a, _ := membership.ReadAnnouncement(r.Value) // it has been read before
			failed = errors.Join(failed, ns.hearUnpledged(ID(r.Key[1:]), a.Unpledged))
			if ns.node.Moved != nil {
				ns.node.Moved(ID(r.Key[1:]), a.Addrs)
			}
		case kindTable:
			failed = errors.Join(failed, ns.place())
		case kindShards:
			failed, moved = errors.Join(failed, ns.hearShards(r)), true
		case kindPledge:
			for _, set := range ns.Sets() {
				failed = errors.Join(failed, set.gc.Update(func(w *watermark.Watermark) bool { return set.receive(w, r) }))
			}
		}
	}
	if moved {
		failed = errors.Join(failed, ns.holdersChanged())
	}
	return failed
}

func (f follower) Declared() {
	for _, set := range f.ns.Sets() {
		set.pushes.AskSync() // writes that go on would put the digest off
	}
}

// Announce tells the other members where this node can be dialled, unless it has
// told them so already.
func (ns *Namespace) Announce(ctx context.Context, addrs [][]byte) error {
	h := ns.Hold()
	defer h.Release()
	// This program makes pledges, whatever had its identity before: the members have gone
	// on without what is here. The record of that is overwritten only once the recovery that
	// it calls for is durable.
	if !ns.pledges(ns.node.ID) {
		for _, set := range ns.Sets() {
			if err := set.gc.Update(func(w *watermark.Watermark) bool { w.Recover(false); return true }); err != nil {
				return err
			}
		}
	}
	if err := h.Announce(ctx, addrs); err != nil {
		return err
	}
	return ns.hearUnpledged(ns.node.ID, false)
}

// dropFormer forgets what former members have said of themselves.
func (ns *Namespace) dropFormer(ctx context.Context) error {
	h := ns.Hold()
	defer h.Release()
	former, err := h.DropFormer(ctx)
	for _, id := range former {
		err = errors.Join(err, ns.hearUnpledged(id, false))
	}
	return err
}

// SetRole is Group.SetRole. This node's own right to write it does not give up with writes that it
// may hold alone, unless force says so: ErrHeldHere.
func (ns *Namespace) SetRole(ctx context.Context, id ID, role Role, expires time.Time, force bool) error {
	if role == RoleRead && !force {
		if err := ns.mayGiveUp(ctx, id); err != nil {
			return err
		}
	}
	return errors.Join(ns.Group.SetRole(ctx, id, role, expires, force), ns.renounce(ctx))
}

// Remove is Group.Remove. This node does not leave with writes that it may hold alone, unless force
// says so: ErrHeldHere.
func (ns *Namespace) Remove(ctx context.Context, id ID, force bool) error {
	if !force {
		if err := ns.mayGiveUp(ctx, id); err != nil {
			return err
		}
	}
	return errors.Join(ns.Group.Remove(ctx, id, force), ns.renounce(ctx))
}

// Heed is Group.Heed, with what follows.
func (ns *Namespace) Heed(remote ID, statements [][]byte) error {
	return errors.Join(ns.Group.Heed(remote, statements), ns.renounce(context.Background()))
}

// AnswerJoin decides upon a request of a peer, and writes the reply. An error says
// why the peer was turned down, and is no reason not to send the reply. The
// addresses that this node knows of a member, itself included, are read from book.
// The peer says in joiner where it can be dialled.
func (n *Node) AnswerJoin(ctx context.Context, remote ID, request []byte, book func(ID) [][]byte) (reply []byte, joiner [][]byte, err error) {
	var ns *Namespace
	group := func(id dbadapter.NamespaceID) *membership.Group {
		if ns = n.Namespace(id); ns == nil {
			return nil
		}
		return ns.Group
	}
	return membership.AnswerJoin(ctx, remote, request, group, func() (h membership.Handover) {
		for _, set := range ns.Sets() {
			set.declined.Forget()
		}
		// After the grant: no promise is made any more of what does not know it.
		h.Secret, h.Pledged = ns.secret, ns.pledgedUpTo()
		for _, m := range ns.Members().Members() {
			if addrs := book(m.ID); m.ID != remote && len(addrs) > 0 {
				h.Addresses = append(h.Addresses, membership.Addresses{ID: m.ID, Addrs: addrs})
			}
		}
		return h
	})
}

// Joined is a namespace that a reply to a join hands over.
type Joined struct {
	Secret dbadapter.Secret
	State  *State
	// Members are where the others can be dialled.
	Members []membership.Addresses
}

// ReadJoin checks what the inviter of a ticket replied.
func (n *Node) ReadJoin(t *membership.Ticket, reply []byte) (*Joined, error) {
	h, err := membership.ReadJoin(n.membership(), t, reply)
	if err != nil {
		return nil, err
	}
	s := &State{Format: StateFormat, Name: t.Name, Creator: []byte(h.Creator), Placement: h.Placement, Record: membership.Record{Seeds: h.Seeds}}
	s.Watermark = watermark.State{Pledged: h.Pledged, Recovering: true}
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("it handed over a faulty namespace: %w", err)
	}
	return &Joined{h.Secret, s, h.Addresses}, nil
}

// Rejoin takes what a reply to a join hands over of a namespace that is here
// already. That is the statements of the list of members that this node has not
// heard.
func (ns *Namespace) Rejoin(ctx context.Context, j *Joined) error {
	return errors.Join(ns.takeOver(ctx, j.State), ns.renounce(ctx))
}

func (ns *Namespace) takeOver(ctx context.Context, s *State) error {
	h, pledged := ns.Hold(), s.Watermark.Pledged
	defer h.Release()
	if h.Ended() {
		return dbadapter.ErrClosed
	}
	ns.clock.Observe(hlc.Timestamp(pledged))
	if ns.rule != nil && pledged > ns.state.Load().Watermark.Pledged { // for shards that are to come
		if err := ns.update(func(s *State) error { s.Watermark.Pledged = pledged; return nil }); err != nil {
			return err
		}
	}
	for _, set := range ns.Sets() {
		set.declined.Forget()
		if err := set.gc.Update(func(w *watermark.Watermark) bool { return w.TakeOver(pledged) }); err != nil {
			return err
		}
	}
	// What a peer has shown of a removal the inviter has not heard, or does not count.
	return errors.Join(h.Take(ctx, s.Seeds), h.ForgetRemoval())
}

// founding is the first statement of a namespace of this node's, with a policy.
func (n *Node) founding(id dbadapter.NamespaceID, s *State, p Policy) ([]byte, error) {
	c := n.membership()
	c.Namespace, c.Creator, c.Placement = id, n.ID, string(s.Placement)
	return membership.Found(c, p, dbadapter.TimestampAt(n.Now()))
}
