package reconcile

import (
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The step apply: the admission lets records in, one transaction a
// batch.

// apply passes records through the admission.
func (e *exchange) apply(records []dbadapter.Record) error {
	if len(records) == 0 {
		return nil
	}
	e.opts.enter(StepApply)
	defer e.opts.enter(StepFetch)
	verdicts, err := e.opts.Admit(records)
	if err != nil {
		return fmt.Errorf("applying %d records: %w", len(records), err)
	}
	for n, v := range verdicts {
		switch {
		case v.Reason != 0:
			e.refuse(&records[n], v.Reason)
		case v.Result == dbadapter.Applied:
			e.applied++
			e.link.report.Applied++
		}
	}
	return nil
}

// refuse notes a record that the admission refused. The peer is told by the
// pair that stands for the record, so that it need not send it again.
func (e *exchange) refuse(r *dbadapter.Record, why wire.Reason) {
	h := e.opts.Keys.Hasher
	e.link.report.Rejected++
	if len(e.refusals) == wire.MaxRefusals {
		return // counted, but no longer named
	}
	e.refusals = append(e.refusals, wire.Refusal{
		Index:    h.Index(r.Key),
		Checksum: h.Checksum(r.Version.Clock, []dbadapter.Digest{h.Digest(r)}),
		Reason:   why,
	})
}
