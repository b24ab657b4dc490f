package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// The layout of a namespace that is cut into shards. A statement names it; its table is a
// record of the control namespace, under its hash, which any member may pass on. A node
// keeps the table of the layout that counts, and no other.

// ErrOneShard is for what only a namespace that is cut into shards has.
var ErrOneShard = fmt.Errorf("%w: the namespace is one shard: placement is chosen when a namespace is created", ErrInvalid)

// ErrNoLayout is for what the layout decides, while this node has none: no admin has
// stated one, or the table of the one that counts has not come.
var ErrNoLayout = fmt.Errorf("%w: the layout of the shards is not known here yet: sync with a member", dbadapter.ErrNotFound)

// placed is the layout that counts, as this node has it.
type placed struct {
	stated roster.StatedLayout
	layout *placement.Layout // nil: none is stated, or its table is not here
	// last is layout, or while that is not here, the one before, if this process had it: reads and
	// writes go on by it, as they do at a node that has not heard of the next one. No shard is
	// taken or left by it.
	last *placement.Layout
}

func tableKey(name roster.Table) []byte { return append([]byte{kindTable}, name[:]...) }

// table is the one possible record of a table.
func (p *Part) table(value []byte) (dbadapter.Hashed, error) {
	return dbadapter.Hash(p.Keys.Hasher, dbadapter.Record{Key: tableKey(roster.TableOf(value)), Value: value, Version: statementVersion})
}

// Rule is how the namespace is cut into shards; nil: it is not. It must not be changed.
func (ns *Namespace) Rule() *placement.Rule { return ns.rule }

// Layout is the layout that counts, and the statement of it. Errors are ErrOneShard, and
// ErrNoLayout, where one is stated beside its statement.
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

// place takes the layout that counts by the list as it is now, and what follows from it. No
// layout counts while its table cannot be read. updating is held.
func (ns *Namespace) place() error {
	if ns.rule == nil {
		return nil
	}
	before := ns.placed.Load().layout
	err := ns.readLayout()
	if ns.placed.Load().layout == before {
		return err
	}
	ns.rehost()
	ns.relisted()
	return errors.Join(err, ns.holdersChanged())
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
	before, next := ns.placed.Load(), &placed{}
	next.stated, _ = ns.Members().List.Layout()
	if before != nil {
		next.last = before.last
	}
	if before != nil && before.layout != nil && before.stated.Table == next.stated.Table {
		next.layout = before.layout
		ns.placed.Store(next)
		return nil
	}
	ns.placed.Store(next) // whatever follows, the layout from before does not count
	if next.stated.Epoch == 0 {
		return nil
	}
	record, err := ns.Control.get(tableKey(next.stated.Table))
	if errors.Is(err, dbadapter.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	layout, err := placement.Parse(record.Value, ns.rule)
	if err != nil {
		return nil //nolint:nilerr // this program cannot read the table: there is no layout here until an admin's node states the next one
	}
	ns.placed.Store(&placed{stated: next.stated, layout: layout, last: layout})
	return nil
}

// examineTable says why the record of a table must stay outside, or nil.
func (ns *Namespace) examineTable(r *dbadapter.Hashed) error {
	if ns.rule == nil {
		return ErrOneShard
	}
	if only, err := ns.Control.table(r.Value); err != nil || only.Digest != r.Digest || len(r.Signature) > 0 || r.Signer != 0 {
		return errors.New("it is not the record of a table")
	}
	if ns.placed.Load().stated.Table != roster.TableOf(r.Value) {
		return errors.New("the layout that counts here names another table")
	}
	_, err := placement.Parse(r.Value, ns.rule)
	return err
}

// Arrange states the next layout if that is due here, and says which shards this node holds. A
// driver calls it when Config.Relisted has told it to, after shards have come or gone, and again
// after the time that it gives; 0: nothing is to come. stated: a layout has been, which the
// members that hold no shard hear of only if a round of syncs begins. Tend does the same with
// each round.
func (ns *Namespace) Arrange(ctx context.Context) (wait time.Duration, stated bool, err error) {
	turn, stated, err := ns.tendLayout(ctx)
	quiet, failed := ns.tellShards(ctx, listQuiet)
	if wait = turn; quiet > 0 && (wait == 0 || quiet < wait) {
		wait = quiet
	}
	return wait, stated, errors.Join(err, failed)
}

// tendLayout states the next layout where this node is the admin whose turn it is, and
// drops the tables of layouts that count no longer. It says how long to wait until the turn
// comes, if nothing changes until then; 0: none is to come.
func (ns *Namespace) tendLayout(ctx context.Context) (wait time.Duration, stated bool, err error) {
	if ns.rule == nil {
		return 0, false, nil
	}
	ns.updating.Lock()
	defer ns.updating.Unlock()
	if ns.over {
		return 0, false, nil
	}
	if err := errors.Join(ns.place(), ns.dropTables(ctx)); err != nil { // what could not be read is tried again
		return 0, false, err
	}
	members, now := ns.Members(), ns.node.Now()
	if !members.Has(ns.node.ID, RoleAdmin) {
		return 0, false, nil
	}
	hosts := placement.HostsOf(members.List, func(id ID) (int, string, bool) { return 1, "", ns.pledges(id) })
	placed := ns.placed.Load()
	at, due := ns.stating.At(now, placed.layout, hosts, admins(members), ns.node.ID)
	// Nothing is under way in a namespace that has had no layout, and no other member.
	if first := placed.stated.Epoch == 0 && members.alone(ns.node.ID); !due {
		return 0, false, nil
	} else if now.Before(at) && !first {
		return at.Sub(now), false, nil
	}
	next, err := placement.Plan(ns.rule, hosts)
	if err != nil {
		return 0, false, err
	}
	err = ns.stateLocked(ctx, next)
	return 0, err == nil, err
}

// stateLocked states a layout. First its table, which counts for nothing without the
// statement; the next round drops it if the statement fails.
func (ns *Namespace) stateLocked(ctx context.Context, l *placement.Layout) error {
	record, err := ns.Control.table(l.Value())
	if err != nil {
		return err
	}
	outcomes, err := ns.Control.apply(ctx, []dbadapter.Write{{Record: record}})
	if err == nil && outcomes[0].Result == dbadapter.Full {
		err = errFull
	}
	if err != nil {
		return err
	}
	return ns.declareLocked(ctx, roster.Draft{Kind: roster.Layout, Table: l.Table()})
}

// dropTables takes the tables of other layouts out of the control namespace.
func (ns *Namespace) dropTables(ctx context.Context) error {
	var writes []dbadapter.Write
	for r, err := range ns.ofKind(ctx, kindTable) {
		if err != nil {
			return err
		}
		if roster.TableOf(r.Value) != ns.placed.Load().stated.Table {
			writes = append(writes, dbadapter.Write{Record: r, Action: dbadapter.Collect})
		}
	}
	if len(writes) == 0 {
		return nil
	}
	_, err := ns.Control.apply(ctx, writes)
	return err
}

// admins are the members with that role, by id.
func admins(m *Members) (ids []ID) {
	for _, one := range m.List.Members() {
		if one.Role == RoleAdmin {
			ids = append(ids, one.ID)
		}
	}
	return ids
}
