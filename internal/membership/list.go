package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/refusals"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The list of members is a function of the statements in the control namespace.
// Package roster computes it; here statements become durable before they count.
//
// A node may lose statements of the list of members to damage. It then denies the
// members that they list, itself perhaps, and no sync can give it anything back. So
// a copy of all statements stands beside the store, in a file of its own. The copy
// is no authority. What it holds was signed by admins, and counts by the same rules
// as when it arrived. What it lacks the control namespace has.

// FixedVersion is that of each record that proves itself, so that there is one
// possible record of a statement.
var FixedVersion = dbadapter.Version{Clock: dbadapter.TimestampAt(dbadapter.Epoch)}

// statement is the record of a statement.
func (g *Group) statement(value []byte) (dbadapter.Hashed, error) {
	hash := roster.HashOf(value)
	return g.c.Control.Hash(dbadapter.Record{Key: append([]byte{KindStatement}, hash[:]...), Value: value, Version: FixedVersion})
}

// newSet is the empty set of the group's statements.
func (c *Config) newSet() *roster.Set {
	return roster.New(roster.Config{Namespace: c.Namespace, Creator: c.Creator, Placement: c.Placement, Verify: c.Verify})
}

// Found is the first statement of a group that this node makes.
func Found(c Config, p roster.Policy, at dbadapter.Timestamp) ([]byte, error) {
	return roster.Make(c.newSet(), roster.Statement{Kind: roster.Found, Policy: &p, Placement: cbor.ByteString(c.Placement)}, c.Self, at, c.Sign)
}

// ReadList reads the list of members. listed is the copy that Config.KeepList has kept, or nil.
func (g *Group) ReadList(ctx context.Context, r *Record, listed [][]byte) error {
	if err := g.readSet(ctx); err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(r.Seeds), func(value []byte) bool { return g.roster.Has(roster.HashOf(value)) })
	if len(missing) > 0 {
		if left := g.roster.Load(slices.Values(missing)); left > 0 {
			return fmt.Errorf("%w: %d statements of %d that the namespace was opened with", dbadapter.ErrCorrupt, left, len(missing))
		}
		if _, err := g.store(ctx, missing); err != nil {
			return err
		}
	}
	if err := g.recoverList(ctx, listed); err != nil {
		return err
	}
	if g.current(r) != r {
		r.Removed = nil
	}
	g.members.Store(&Members{g.roster.List(), g.c.Name, r})
	for hash := range g.roster.Values() {
		g.observe(hash)
	}
	return nil
}

// readSet makes the set anew of what the control namespace holds.
func (g *Group) readSet(ctx context.Context) error {
	var values [][]byte
	for r, err := range g.c.Control.OfKind(ctx, KindStatement) {
		if err != nil {
			return err
		}
		values = append(values, r.Value)
	}
	set := g.c.newSet()
	// What the bounds of the set leave out was let in by a program with others.
	set.Load(slices.Values(values))
	g.roster = set
	return nil
}

// recoverList adds to the set the statements of the copy that the control namespace has
// lost, and puts them back.
func (g *Group) recoverList(ctx context.Context, listed [][]byte) error {
	missing := slices.DeleteFunc(slices.Clone(listed), func(value []byte) bool { return g.roster.Has(roster.HashOf(value)) })
	if len(missing) > 0 {
		g.roster.Load(slices.Values(missing))
		missing = slices.DeleteFunc(missing, func(value []byte) bool { return !g.roster.Has(roster.HashOf(value)) })
		if _, err := g.store(ctx, missing); err != nil {
			return err
		}
	}
	all := values(g.roster)
	if len(all) == len(listed) && !slices.ContainsFunc(listed, func(value []byte) bool { return !g.roster.Has(roster.HashOf(value)) }) {
		return nil
	}
	g.keep(all)
	return nil
}

func (g *Group) keep(statements [][]byte) {
	if g.c.KeepList != nil {
		g.c.KeepList(statements)
	}
}

// store makes statements durable that the set has. Those that find their index full
// it leaves out, and returns.
func (g *Group) store(ctx context.Context, values [][]byte) (full [][]byte, err error) {
	writes := make([]dbadapter.Write, len(values))
	for i, value := range values {
		record, err := g.statement(value)
		if err != nil {
			return nil, err
		}
		writes[i] = dbadapter.Write{Record: record}
	}
	outcomes, err := g.c.Control.Apply(ctx, writes)
	for i, o := range outcomes {
		if o.Result == dbadapter.Full {
			full = append(full, values[i])
		}
	}
	return full, err
}

// unstore takes statements that the set has dropped out of the control namespace, as
// far as they are there.
func (g *Group) unstore(ctx context.Context, values [][]byte) error {
	var writes []dbadapter.Write
	for _, value := range values {
		record, err := g.statement(value)
		if err != nil {
			return err
		}
		writes = append(writes, dbadapter.Write{Record: record, Action: dbadapter.Collect})
	}
	_, err := g.c.Control.Apply(ctx, writes)
	return err
}

