package peer

import (
	"context"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// refusal is why a record is not let in.
type refusal struct {
	reason wire.Reason
	text   string
}

func refuse(reason wire.Reason, format string, args ...any) *refusal {
	return &refusal{reason, fmt.Sprintf(format, args...)}
}

// door is the one way in for records from a peer, for one session: each is
// checked alone, on all cores, and those that pass are committed together.
type door struct {
	ns      *Namespace
	ctx     context.Context // the session's
	from    ID
	signers signers
}

func (ns *Namespace) door(ctx context.Context, from ID) reconcile.Admission {
	d := &door{ns: ns, ctx: ctx, from: from}
	return d.apply
}

func (d *door) apply(records []dbadapter.Hashed) ([]reconcile.Verdict, error) {
	roster, now := d.ns.roster.Load(), d.ns.node.now()
	refused := make([]*refusal, len(records))
	onAllCores(len(records), func(i int) { refused[i] = d.examine(roster, now, &records[i].Record) })

	verdicts := make([]reconcile.Verdict, len(records))
	var writes []dbadapter.Write
	var places []int // of writes in verdicts
	for i, why := range refused {
		if why != nil {
			verdicts[i].Reason = why.reason
			d.ns.reject(&records[i].Record, d.from, why.text)
			continue
		}
		writes = append(writes, dbadapter.Write{Record: records[i]})
		places = append(places, i)
	}
	d.ns.commits.Lock()
	defer d.ns.commits.Unlock()
	// Before they are committed: whoever then reads one of these versions, and
	// writes on the condition that it is held, gets a greater one.
	for i := range writes {
		d.ns.clock.Observe(hlc.Timestamp(writes[i].Record.Version.Clock))
	}
	for len(writes) > 0 {
		n := dbadapter.OneBatch(writes)
		outcomes, err := d.ns.store.Apply(d.ctx, writes[:n])
		if err != nil {
			return nil, err
		}
		for i, o := range outcomes {
			verdicts[places[i]].Result = o.Result
			d.ns.accepted(&writes[i].Record)
		}
		writes, places = writes[n:], places[n:]
	}
	return verdicts, nil
}

// examine says why a record must stay outside, or nil.
func (d *door) examine(roster *roster, now time.Time, r *dbadapter.Record) *refusal {
	if err := hlc.Check(r.Version.Clock.Time(), now, roster.state.Policy.MaxSkew); err != nil {
		return refuse(wire.ReasonClock, "%v", err)
	}
	// A dated import has the first reading of its millisecond and no more: no
	// other version without a writer comes from an honest node.
	dated := r.Version.Writer == 0
	if dated && r.Version != (dbadapter.Version{Clock: dbadapter.TimestampAt(r.Version.Clock.Time())}) {
		return refuse(wire.ReasonWriter, "version %s has no writer, and is not that of a dated import", r.Version)
	}
	if roster.state.Policy.Unsigned {
		if !roster.has(d.from, RoleWrite) {
			return refuse(wire.ReasonWriter, "it came from %s, whose role is %s; without signatures only members that may write can pass records on",
				d.from, roster.byID[d.from].Role)
		}
		return nil
	}
	message := signedBytes(d.ns.keys.ID, r)
	if dated {
		if !d.signers.verify(roster, d.from, message, r.Signature) {
			return refuse(wire.ReasonSignature, "no member that may write has signed this dated record")
		}
		return nil
	}
	writer, known := roster.byWriter[r.Version.Writer]
	switch {
	case !known:
		return refuse(wire.ReasonWriter, "its writer %s is not a member that this node knows", r.Version.Writer)
	case writer.Role < RoleWrite:
		return refuse(wire.ReasonWriter, "its writer %s has the role %s", writer.ID, writer.Role)
	case !writer.signed(message, r.Signature):
		return refuse(wire.ReasonSignature, "it is not signed by its writer %s", writer.ID)
	}
	return nil
}
