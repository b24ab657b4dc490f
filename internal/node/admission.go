package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// refusal is why a record is not admitted.
type refusal struct {
	reason wire.Reason
	err    error
}

func refuse(reason wire.Reason, format string, args ...any) *refusal {
	return &refusal{reason, fmt.Errorf(format, args...)}
}

// Admit is the one way in for records from a peer: each is examined alone, and commit
// commits those that pass. The verdicts are in the order of the records. theirs is the
// floor that the peer has greeted with.
func (ns *Namespace) Admit(ctx context.Context, from ID, theirs dbadapter.Timestamp, records []dbadapter.Hashed) (commit func() ([]reconcile.Verdict, error)) {
	members := ns.Members()
	refused := ns.examineAll(members, from, ns.node.Now(), records)
	return func() ([]reconcile.Verdict, error) {
		if now := ns.Members(); now != members {
			ns.examineAgain(now, from, records, refused)
		}
		verdicts := make([]reconcile.Verdict, len(records))
		past := ns.past()
		for first := 0; first < len(records); {
			last := min(first+ns.pace.next(ns.commits.singles.Load(), ns.node.elapsed(), admitLeast, admitMost), len(records))
			if err := ns.admit(ctx, from, theirs, past, records[first:last], refused[first:last], verdicts[first:last]); err != nil {
				return nil, err
			}
			first = last
		}
		return verdicts, nil
	}
}

// admit commits the records that were not refused. It shares the commits with single
// writes, and the store's transactions too: one that such a record overtakes is made
// anew, as if another single write had.
func (ns *Namespace) admit(ctx context.Context, from ID, theirs, past dbadapter.Timestamp, records []dbadapter.Hashed, refused []*refusal, verdicts []reconcile.Verdict) (err error) {
	writes := make([]dbadapter.Write, 0, len(records))
	places := make([]int, 0, len(records)) // of writes in verdicts
	for i, why := range refused {
		if why != nil {
			verdicts[i].Reason = why.reason
			ns.reject(&records[i], from, why.err)
			continue
		}
		writes = append(writes, dbadapter.Write{Record: records[i]})
		places = append(places, i)
	}
	if len(writes) < len(records) {
		defer ns.outdated(records, refused)
	}
	if len(writes) == 0 {
		return nil
	}
	ns.commits.RLock()
	defer ns.commits.RUnlock()
	if writes, places, err = ns.keepOut(from, theirs, verdicts, writes, places); err != nil {
		return err
	}
	// Before they are committed: a reader of one of these versions that writes
	// on the condition that it is held gets a greater one.
	for i := range writes {
		ns.clock.Observe(hlc.Timestamp(writes[i].Record.Version.Clock))
		writes[i].Past = past
	}
	outcomes, err := ns.apply(ctx, writes)
	ns.written(writes[:len(outcomes)], outcomes)
	if err != nil {
		return err
	}
	for i, o := range outcomes {
		if o.Result == dbadapter.Full {
			verdicts[places[i]].Reason = wire.ReasonFull
			ns.reject(&writes[i].Record, from, errFull)
			continue
		}
		verdicts[places[i]].Result = o.Result
	}
	return nil
}

// errFull says why a record is declined: only keys that were chosen for it share an
// index in such a number.
var errFull = fmt.Errorf("%w: %d other records share its index; delete some of them, or choose another key", dbadapter.ErrLimit, dbadapter.MaxBucket)

// keepOut takes off the writes whose records the floor keeps out. commits is held.
func (ns *Namespace) keepOut(from ID, theirs dbadapter.Timestamp, verdicts []reconcile.Verdict, writes []dbadapter.Write, places []int) (_ []dbadapter.Write, _ []int, err error) {
	floor := dbadapter.Timestamp(ns.vouching.floor.Load())
	members := ns.Members()
	follows := !members.Has(ns.node.ID, RoleWrite) && members.Has(from, RoleWrite)
	var snap dbadapter.Snapshot
	defer func() {
		if snap != nil {
			snap.Close()
		}
	}()
	kept := 0
	for i := range writes {
		r := &writes[i].Record
		if keepsOut(floor, r.Version.Clock, follows, theirs) {
			if snap == nil {
				if snap, err = ns.Store.Snapshot(); err != nil {
					return nil, nil, err
				}
			}
			_, err := snap.Get(r.Key)
			if errors.Is(err, dbadapter.ErrNotFound) {
				verdicts[places[i]].Reason = wire.ReasonFloor
				if at, ok := r.Due(); ok && at <= floor {
					continue // it has been collected here, and is missed by no person
				}
				ns.reject(r, from, fmt.Errorf("it is not later than %s, up to when deleted records have been collected here", floor.Time().Format(time.RFC3339)))
				continue
			}
			if err != nil {
				return nil, nil, err
			}
		}
		writes[kept], places[kept] = writes[i], places[i]
		kept++
	}
	return writes[:kept], places[:kept], nil
}