// take adds statements to the set and makes those durable that are new to it; then
// they count. Void ones of which the set has too many go. The statuses are in the
// order of the values; an error of a statement stands beside them. mu is held.
func (g *Group) take(ctx context.Context, values [][]byte) ([]roster.Status, []error, error) {
	statuses, refused := make([]roster.Status, len(values)), make([]error, len(values))
	var taken [][]byte
	for i, value := range values {
		statuses[i], refused[i] = g.roster.Add(slices.Clone(value))
		if statuses[i] == roster.Added {
			taken = append(taken, g.roster.Value(roster.HashOf(value)))
		}
	}
	taken = append(taken, g.roster.Released()...)
	g.roster.Shed()
	for i, value := range values {
		switch has := g.roster.Has(roster.HashOf(value)); {
		case statuses[i] == roster.Waiting && has:
			statuses[i] = roster.Added
		case statuses[i] == roster.Added && !has:
			statuses[i], refused[i] = 0, fmt.Errorf("%w: it does not count, and more such statements are here than are kept", dbadapter.ErrLimit)
		}
	}
	taken = slices.DeleteFunc(taken, func(value []byte) bool { return !g.roster.Has(roster.HashOf(value)) })
	dropped := g.roster.Dropped()
	if len(taken) == 0 && len(dropped) == 0 {
		return statuses, refused, nil
	}
	// First out, then in: the store never has more than a set takes.
	err := g.unstore(ctx, dropped)
	full, failed := g.store(ctx, taken)
	if err = errors.Join(err, failed); err != nil {
		return nil, nil, errors.Join(err, g.readSet(context.WithoutCancel(ctx)))
	}
	if len(full) > 0 { // a set that goes on without them
		if err := g.readSet(ctx); err != nil {
			return nil, nil, err
		}
		has := func(value []byte) bool { return g.roster.Has(roster.HashOf(value)) }
		for i, value := range values {
			if statuses[i] == roster.Added && !has(value) {
				statuses[i], refused[i] = 0, refusals.ErrFull
			}
		}
		taken = slices.DeleteFunc(taken, func(value []byte) bool { return !has(value) })
	}
	return statuses, refused, g.publish(taken)
}

// publish makes a list of the set as it is now the one that counts.
func (g *Group) publish(taken [][]byte) error {
	for _, value := range taken {
		g.observe(roster.HashOf(value))
	}
	g.keep(values(g.roster))
	before := g.Members()
	record := g.current(before.record)
	g.members.Store(&Members{g.roster.List(), before.name, record})
	if g.Members().Digest() == before.Digest() {
		return nil
	}
	g.listed = g.c.Now()
	var failed error
	if record != before.record { // durably: the list may lose the statement
		failed = g.update(func(r *Record) error { r.Removed = nil; return nil })
	}
	failed = errors.Join(failed, g.doubtRemoval())
	return errors.Join(failed, g.c.Observer.Relisted())
}

// doubtRemoval forgets what a peer has shown of a removal if its author cannot have
// made it by the list as it is now. An admin may show one member a statement that
// no other node hears of, and that the list can never take. If it counts all the
// same, the next peer shows it again. mu is held.
func (g *Group) doubtRemoval() error {
	told, err := g.parse(g.Members().record.Removed)
	if err != nil || g.Members().Ended(g.c.Self, []*roster.Statement{told}, told.Author) != nil {
		return nil //nolint:nilerr // no peer has shown one
	}
	return g.update(func(r *Record) error { r.Removed = nil; return nil })
}

// ForgetRemoval forgets what a peer has shown of a removal.
func (h Held) ForgetRemoval() error {
	if len(h.g.Members().record.Removed) == 0 {
		return nil
	}
	err := h.g.update(func(r *Record) error { r.Removed = nil; return nil })
	return errors.Join(err, h.g.c.Observer.Removed())
}

// RemovedBy reports whether a peer has shown a removal by that author, which the list does not tell.
func (h Held) RemovedBy(author roster.ID) bool {
	told, err := h.g.parse(h.g.Members().record.Removed)
	return err == nil && told.Author == author
}

// current is the record without what a peer has told of a removal, where the list
// tells it by now.
func (g *Group) current(r *Record) *Record {
	if len(r.Removed) == 0 || !g.roster.Has(roster.HashOf(r.Removed)) {
		return r
	}
	next := r.Clone()
	next.Removed = nil
	return &next
}

// observe lets the namespace's clock see when a statement was made. So this node's
// writes that follow it are later, unless the author's clock was wrong.
func (g *Group) observe(statement roster.Hash) {
	at := g.roster.At(statement)
	if hlc.Check(at.Time(), g.c.Now(), g.Members().Policy().MaxSkew) == nil {
		g.c.Clock.Observe(hlc.Timestamp(at))
	}
}

// Core are the statements that the list of members is a function of.
func (g *Group) Core() [][]byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.roster.Core()
}

// values are the statements of a set.
func values(set *roster.Set) (all [][]byte) {
	for _, value := range set.Values() {
		all = append(all, value)
	}
	return all
}

// admitStatements lets the statements among the records in.
func (g *Group) admitStatements(ctx context.Context, records []dbadapter.Hashed, verdicts []reconcile.Verdict, refused func(int, *refusals.Refusal)) error {
	var values [][]byte
	var places []int // of values in records
	for i := range records {
		r := &records[i]
		if r.Key[0] != KindStatement {
			continue
		}
		if only, err := g.statement(r.Value); err != nil || only.Digest != r.Digest || len(r.Signature) > 0 || r.Signer != 0 {
			refused(i, refusals.Refuse(wire.ReasonSignature, "%.80q is not the record of a statement", r.Key))
			continue
		}
		values, places = append(values, r.Value), append(places, i)
	}
	statuses, errs, err := g.take(ctx, values)
	if err != nil {
		return err
	}
	for n, i := range places {
		switch {
		case errors.Is(errs[n], refusals.ErrFull):
			refused(i, &refusals.Refusal{Reason: wire.ReasonFull, Err: refusals.ErrFull})
		case errs[n] != nil:
			refused(i, &refusals.Refusal{Reason: wire.ReasonWriter, Err: errs[n]})
		case statuses[n] == roster.Waiting:
			refused(i, refusals.Refuse(wire.ReasonWriter, "it names statements that are not here"))
		case statuses[n] == roster.Added:
			verdicts[i].Result = dbadapter.Applied
		default:
			verdicts[i].Result = dbadapter.Same
		}
	}
	return nil
}
