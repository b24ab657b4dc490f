package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The list of members is a function of the statements in the control namespace.
// Package roster computes it; here statements become durable before they count.

// statementVersion is that of each statement's record, so that there is one
// possible record of a statement.
var statementVersion = dbadapter.Version{Clock: dbadapter.TimestampAt(dbadapter.Epoch)}

// statement is the record of a statement.
func (p *Part) statement(value []byte) (dbadapter.Hashed, error) {
	hash := roster.HashOf(value)
	return dbadapter.Hash(p.Keys.Hasher, dbadapter.Record{
		Key: append([]byte{kindStatement}, hash[:]...), Value: value, Version: statementVersion,
	})
}

// newSet is the empty set of a namespace's statements.
func (n *Node) newSet(id dbadapter.NamespaceID, s *State) *roster.Set {
	return roster.New(roster.Config{Namespace: id, Creator: ID(s.Creator), Placement: string(s.Placement), Verify: n.verify})
}

// openList reads the list of members.
func (ns *Namespace) openList(ctx context.Context, o *Opening) error {
	s := o.State
	if err := ns.readSet(ctx, s); err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(s.Seeds), func(value []byte) bool { return ns.roster.Has(roster.HashOf(value)) })
	if len(missing) > 0 {
		if left := ns.roster.Load(slices.Values(missing)); left > 0 {
			return fmt.Errorf("%w: %d statements of %d that the namespace was opened with", dbadapter.ErrCorrupt, left, len(missing))
		}
		if _, err := ns.store(ctx, missing); err != nil {
			return err
		}
	}
	if err := ns.recoverList(ctx, o.Listed); err != nil {
		return err
	}
	ns.members.Store(&Members{ns.roster.List(), s.Name})
	ns.hearRemoval()
	for hash := range ns.roster.Values() {
		ns.observe(hash)
	}
	if ns.rule != nil {
		placed, err := s.placed(ns.rule)
		if err != nil {
			return fmt.Errorf("%w: the layout: %w", dbadapter.ErrCorrupt, err)
		}
		ns.placed.Store(placed)
	}
	return errors.Join(ns.readLayout(), ns.readAllShardsHeld(ctx), ns.readUnpledged(ctx))
}

// readSet makes the set anew of what the control namespace holds.
func (ns *Namespace) readSet(ctx context.Context, s *State) error {
	var values [][]byte
	for r, err := range ns.ofKind(ctx, kindStatement) {
		if err != nil {
			return err
		}
		values = append(values, r.Value)
	}
	set := ns.node.newSet(ns.id, s)
	// What the bounds of the set leave out was let in by a program with others.
	set.Load(slices.Values(values))
	ns.roster = set
	return nil
}

// store makes statements durable that the set has. Those that find their index full
// it leaves out, and returns.
func (ns *Namespace) store(ctx context.Context, values [][]byte) (full [][]byte, err error) {
	writes := make([]dbadapter.Write, len(values))
	for i, value := range values {
		record, err := ns.Control.statement(value)
		if err != nil {
			return nil, err
		}
		writes[i] = dbadapter.Write{Record: record}
	}
	outcomes, err := ns.Control.apply(ctx, writes)
	for i, o := range outcomes {
		if o.Result == dbadapter.Full {
			full = append(full, values[i])
		}
	}
	return full, err
}

// unstore takes statements that the set has dropped out of the control namespace, as
// far as they are there.
func (ns *Namespace) unstore(ctx context.Context, values [][]byte) error {
	var writes []dbadapter.Write
	for _, value := range values {
		record, err := ns.Control.statement(value)
		if err != nil {
			return err
		}
		writes = append(writes, dbadapter.Write{Record: record, Action: dbadapter.Collect})
	}
	_, err := ns.Control.apply(ctx, writes)
	return err
}

// take adds statements to the set and makes those durable that are new to it; then
// they count. Void ones of which the set has too many go. The statuses are in the
// order of the values; an error of a statement stands beside them. updating is held.
func (ns *Namespace) take(ctx context.Context, values [][]byte) ([]roster.Status, []error, error) {
	statuses, refused := make([]roster.Status, len(values)), make([]error, len(values))
	var taken [][]byte
	for i, value := range values {
		statuses[i], refused[i] = ns.roster.Add(slices.Clone(value))
		if statuses[i] == roster.Added {
			taken = append(taken, ns.roster.Value(roster.HashOf(value)))
		}
	}
	taken = append(taken, ns.roster.Released()...)
	ns.roster.Shed()
	for i, value := range values {
		switch has := ns.roster.Has(roster.HashOf(value)); {
		case statuses[i] == roster.Waiting && has:
			statuses[i] = roster.Added
		case statuses[i] == roster.Added && !has:
			statuses[i], refused[i] = 0, fmt.Errorf("%w: it does not count, and more such statements are here than are kept", dbadapter.ErrLimit)
		}
	}
	taken = slices.DeleteFunc(taken, func(value []byte) bool { return !ns.roster.Has(roster.HashOf(value)) })
	dropped := ns.roster.Dropped()
	if len(taken) == 0 && len(dropped) == 0 {
		return statuses, refused, nil
	}
	// First out, then in: the store never has more than a set takes.
	err := ns.unstore(ctx, dropped)
	full, failed := ns.store(ctx, taken)
	if err = errors.Join(err, failed); err != nil {
		return nil, nil, errors.Join(err, ns.readSet(context.WithoutCancel(ctx), ns.state.Load()))
	}
	if len(full) > 0 { // a set that goes on without them
		if err := ns.readSet(ctx, ns.state.Load()); err != nil {
			return nil, nil, err
		}
		has := func(value []byte) bool { return ns.roster.Has(roster.HashOf(value)) }
		for i, value := range values {
			if statuses[i] == roster.Added && !has(value) {
				statuses[i], refused[i] = 0, errFull
			}
		}
		taken = slices.DeleteFunc(taken, func(value []byte) bool { return !has(value) })
	}
	return statuses, refused, ns.publish(taken)
}

