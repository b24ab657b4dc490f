package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/watermark"
)

// The layout of a namespace that is cut into shards. A statement names it; its
// table is a record of the control namespace, under its hash, which any member may
// pass on. There a node keeps the table of the layout that counts, and no other.
// The layout by which the node goes is in its state. It is the one that counts,
// once its table is here. It stays if that becomes void, since rows never go back
// (docs/decisions/0070-rows-of-tables.md).

// ErrOneShard is for what only a namespace that is cut into shards has.
var ErrOneShard = fmt.Errorf("%w: the namespace is one shard: placement is chosen when a namespace is created", ErrInvalid)

// ErrNoLayout is for what the layout decides, while this node has none: no admin has
// stated one, or no table has come.
var ErrNoLayout = fmt.Errorf("%w: the layout of the shards is not known here yet: sync with a member", dbadapter.ErrNotFound)

// placed is the layout by which this node goes.
type placed struct {
	stated roster.StatedLayout // epoch 0: none is known
	layout *placement.Layout   // nil: none is known
	// absent: the list names a later one, whose table is not here.
	absent bool
}

// storedLayout is the layout by which the node goes, as its state keeps it.
type storedLayout struct {
	Epoch     uint64              `cbor:"1,keyasint"`
	Statement []byte              `cbor:"2,keyasint"` // its hash
	By        []byte              `cbor:"3,keyasint"`
	At        dbadapter.Timestamp `cbor:"4,keyasint"`
	Table     []byte              `cbor:"5,keyasint"`
}

// placed reads the layout by which the node goes.
func (s *State) placed(rule *placement.Rule) (*placed, error) {
	kept := s.Layout
	if rule == nil || kept == nil {
		return &placed{}, nil
	}
	layout, err := placement.Parse(kept.Table, rule)
	if err != nil {
		return nil, err
	}
	if len(kept.Statement) != len(roster.Hash{}) || kept.Epoch == 0 {
		return nil, errors.New("a malformed statement of the layout")
	}
	stated := roster.StatedLayout{Epoch: kept.Epoch, Table: layout.Table(), Statement: roster.Hash(kept.Statement), By: ID(kept.By), At: kept.At}
	return &placed{stated: stated, layout: layout}, nil
}

// later reports whether a layout takes the place of the one by which the node goes.
func (now *placed) later(stated roster.StatedLayout) bool {
	return stated.Epoch > now.stated.Epoch || stated.Epoch == now.stated.Epoch && bytes.Compare(stated.Statement[:], now.stated.Statement[:]) > 0
}

func tableKey(name roster.Table) []byte { return append([]byte{kindTable}, name[:]...) }

// table is the one possible record of a table.
func (p *Part) table(value []byte) (dbadapter.Hashed, error) {
	return dbadapter.Hash(p.Keys.Hasher, dbadapter.Record{Key: tableKey(roster.TableOf(value)), Value: value, Version: membership.FixedVersion})
}

// Layout is the layout by which this node goes, and the statement of it. Errors are
// ErrOneShard and ErrNoLayout.
func (ns *Namespace) Layout() (*placement.Layout, roster.StatedLayout, error) {
	if ns.rule == nil {
		return nil, roster.StatedLayout{}, ErrOneShard
	}
	now := ns.placed.Load()
	if now.layout == nil {
		return nil, now.stated, ErrNoLayout
	}
	return now.layout, now.stated, nil
}

// Row is the row of a shard by which this node goes; nil: none is known, or there is no such
// shard. It must not be changed.
func (ns *Namespace) Row(shard placement.Shard) *quorum.Row {
	if ns.rule == nil || int(shard) >= ns.rule.Shards {
		return nil
	}
	if layout := ns.placed.Load().layout; layout != nil {
		return layout.Row(shard)
	}
	return nil
}

// Gone is a digest of the removals and lapses that this node has heard of.
func (ns *Namespace) Gone() [8]byte { return ns.Members().Gone() }

// place goes by the layout that counts by the list as it is now. It does so if that
// layout's table is here and it is later than the one by which this node goes. It
// does what follows from the change. The group is held.
func (ns *Namespace) place() error {
	before := ns.placed.Load()
	err := ns.readLayout()
	if now := ns.placed.Load(); ns.rule == nil || now.stated == before.stated && now.absent == before.absent {
		return err
	}
	return errors.Join(err, ns.rowsChanged())
}

// rowsChanged follows a change of the rows. The group is held.
func (ns *Namespace) rowsChanged() error {
	ns.rehost()
	ns.relisted()
	return ns.holdersChanged()
}

// relisted tells the driver that shards may be due to come, to go or to be laid out anew.
func (ns *Namespace) relisted() {
	if ns.rule != nil && ns.node.Relisted != nil {
		ns.node.Relisted(ns)
	}
}

