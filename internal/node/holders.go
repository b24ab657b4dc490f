package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/peer/status"
)

// Where the shards are. The layout says which members are to hold a shard. What
// they say of themselves, in a record of the kind "h", says which do. So neither a
// collection nor a new host forgets an old host that has not handed over yet.

// shardsHeld is what a member says of the shards that it holds: the value of its record.
type shardsHeld struct {
	List   roster.Digest `cbor:"1,keyasint"` // of the list of members under which it said so
	Shards []byte        `cbor:"2,keyasint"` // a bit for each shard, the first in the lowest bit of the first byte
	// Ready are the rows of shards that move for which it is ready (package quorum, 10).
	Ready  rowNames `cbor:"3,keyasint,omitempty"`
	NoHost bool     `cbor:"4,keyasint,omitempty"` // it is to be no host
	// Kept has a bit for each shard of which it keeps entries in a kept log; nil: of none.
	Kept []byte `cbor:"5,keyasint,omitempty"`
}

// bit reports whether the bit of a shard is set.
func bit(of []byte, s placement.Shard) bool { return int(s/8) < len(of) && of[s/8]>>(s%8)&1 == 1 }

// rowNames are encoded one after the other, ascending.
type rowNames map[quorum.Name]bool

// MarshalBinary is their encoding.
func (r rowNames) MarshalBinary() (b []byte, _ error) {
	for _, name := range slices.SortedFunc(maps.Keys(r), func(a, b quorum.Name) int { return bytes.Compare(a[:], b[:]) }) {
		b = append(b, name[:]...)
	}
	return b, nil
}

// UnmarshalCBOR reads it.
func (r *rowNames) UnmarshalCBOR(encoded []byte) error {
	b, err := roster.ByteString(encoded)
	if err != nil {
		return err
	}
	size := len(quorum.Name{})
	if len(b)%size != 0 || len(b) > placement.MaxShards*size {
		return fmt.Errorf("names of rows in %d bytes", len(b))
	}
	*r = rowNames{}
	for name := range slices.Chunk(b, size) {
		(*r)[quorum.Name(name)] = true
	}
	return nil
}

// readShardsHeld reads the value of a record.
func readShardsHeld(value []byte) (h shardsHeld, err error) {
	if err := roster.Unmarshal(value, &h); err != nil {
		return h, fmt.Errorf("malformed list of shards: %w", err)
	}
	if h.List == (roster.Digest{}) || max(len(h.Shards), len(h.Kept)) > placement.MaxShards/8 {
		return h, fmt.Errorf("malformed list of shards: of list %x, with %d bytes of shards", h.List, len(h.Shards))
	}
	return h, nil
}

// readAllShardsHeld reads what all members say. The namespace is being opened.
func (ns *Namespace) readAllShardsHeld(ctx context.Context) error {
	if ns.rule == nil {
		return nil
	}
	all := map[ID]shardsHeld{}
	for r, err := range ns.Control.OfKind(ctx, kindShards) {
		if err != nil {
			return err
		}
		h, err := readShardsHeld(r.Value)
		if err != nil {
			return err // it was examined when it came
		}
		all[ID(r.Key[1:])] = h
	}
	ns.heldBy.Store(&all)
	return nil
}

// hearShards takes what a member says, which has been examined; holdersChanged is to follow.
// The group is held.
func (ns *Namespace) hearShards(r *dbadapter.Record) error {
	h, err := readShardsHeld(r.Value)
	if err != nil {
		return err
	}
	all := maps.Clone(*ns.heldBy.Load())
	all[ID(r.Key[1:])] = h
	ns.heldBy.Store(&all)
	return nil
}

// holdersChanged follows a change of who holds which shard. The group is held.
func (ns *Namespace) holdersChanged() (failed error) {
	ns.audiences.Add(1)
	for _, set := range ns.Sets() {
		failed = errors.Join(failed, set.gc.Update(set.relist))
		set.pushable()
	}
	return failed
}

// listQuiet is for how long the list of members must have been the same before a
// node says anew which shards it holds. It says so under that list alone. Where
// many members join one after the other, each would otherwise say so as many times.
const listQuiet = 2 * time.Second

