package reconcile

import (
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The step apply: the admission lets records in, one transaction a batch.

// apply passes what has arrived to the admission, in parts: records that waited may
// have made a batch larger than one transaction, and a store that compares small
// records with large ones that it holds has those in memory until the commit.
func (t *receiver) apply(arrived []arrival) error {
	var batch []dbadapter.Hashed
	size, beside := int64(0), int64(0)
	for n := range arrived {
		r := &arrived[n]
		if r.withheld {
			t.link.report.declinedHere(0) // before, and it is not here since
			if collectable(&r.Record, r.why) {
				t.link.report.DeclinedCollectable++
			}
			continue
		}
		next := recordSize(&r.Record)
		if len(batch) == wire.BatchRecords || len(batch) > 0 && (size+next > wire.MaxFrame || beside+r.beside > besideBytes) {
			if err := t.admit(batch); err != nil {
				return err
			}
			batch, size, beside = nil, 0, 0
		}
		batch, size, beside = append(batch, r.Hashed), size+next, beside+r.beside
	}
	return t.admit(batch)
}

// admit passes one batch to the admission, and notes the verdicts.
func (t *receiver) admit(records []dbadapter.Hashed) error {
	if len(records) == 0 {
		return nil
	}
	defer t.link.in(StepApply)()
	verdicts, err := t.link.opts.Admit(records)
	if err != nil {
		return fmt.Errorf("applying %d records: %w", len(records), err)
	}
	for n, v := range verdicts {
		switch {
		case v.Reason != 0:
			t.refuse(&records[n], v.Reason)
		case v.Result == dbadapter.Applied:
			t.applied++
			t.link.report.Applied++
		}
	}
	return t.link.tick()
}

// refuse notes a record that the admission refused. The peer is told by the
// pair that stands for the record, so that it need not send it again.
func (t *receiver) refuse(r *dbadapter.Hashed, why wire.Reason) {
	t.link.report.declinedHere(why)
	if collectable(&r.Record, why) {
		t.collectable++
		t.link.report.DeclinedCollectable++
	}
	if len(t.refusals) == wire.MaxRefusals {
		return // counted, but no longer named
	}
	p := dbadapter.PairOf(t.hasher, r)
	t.refusals = append(t.refusals, wire.Refusal{Index: p.Index, Checksum: p.Checksum, Reason: why})
}

// collectable reports whether a side that lacks a record which it declined may not
// vouch for the record's time: it is a tombstone or expires, or it is acceptable
// later, and the floor is not what keeps it out.
func collectable(r *dbadapter.Record, why wire.Reason) bool {
	return (r.Deleted || r.Expires != 0 || why == wire.ReasonClock) && why != wire.ReasonFloor
}