// readLayout is place, without what follows.
func (ns *Namespace) readLayout() error {
	if ns.rule == nil {
		return nil
	}
	now := *ns.placed.Load()
	next, _ := ns.Members().List.Layout()
	if now.absent = now.later(next); !now.absent {
		ns.placed.Store(&now)
		return nil
	}
	ns.placed.Store(&now)
	record, err := ns.Control.Get(tableKey(next.Table))
	if errors.Is(err, dbadapter.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	layout, err := ns.parseTable(record.Value, next)
	if err != nil {
		return nil //nolint:nilerr // this program cannot read the table: it goes by the layout before until an admin's node states the next one
	}
	if err := ns.goBy(next, layout, ns.founds(now.layout, layout)); err != nil {
		return err
	}
	ns.placed.Store(&placed{stated: next, layout: layout})
	return nil
}

// goBy makes the layout durable by which this node goes and, with it, that this node is whole in the
// shards of which it is a founder.
func (ns *Namespace) goBy(next roster.StatedLayout, layout *placement.Layout, founded []placement.Shard) error {
	sets := slices.DeleteFunc(slices.Clone(ns.Sets()), func(set *Set) bool { return !slices.Contains(founded, set.shard) })
	return wholly(sets, func() error {
		return ns.update(func(s *State) error {
			s.Layout = &storedLayout{next.Epoch, next.Statement[:], []byte(next.By), next.At, layout.Value()}
			author := next.By == ns.node.ID && (ns.declares || !s.Watermark.Recovering)
			for _, shard := range founded {
				s.found(shard, author)
			}
			return nil
		})
	})
}

// wholly runs fn, which makes durable that the sets are whole. No change of them comes in between,
// and their next one keeps that.
func wholly(sets []*Set, fn func() error) (err error) {
	if len(sets) == 0 {
		return fn()
	}
	followed := sets[0].gc.Update(func(w *watermark.Watermark) bool {
		if err = wholly(sets[1:], fn); err == nil {
			w.Whole(0)
		}
		return false
	})
	return errors.Join(err, followed)
}

// ForceLayout states a layout in which the members that are left are the old hosts
// of shards, named by hand. It is for when a majority of their old hosts is gone
// for good. What only those held is lost. ErrDenied: this node is no admin.
func (ns *Namespace) ForceLayout(ctx context.Context, left map[placement.Shard][]ID) error {
	if ns.rule == nil {
		return ErrOneShard
	}
	h := ns.Hold()
	defer h.Release()
	placed := ns.placed.Load()
	if placed.layout == nil {
		return ErrNoLayout
	}
	if !ns.Members().Has(ns.node.ID, RoleAdmin) {
		return fmt.Errorf("%w: only an admin's node states a layout", ErrDenied)
	}
	next, err := placement.Force(placed.layout, h.Statements().NextEpoch(), left)
	if err != nil {
		return err
	}
	return ns.stateLayout(ctx, h, next)
}

// ErrNoMajority: shards would be without a majority of their hosts.
var ErrNoMajority = errors.New("shards would have no majority of their hosts left")

// Leaves says whether each shard has a majority of its hosts left once a member is
// removed, or lapses. Such a member stays a host that does not answer until a move
// from it has ended, as do those that have gone before. (14) Which hosts can be
// reached is not looked at. The error is ErrNoMajority.
func (ns *Namespace) Leaves(id ID) error {
	active := map[ID]bool{}
	for _, m := range ns.Members().Active() {
		active[m.ID] = m.ID != id
	}
	shards := slices.DeleteFunc(ns.Without(func(id ID) bool { return active[id] }), func(s placement.Shard) bool { return !ns.Row(s).IsHost(id) })
	if len(shards) == 0 {
		return nil
	}
	name, more := ns.Members().Name(), ""
	if n := len(shards) - mostShardsNamed; n > 0 {
		shards, more = shards[:mostShardsNamed], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%w: %v%s of %d; wait until the moves of before have ended (syncd ns layout %[5]s), and give the member the role read while it runs: syncd member set %[5]s %[6]s --role read; if it is gone for good, go on with --force, and then name those that are left: syncd ns layout %[5]s --force",
		ErrNoMajority, shards, more, ns.rule.Shards, name, id)
}

// Without are the shards of which no majority of the hosts is left, as far as the layout is known.
func (ns *Namespace) Without(left func(ID) bool) (shards []placement.Shard) {
	if ns.rule == nil {
		return nil
	}
	for s := range placement.Shard(ns.rule.Shards) {
		if row := ns.Row(s); row != nil && !row.Enough(left, left) {
			shards = append(shards, s)
		}
	}
	return shards
}

// mostShardsNamed is how many shards an error names.
const mostShardsNamed = 10

// founds are the shards of which this node is a founder, by a row that it did not
// go by before. They are those of the first layout, and of one that was forced.
func (ns *Namespace) founds(was, is *placement.Layout) (shards []placement.Shard) {
	for s := range placement.Shard(is.Shards()) {
		if row := is.Row(s); row.Founds(ns.node.ID) && (was == nil || was.Row(s).Name() != row.Name()) {
			shards = append(shards, s)
		}
	}
	return shards
}

// parseTable reads the table that a statement names. No row is later than its layout.
func (ns *Namespace) parseTable(value []byte, stated roster.StatedLayout) (*placement.Layout, error) {
	layout, err := placement.Parse(value, ns.rule)
	if err == nil && layout.Epoch() > stated.Epoch {
		err = fmt.Errorf("a row of epoch %d, in a layout of epoch %d", layout.Epoch(), stated.Epoch)
	}
	return layout, err
}

// examineTable says why the record of a table must stay outside, or nil.
func (ns *Namespace) examineTable(r *dbadapter.Hashed) error {
	if ns.rule == nil {
		return ErrOneShard
	}
	if only, err := ns.Control.table(r.Value); err != nil || only.Digest != r.Digest || len(r.Signature) > 0 || r.Signer != 0 {
		return errors.New("it is not the record of a table")
	}
	stated, _ := ns.Members().List.Layout()
	if stated.Table != roster.TableOf(r.Value) {
		return errors.New("the layout that counts here names another table")
	}
	_, err := ns.parseTable(r.Value, stated)
	return err
}

// Arrange states the next layout if that is due here, and says which shards this
// node holds. A driver calls it when Config.Relisted has told it to, and after
// shards have been taken or left. It does so again after the time that Arrange
// gives; 0: nothing is due later. If a layout was stated, the members that hold no
// shard hear of it only if a round of syncs begins. Tend does the same with each
// round.
func (ns *Namespace) Arrange(ctx context.Context) (wait time.Duration, stated bool, err error) {
	turn, stated, err := ns.tendLayout(ctx)
	quiet, failed := ns.tellShards(ctx, listQuiet)
	if wait = turn; quiet > 0 && (wait == 0 || quiet < wait) {
		wait = quiet
	}
	return wait, stated, errors.Join(err, failed)
}

// tendLayout states the next layout where this node is the admin whose turn it is.
// It also drops the tables of layouts that count no longer. It says how long to
// wait until the turn comes, if nothing changes until then; 0: none is to come.
func (ns *Namespace) tendLayout(ctx context.Context) (wait time.Duration, stated bool, err error) {
	if ns.rule == nil {
		return 0, false, nil
	}
	h := ns.Hold()
	defer h.Release()
	if h.Ended() {
		return 0, false, nil
	}
	if err := errors.Join(ns.place(), ns.dropTables(ctx, h)); err != nil { // what could not be read is tried again
		return 0, false, err
	}
	members, now := ns.Members(), ns.node.Now()
	if !members.Has(ns.node.ID, RoleAdmin) {
		return 0, false, nil
	}
	hosts := ns.hosts(members)
	placed := ns.placed.Load()
	standing := placement.Standing{Layout: placed.layout, Absent: placed.absent, Void: members.Overtaken()}
	if placed.layout != nil {
		standing.Ended, standing.Under = placed.layout.Moves(ns.ready)
	}
	at, due := ns.stating.At(now, standing, hosts, admins(members), ns.node.ID)
	// Nothing is under way in a namespace that has had no layout, and no other member.
	if first := placed.stated.Epoch == 0 && !placed.absent && members.Alone(ns.node.ID); !due {
		return 0, false, nil
	} else if now.Before(at) && !first {
		return at.Sub(now), false, nil
	}
	if placed.layout == nil { // the first one is its author's alone, and the others come in by a move
		hosts = slices.DeleteFunc(hosts, func(id ID) bool { return id != ns.node.ID })
	}
	if len(hosts) == 0 {
		return 0, false, nil
	}
	next, err := placement.Next(ns.rule, placed.layout, h.Statements().NextEpoch(), members.Overtaken() || placed.absent, hosts, ns.ready)
	if err != nil {
		return 0, false, err
	}
	err = ns.stateLayout(ctx, h, next)
	return 0, err == nil, err
}

// hosts are the members that may hold shards.
func (ns *Namespace) hosts(members *membership.Members) []ID {
	return placement.HostsOf(members.List, func(id ID) bool { return ns.pledges(id) && !ns.noHost(id) })
}

// stateLayout states a layout. First its table, which counts for nothing without the
// statement; the next round drops it if the statement fails.
func (ns *Namespace) stateLayout(ctx context.Context, h membership.Held, l *placement.Layout) error {
	record, err := ns.Control.table(l.Value())
	if err != nil {
		return err
	}
	if err := h.Put(ctx, record); err != nil {
		return err
	}
	ns.declares = true
	defer func() { ns.declares = false }()
	return h.Declare(ctx, roster.Statement{Kind: roster.Layout, Table: l.Table()})
}

// dropTables takes the tables of other layouts out of the control namespace.
func (ns *Namespace) dropTables(ctx context.Context, h membership.Held) error {
	stated, _ := ns.Members().List.Layout()
	_, err := h.Drop(ctx, kindTable, func(r *dbadapter.Record) bool { return roster.TableOf(r.Value) != stated.Table })
	return err
}

// admins are the members with that role, by id.
func admins(m *membership.Members) (ids []ID) {
	for _, one := range m.List.Members() {
		if one.Role == RoleAdmin {
			ids = append(ids, one.ID)
		}
	}
	return ids
}