// publish makes a list of the set as it is now the one that counts.
func (ns *Namespace) publish(taken [][]byte) error {
	for _, value := range taken {
		ns.observe(roster.HashOf(value))
	}
	ns.keep(values(ns.roster))
	before := ns.Members()
	ns.members.Store(&Members{ns.roster.List(), before.name})
	ns.hearRemoval()
	if ns.Members().Digest() == before.Digest() {
		return nil
	}
	// A record that a peer declined for its writer may be acceptable now.
	for _, p := range ns.parts() {
		p.declined.forget()
	}
	ns.listed = ns.node.Now()
	failed := ns.readLayout()
	ns.rehost()
	ns.relisted()
	ns.node.Schedule.Wake()
	for _, set := range ns.Sets() {
		set.pushable()
	}
	failed = errors.Join(failed, ns.doubtRemoval())
	for _, set := range ns.Sets() {
		failed = errors.Join(failed, set.relisted())
	}
	return failed
}

// doubtRemoval forgets what a peer has shown of a removal if its author cannot have
// made it by the list as it is now. An admin may show one member a statement that
// no other node hears of, and that the list can never take. If it counts all the
// same, the next peer shows it again. updating is held.
func (ns *Namespace) doubtRemoval() error {
	told, err := ns.parse(ns.state.Load().Removed)
	if err != nil || ns.Members().Ended(ns.node.ID, []*roster.Statement{told}, told.Author) != nil {
		return nil //nolint:nilerr // no peer has shown one
	}
	return ns.forgetRemoval()
}

// forgetRemoval forgets what a peer has shown of a removal. updating is held.
func (ns *Namespace) forgetRemoval() error {
	if len(ns.state.Load().Removed) == 0 {
		return nil
	}
	err := ns.update(func(s *State) error { s.Removed = nil; return nil })
	return errors.Join(err, ns.followRight())
}

// followRight has each set follow this node's right to write, as far as it has heard of that by
// now. updating is held.
func (ns *Namespace) followRight() (failed error) {
	for _, set := range ns.Sets() {
		failed = errors.Join(failed, set.gc.Update(set.relist))
	}
	return failed
}

// hearRemoval forgets what a peer has shown of a removal, where the list tells it by now.
func (ns *Namespace) hearRemoval() {
	ns.saving.Lock()
	defer ns.saving.Unlock()
	s := ns.state.Load()
	if len(s.Removed) == 0 || !ns.roster.Has(roster.HashOf(s.Removed)) {
		return
	}
	next := s.clone()
	next.Removed = nil
	ns.state.Store(next)
}

// observe lets the namespace's clock see when a statement was made. So this node's
// writes that follow it are later, unless the author's clock was wrong.
func (ns *Namespace) observe(statement roster.Hash) {
	at := ns.roster.At(statement)
	if hlc.Check(at.Time(), ns.node.Now(), ns.Members().Policy().MaxSkew) == nil {
		ns.clock.Observe(hlc.Timestamp(at))
	}
}

// core are the statements that the list of members is a function of.
func (ns *Namespace) core() [][]byte {
	ns.updating.Lock()
	defer ns.updating.Unlock()
	return ns.roster.Core()
}

// values are the statements of a set.
func values(set *roster.Set) (all [][]byte) {
	for _, value := range set.Values() {
		all = append(all, value)
	}
	return all
}

// admitStatements lets the statements among the records in.
func (ns *Namespace) admitStatements(ctx context.Context, records []dbadapter.Hashed, verdicts []reconcile.Verdict, refused func(int, *refusal)) error {
	var values [][]byte
	var places []int // of values in records
	for i := range records {
		r := &records[i]
		if r.Key[0] != kindStatement {
			continue
		}
		if only, err := ns.Control.statement(r.Value); err != nil || only.Digest != r.Digest || len(r.Signature) > 0 || r.Signer != 0 {
			refused(i, refuse(wire.ReasonSignature, "%.80q is not the record of a statement", r.Key))
			continue
		}
		values, places = append(values, r.Value), append(places, i)
	}
	statuses, errs, err := ns.take(ctx, values)
	if err != nil {
		return err
	}
	for n, i := range places {
		switch {
		case errors.Is(errs[n], errFull):
			refused(i, &refusal{wire.ReasonFull, errFull})
		case errs[n] != nil:
			refused(i, &refusal{wire.ReasonWriter, errs[n]})
		case statuses[n] == roster.Waiting:
			refused(i, refuse(wire.ReasonWriter, "it names statements that are not here"))
		case statuses[n] == roster.Added:
			verdicts[i].Result = dbadapter.Applied
		default:
			verdicts[i].Result = dbadapter.Same
		}
	}
	return nil
}
