package node

import (
	"context"
	"iter"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/peer/status"
)

// Future lists the records from the future, by key.
func (set *Set) Future(ctx context.Context) iter.Seq2[status.FutureRecord, error] {
	return func(yield func(status.FutureRecord, error) bool) {
		snap, err := set.Store.Snapshot()
		if err != nil {
			yield(status.FutureRecord{}, err)
			return
		}
		defer snap.Close()
		ahead := set.ns.ahead()
		for r, err := range snap.Scan(ctx, nil, nil) {
			if err != nil {
				yield(status.FutureRecord{}, err)
				return
			}
			if ahead(&r.Record) && !yield(status.FutureRecord{Key: slices.Clone(r.Key), Version: r.Version, Own: set.ns.own(&r.Record)}, nil) {
				return
			}
		}
	}
}

// ahead tells which records are from the future, as of now.
func (ns *Namespace) ahead() func(*dbadapter.Record) bool {
	latest := ns.node.Now().Add(ns.Members().Policy().MaxSkew)
	return func(r *dbadapter.Record) bool { return r.Version.Clock.Time().After(latest) }
}

// own reports whether this node made the record, under any incarnation. A dated
// import has no writer: it is this node's if this node signed it, and every
// node's if it is not signed.
func (ns *Namespace) own(r *dbadapter.Record) bool {
	if r.Version.Writer == 0 {
		return r.Signer == ns.self || r.Signer == 0
	}
	return r.Version.Writer == ns.self
}

// Restamp gives each of this node's records from the future a version of now with
// the same content. The new one takes the place of the one held, and Restamp
// returns how many there were. Then the namespace's clock is that of the greatest
// version held. Writes are accepted again unless a record of another member is from
// the future, too. The machine's clock must be right: Restamp trusts it.
//
// It is safe because no member with a right clock has accepted these versions. A
// member whose clock was as wrong may have. Its copy is the greater one still, and
// a sync brings it back when its time has come. The new versions are as late as a
// member with this machine's time accepts. Such members may hold versions of a key
// from a clock that was fast by less than the skew. These do not win over the new
// ones.
//
// A batch is one durable transaction; after a crash between two, Restamp finishes
// what is left. No version is used twice: the new ones, and all later ones, have a
// new incarnation. Writes and admissions wait meanwhile: a scan of all records.
func (ns *Namespace) Restamp(ctx context.Context) (restamped int, err error) {
	ns.lifecycle.Lock()
	defer ns.lifecycle.Unlock()
	for _, set := range ns.Sets() {
		set.commits.Lock()
		defer set.commits.Unlock()
		defer set.tenure.entered(noTerm)
	}
	defer ns.Hold().Release()
	ns.incarnation = ns.node.Random(ForIncarnation)
	clock := hlc.New(ns.node.Now)
	clock.Observe(hlc.At(ns.node.Now().Add(ns.Members().Policy().MaxSkew)) - 1)
	// What this node says of itself in the control namespace is from the future, too.
	for _, set := range ns.Sets() {
		if err := set.restamping(clock); err != nil {
			return 0, err
		}
	}
	control := restamp{part: &ns.Control, clock: clock, authorize: ns.Control.Sign}
	if err := control.all(ctx); err != nil {
		return 0, err
	}
	staying := control.staying
	for _, set := range ns.Sets() {
		data := restamp{part: &set.Part, clock: clock, authorize: set.authorize}
		err := data.all(ctx)
		restamped, staying = restamped+data.done, max(staying, data.staying)
		if err != nil {
			return restamped, err
		}
	}
	greatest := max(staying, dbadapter.Timestamp(clock.Latest()))
	for _, p := range ns.parts() {
		if err := p.Store.Lower(ctx, greatest); err != nil {
			return restamped, err
		}
		p.declined.Forget()
	}
	ns.clock.Lower(hlc.Timestamp(greatest))
	for _, set := range ns.Sets() {
		set.gc.Waiting().Again() // what waited until its time comes is due earlier now
		if err := set.restamped(); err != nil {
			return restamped, err
		}
	}
	return restamped, nil
}

// restamping keeps this node's promise below the versions that are about to be
// made. These are later than what this node has promised.
//
// The group is held.
func (set *Set) restamping(clock *hlc.Clock) error {
	return set.gc.Update(func(w *watermark.Watermark) bool {
		clock.Observe(hlc.Timestamp(w.UpTo()))
		w.Restamp(dbadapter.Timestamp(clock.Latest()), dbadapter.Timestamp(set.ns.clock.Latest()))
		return true
	})
}

// restamped forgets what this node has pledged from the future. The group is held.
func (set *Set) restamped() error {
	return set.gc.Update(func(w *watermark.Watermark) bool {
		w.Restamped()
		return false
	})
}

// restamp is a Restamp of one part on its way.
type restamp struct {
	part      *Part
	clock     *hlc.Clock // of the new versions: it has not seen the old ones
	authorize func([]dbadapter.Write) error
	staying   dbadapter.Timestamp // the greatest of those that stay
	batch     []dbadapter.Write
	bytes     int
	done      int
}

// all restamps what there is to restamp.
func (b *restamp) all(ctx context.Context) error {
	snap, err := b.part.Store.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	ns := b.part.ns
	ahead := ns.ahead()
	for r, err := range snap.Scan(ctx, nil, nil) {
		switch {
		case err != nil:
		case ahead(&r.Record) && ns.own(&r.Record):
			err = b.add(ctx, &r.Record)
		default:
			b.staying = max(b.staying, r.Version.Clock)
		}
		if err != nil {
			return err
		}
	}
	return b.commit(ctx)
}

// add replaces a record, with the batch that it fills or with a later one.
func (b *restamp) add(ctx context.Context, held *dbadapter.Record) error {
	if size := held.Weight(); len(b.batch) == dbadapter.MaxBatch || b.bytes+size > dbadapter.MaxBatchBytes {
		if err := b.commit(ctx); err != nil {
			return err
		}
	}
	r := held.Clone()
	r.Signature, r.Signer = nil, 0
	version, err := b.part.ns.versionAt(b.clock.Read())
	if err != nil {
		return err
	}
	r.Version = version
	r.Replace(held)
	hashed, err := dbadapter.Hash(b.part.Keys.Hasher, r)
	if err != nil {
		return err
	}
	was := held.Version
	b.batch = append(b.batch, dbadapter.Write{Record: hashed, If: &was, Action: dbadapter.Replace})
	b.bytes += len(r.Key) + len(r.Value)
	return nil
}

// commit signs and writes the batch.
func (b *restamp) commit(ctx context.Context) error {
	if len(b.batch) == 0 {
		return nil
	}
	if err := b.authorize(b.batch); err != nil {
		return err
	}
	if _, err := b.part.Store.Apply(ctx, b.batch); err != nil {
		return err
	}
	b.done += len(b.batch)
	b.batch, b.bytes = b.batch[:0], 0
	return nil
}
