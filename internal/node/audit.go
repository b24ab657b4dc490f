package node

import (
	"context"
	"errors"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/replica"
)

// audits is how often an audit begins anew because too much was written meanwhile.
const audits = 3

// Audit computes by a scan what the namespace keeps up to date with each commit, and
// puts right what has drifted: in the data, and in the control namespace. Writes go
// on meanwhile; ErrBusy says that there were too many. tick, if not nil, is called
// every 64 records, and ends the audit with its error.
func (ns *Namespace) Audit(ctx context.Context, tick func() error) (data, control replica.Drift, err error) {
	if data, err = ns.Part.audit(ctx, tick); err == nil {
		control, err = ns.Control.audit(ctx, tick)
	}
	return data, control, err
}

func (p *Part) audit(ctx context.Context, tick func() error) (d replica.Drift, err error) {
	for range audits {
		if d, err = p.Live.Audit(ctx, p.Store, tick); !errors.Is(err, reconcile.ErrBusy) {
			break
		}
	}
	if d.Any() {
		p.kept.mu.Lock()
		p.kept.drifted = true
		p.kept.mu.Unlock()
	}
	return d, err
}