// tellShards says which shards this node holds, if it has not said so under this
// list. It does so at once where that has changed, and otherwise when the list has
// been the same for the time quiet. It says how long to wait for that.
func (ns *Namespace) tellShards(ctx context.Context, quiet time.Duration) (wait time.Duration, err error) {
	if ns.rule == nil {
		return 0, nil
	}
	group := ns.Hold()
	defer group.Release()
	members := ns.Members()
	digest := members.Digest()
	h := shardsHeld{List: digest, Shards: make([]byte, (ns.rule.Shards+7)/8), NoHost: ns.node.NoHost, Kept: ns.keeps()}
	state := ns.state.Load()
	for i := range state.Shards {
		if one := &state.Shards[i]; !one.Dropped {
			h.Shards[one.Shard/8] |= 1 << (one.Shard % 8)
		}
	}
	said, ok := (*ns.heldBy.Load())[ns.node.ID]
	h.Ready = ns.readyFor(said.Ready)
	same := ok && slices.Equal(said.Shards, h.Shards) && maps.Equal(said.Ready, h.Ready) && said.NoHost == h.NoHost && slices.Equal(said.Kept, h.Kept)
	if group.Ended() || !members.Has(ns.node.ID, RoleRead) || same && said.List == h.List {
		return 0, nil
	}
	if since := ns.node.Now().Sub(group.Listed()); same && since >= 0 && since < quiet {
		return quiet - since, nil
	}
	value, err := cbor.Marshal(h)
	if err != nil {
		return 0, err
	}
	r, err := group.Say(ctx, membership.Key(kindShards, ns.node.ID), value)
	if err != nil {
		return 0, err
	}
	return 0, errors.Join(ns.hearShards(r), ns.holdersChanged())
}

// readyFor are the rows of shards that move for which this node is ready. What it has signed
// holds on under its row, unless it has lost records since. The group is held.
func (ns *Namespace) readyFor(said rowNames) rowNames {
	ready := rowNames{}
	for _, set := range ns.Sets() {
		row := set.row()
		if row == nil || row.AtRest() || set.Recovers() {
			continue
		}
		if name := row.Name(); said[name] || set.tenure.ready() {
			ready[name] = true
		}
	}
	return ready
}

// noHost reports whether a member says that it is to be no host.
func (ns *Namespace) noHost(id ID) bool {
	if id == ns.node.ID {
		return ns.node.NoHost
	}
	return (*ns.heldBy.Load())[id].NoHost
}

// isHost reports whether a member is a host of the set's shard, in either set of its row, and
// whether that is known.
func (set *Set) isHost(id ID) (host, known bool) {
	if set.ns.rule == nil {
		return true, true
	}
	row := set.row()
	return row != nil && row.IsHost(id), row != nil
}

// With reports whether this node syncs the set with a member. That is a host of the
// shard, or one that says that it holds it. Of a namespace without shards, it is
// any member.
func (set *Set) With(id ID) bool {
	host, _ := set.isHost(id)
	return host || set.saidBy(id)
}

// saidBy reports whether a member says that it holds the set. A host that does not, yet,
// begins the first sync itself once it does, and denies others' until then.
func (set *Set) saidBy(id ID) bool {
	if set.ns.rule == nil {
		return true
	}
	h, said := (*set.ns.heldBy.Load())[id]
	return said && bit(h.Shards, set.shard)
}

// others is how many other members are told what is written here, at most.
func (set *Set) others() int {
	members := set.ns.Members().Members()
	if set.ns.rule != nil {
		members = slices.DeleteFunc(slices.Clone(members), func(m roster.Member) bool { return m.ID != set.ns.node.ID && !set.With(m.ID) })
	}
	return len(members) - 1
}

// Audiences changes where the audiences of sets do while the list of members does
// not. That is with a table of the layout, or with what a member says that it
// holds, and where the namespace is paused or resumed. The driver is told by Config.Pushable.
func (ns *Namespace) Audiences() uint64 { return ns.audiences.Load() }

// Audience are the members as of now that are told what is written here, this node
// among them. They are the hosts of the shard or, while these are not known, those
// that hold it. The first of their roles ends at until, which is the zero time if
// none does.
func (set *Set) Audience() (ids map[ID]bool, until time.Time) {
	ids, until = set.ns.Audience()
	if set.ns.rule == nil {
		return ids, until
	}
	maps.DeleteFunc(ids, func(id ID, _ bool) bool {
		host, known := set.isHost(id)
		return id != set.ns.node.ID && !host && (known || !set.With(id))
	})
	return ids, until
}

