package reconcile

import (
	"cmp"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The step apply: the admission lets records in, one transaction a batch.

// apply passes what has arrived to the admission, in parts. Records that waited may
// have made a batch larger than one transaction. And a store that compares small
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
			if err := t.admit(batch, size, beside); err != nil {
				return err
			}
			batch, size, beside = nil, 0, 0
		}
		if batch == nil {
			batch = make([]dbadapter.Hashed, 0, min(len(arrived)-n, wire.BatchRecords))
		}
		batch, size, beside = append(batch, r.Hashed), size+next, beside+r.beside
	}
	return t.admit(batch, size, beside)
}

// pending is an admission that may be running.
type pending struct {
	records  []dbadapter.Hashed
	taken    taken
	wait     func()
	verdicts []Verdict
	err      error
}

// taken is what admissions take of the session's memory: the bytes of their records, and
// those of what this side holds under their indices.
type taken struct{ size, beside int64 }

func (t *taken) add(other taken) {
	t.size, t.beside = t.size+other.size, t.beside+other.beside
}

// has reports whether there is room for one more, with so many admissions running.
func (t *taken) has(more taken, admissions int) bool {
	return admissions < mostAside && t.size+more.size <= asideBytes && t.beside+more.beside <= besideBytes
}

func (t *taken) subtract(other taken) {
	t.size, t.beside = t.size-other.size, t.beside-other.beside
}

// admit passes one batch, of so many bytes, to the admission: it is checked and committed
// while the next ones come and are checked, too. They end in any order: each record is
// decided by itself.
func (t *receiver) admit(records []dbadapter.Hashed, size, beside int64) error {
	if len(records) == 0 {
		return nil
	}
	defer t.link.in(StepApply)()
	p := &pending{records: records, taken: taken{size, beside}}
	for len(t.pending) > 0 && !t.aside.has(p.taken, len(t.pending)) {
		if err := t.settleOldest(); err != nil {
			return err
		}
	}
	run := func() { p.verdicts, p.err = t.link.opts.Admit(records)() }
	t.pending = append(t.pending, p)
	t.aside.add(p.taken)
	if aside := t.link.opts.Aside; aside != nil {
		p.wait = aside(run)
		t.link.settle = t.settleAll
	} else {
		run()
		if err := t.settle(); err != nil {
			return err
		}
	}
	return t.link.tick()
}

// settle waits for the admissions that are running, and notes their verdicts.
func (t *receiver) settle() error {
	for len(t.pending) > 0 {
		if err := t.settleOldest(); err != nil {
			return err
		}
	}
	return nil
}

func (t *receiver) settleOldest() error {
	p := t.pending[0]
	t.pending = t.pending[1:]
	t.aside.subtract(p.taken)
	if p.wait != nil {
		p.wait()
	}
	for n, v := range p.verdicts {
		switch {
		case v.Reason != 0:
			t.refuse(&p.records[n], v.Reason)
		case v.Result == dbadapter.Applied:
			t.applied++
			t.link.report.Applied++
			t.link.headway(1, recordSize(&p.records[n].Record))
		}
	}
	if p.err != nil {
		return fmt.Errorf("applying %d records: %w", len(p.records), p.err)
	}
	return nil
}

// settleAll waits for all admissions, also where one has failed.
func (t *receiver) settleAll() (err error) {
	for len(t.pending) > 0 {
		err = cmp.Or(err, t.settle())
	}
	return err
}

// refuse notes a record that the admission refused. The peer is told by the
// record's digest, so that it need not send it again.
func (t *receiver) refuse(r *dbadapter.Hashed, why wire.Reason) {
	t.link.report.declinedHere(why)
	if collectable(&r.Record, why) {
		t.collectable++
		t.link.report.DeclinedCollectable++
	}
	if len(t.refusals) == wire.MaxRefusals {
		return // counted, but no longer named
	}
	t.refusals = append(t.refusals, wire.Refusal{Index: r.Index, Digest: r.Digest, Reason: why})
}

// collectable reports whether a side that lacks a record which it declined may not
// vouch for the record's time. So it is for a tombstone, a record that expires and one
// that is acceptable later, unless the floor is what keeps it out.
func collectable(r *dbadapter.Record, why wire.Reason) bool {
	return (r.Deleted || r.Expires != 0 || why == wire.ReasonClock || why == wire.ReasonFull) && why != wire.ReasonFloor
}