// Holders are the members that are asked for what a shard holds, this node not
// among them. Its hosts are first, and of these the one that others prefer. Behind
// them are those that say that they hold it, as an old host does until it has
// handed over.
func (ns *Namespace) Holders(shard placement.Shard) (ids []ID) {
	if ns.rule == nil {
		return ns.Others()
	}
	if layout := ns.placed.Load().layout; layout != nil {
		ids = layout.Hosts(shard)
	}
	for _, m := range ns.Members().Members() {
		if h, said := (*ns.heldBy.Load())[m.ID]; said && bit(h.Shards, shard) && !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return slices.DeleteFunc(ids, func(id ID) bool { return id == ns.node.ID || !ns.Admits(id) })
}

// waitedFor are the members for which the watermark of the set waits, by id. With
// them it returns a digest of them and of the list of members: pledges count under
// one.
//
// Of a shard they are those that may hold it. These are its hosts, and each other
// one that does not say, under the list as it is now, that it does not. A member
// that comes to hold a shard is its host by a later list. Nobody waits for a member
// that makes no pledges.
func (set *Set) waitedFor(members *membership.Members) (list [16]byte, active []ID) {
	all := members.Active()
	for _, m := range all {
		if m.ID == set.ns.node.ID || set.ns.pledges(m.ID) {
			active = append(active, m.ID)
		}
	}
	list = members.Digest()
	if set.ns.rule == nil && len(active) == len(all) {
		return list, active
	}
	if set.ns.rule != nil {
		said := *set.ns.heldBy.Load()
		active = slices.DeleteFunc(active, func(id ID) bool {
			h, ok := said[id]
			host, known := set.isHost(id)
			return known && !host && ok && h.List == list && !bit(h.Shards, set.shard) && id != set.ns.node.ID
		})
	}
	sum := sha256.New()
	sum.Write(list[:])
	for _, id := range active {
		sum.Write([]byte(id)) // ids have one length
	}
	return [16]byte(sum.Sum(nil)), active
}

// MayHold are the members that may hold records of a shard, this node among them.
// These are its hosts and those that say that they hold it. Each other one counts,
// too, that does not say, under the list as it is now, that it does not.
func (ns *Namespace) MayHold(shard placement.Shard) []ID {
	_, ids := ns.view(shard).waitedFor(ns.Members())
	for _, id := range ns.Holders(shard) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return slices.DeleteFunc(ids, func(id ID) bool { return id == ns.node.ID && ns.Held(shard) == nil })
}

// MayName are the members whose records of a shard, or kept logs of it, may name
// bodies. These are this node, those that may hold the shard, and those that say
// that they keep entries of it. Nobody waits for one that has lapsed.
func (ns *Namespace) MayName(shard placement.Shard) []ID {
	ids := ns.MayHold(shard)
	if !slices.Contains(ids, ns.node.ID) {
		ids = append(ids, ns.node.ID)
	}
	for id, h := range *ns.heldBy.Load() {
		if bit(h.Kept, shard) && ns.Admits(id) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.DeleteFunc(ids, func(id ID) bool { return id != ns.node.ID && ns.Members().Lapsed(id) })
}

// Others are the members that a wait waits for where it names none, in the order of
// their ids. They are all but this node, those whose role is over and those that
// have lapsed.
func (ns *Namespace) Others() (ids []ID) {
	members, now := ns.Members(), ns.node.Now()
	for _, m := range members.Members() {
		if m.ID != ns.node.ID && members.Admits(m.ID, now) && !m.Lapsed {
			ids = append(ids, m.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// Replicas says how the shards stand; ErrOneShard.
func (ns *Namespace) Replicas() (r status.Shards, err error) {
	if ns.rule == nil {
		return r, ErrOneShard
	}
	placed, heldBy := ns.placed.Load(), *ns.heldBy.Load()
	held := map[placement.Shard]bool{}
	for _, set := range ns.Sets() {
		held[set.shard] = true
		host, known := set.isHost(ns.node.ID)
		switch {
		case !set.Recovers():
			r.Whole++
		case host:
			r.Fetching++
		}
		if known && !host {
			r.Dropping++
		}
	}
	r.Held = len(held)
	if placed.layout == nil {
		return r, nil
	}
	r.Epoch = placed.stated.Epoch
	for s := range placement.Shard(ns.rule.Shards) {
		replicas := 0
		row := placed.layout.Row(s)
		if !held[s] && row.IsHost(ns.node.ID) {
			r.Fetching++
		}
		if !row.AtRest() {
			r.Moving++
		}
		for _, id := range row.New {
			holds := held[s]
			if id != ns.node.ID {
				said, ok := heldBy[id]
				holds = ok && bit(said.Shards, s) && ns.Admits(id)
			}
			if holds {
				replicas++
			}
		}
		if replicas < ns.rule.Replicas {
			r.Short++
		}
	}
	return r, nil
}
