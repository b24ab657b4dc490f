package peer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/damage"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/peer/status"
)

// mostMissing bounds the missing values: hosts that do not answer are waited for up to 20 seconds for each.
const mostMissing = 100

// Verify reads the files of the store through, if it can, and all records, each with the
// bucket of its index. It also computes anew what the node keeps of them for syncs. What
// has drifted there is put right, counted and logged. ErrCorrupt names what is damaged on
// the disk; Repair mends it. What was met of damage before (Info.Damage) ends where Verify
// finds none. Writes go on meanwhile; ErrBusy says that there were too many.
func (ns *Namespace) Verify(ctx context.Context) (v status.Verification, err error) {
	err = ns.look(ctx, "verify", func(ctx context.Context) error {
		if err := ns.verify(ctx, &v); err != nil {
			return err
		}
		return ns.missing(ctx, &v)
	})
	return v, err
}

// Audit recomputes by a scan what the namespace keeps up to date with each commit: the
// number of its records, their digest and their sketch. A sync relies on these and does
// not read the records. It trusts the records alone, not even what the store says of
// their indices. ErrCorrupt says what differs. Writes go on meanwhile; ErrBusy says
// that there were too many.
func (ns *Namespace) Audit(ctx context.Context) error {
	return ns.look(ctx, "audit", func(ctx context.Context) error {
		for _, set := range ns.core.Sets() {
			if err := damage.Audit(ctx, set); err != nil {
				return err
			}
		}
		return nil
	})
}

// missing reads the values that records held here name.
func (ns *Namespace) missing(ctx context.Context, v *status.Verification) error {
	if !ns.core.Bodied() {
		return nil
	}
	return ns.hosts.MissingBodies(ctx, func(m shards.Missing) (more bool) {
		if v.Missing == nil {
			v.Missing = &status.MissingValues{}
		}
		v.Missing.Count++
		v.Missing.Lost = v.Missing.Lost || errors.Is(m.Err, ErrLost)
		v.Missing.Keys = append(v.Missing.Keys, m.Key)
		return v.Missing.Count < mostMissing
	})
}

// look runs what reads the namespace through, until it closes, and names it in an error.
func (ns *Namespace) look(ctx context.Context, what string, run func(context.Context) error) error {
	return ns.within(ctx, what, func(ctx context.Context) error {
		if err := run(ctx); err != nil {
			return ns.explain(ctx, err)
		}
		return nil
	})
}

// verify ends the state of damage that Damage tells of, if it finds nothing.
func (ns *Namespace) verify(ctx context.Context, v *status.Verification) error {
	n := ns.node
	mark := n.damage.Mark()
	if x, ok := n.store.(dbadapter.Examiner); ok {
		if err := x.Examine(ctx); err != nil {
			return n.met(err)
		}
		v.Files = true
	}
	if err := damage.Read(ctx, n.log, ns.core, v); err != nil {
		return n.damage.Met(ns.id, ns.Name(), err)
	}
	var all []dbadapter.NamespaceID
	for _, u := range n.shelved() {
		all = append(all, u.id)
	}
	for _, ns := range n.Namespaces() {
		all = append(all, ns.id)
	}
	return n.damage.Verified(ns.id, mark, all)
}

// The first audit in the background is an hour after a namespace was opened. The others
// follow each day, or soon after a sync that has met what one should look at. They work
// for a fifth of the time, so that 10^7 records take some minutes.
const (
	auditLook  = 5 * time.Second
	auditFirst = time.Hour
	auditEvery = 24 * time.Hour
	auditWork  = 5 * time.Millisecond
	auditRest  = 4 * auditWork
)

// audits computes anew, now and then, what the namespaces keep, until the node
// closes.
func (n *Node) audits() {
	due := map[*Namespace]time.Time{}
	for n.pause(auditLook) {
		open := n.Namespaces()
		for ns := range due {
			if n.namespaceByID(ns.id) != ns {
				delete(due, ns)
			}
		}
		for _, ns := range open {
			at, known := due[ns]
			if !known {
				due[ns] = time.Now().Add(auditFirst)
			} else if time.Now().After(at) || ns.core.AuditDue() {
				due[ns] = time.Now().Add(auditEvery)
				ns.auditSlowly()
			}
		}
	}
}

// auditSlowly audits the namespace while other work goes on.
func (ns *Namespace) auditSlowly() {
	if ns.enter("audit") != nil {
		return // it is being closed
	}
	defer ns.gate.leave()
	worked := time.Now()
	_, err := damage.Drift(ns.ctx, ns.node.log, ns.core, func() error {
		if time.Since(worked) < auditWork {
			return nil
		}
		if !ns.node.pause(auditRest) {
			return ErrClosed
		}
		worked = time.Now()
		return nil
	})
	if err != nil && ns.ctx.Err() == nil && !errors.Is(err, ErrBusy) {
		ns.node.log.Error("an audit of a namespace failed", logNamespace(ns), logError(err))
	}
}

// openVerified opens what is known of the shard's proofs.
func (sh *shard) openVerified() {
	n, file := sh.ns.node, durable.File{}
	if n.dir != "" {
		name := folder.ProofsOf(int(sh.set.Shard()), sh.ns.core.Rule() != nil)
		file = durable.File{Path: filepath.Join(folder.Path(n.dir, sh.ns.id), name), Kind: fmt.Sprintf("%x/%s", sh.ns.id, name), Owner: n.owner()}
	}
	sh.verified = folder.OpenProofs(n.log.With(logNamespace(sh.ns)), file, n.expected(), n.renewed, n.now())
}

// proved notes a sync of everything that has proved the two sides equal.
func (sh *shard) proved(id ID, differences int) {
	if err := sh.verified.Note(id, sh.ns.node.now(), differences); err != nil {
		sh.ns.node.log.Warn("that a sync has proved the sets equal could not be noted for the next start", logNamespace(sh.ns), logError(err))
	}
}

// proof is the last proof that the records equal a member's, of the shards that it holds,
// too. Of several it is the one of longest ago; zero for never.
func (ns *Namespace) proof(id ID) status.Proof {
	return oldest(ns.with(id), func(sh *shard) status.Proof { return sh.verified.With(id) })
}

// lastProof is the last proof that they equal those of any member, likewise.
func (ns *Namespace) lastProof() status.Proof {
	return oldest(ns.shards(), func(sh *shard) status.Proof {
		last, _ := sh.verified.Last()
		return last
	})
}

// oldest is the oldest of the shards' proofs.
func oldest(all []*shard, of func(*shard) status.Proof) (p status.Proof) {
	for i, sh := range all {
		if one := of(sh); i == 0 || one.At.Before(p.At) {
			p = one
		}
	}
	return p
}

// verifiedAge is for how long no sync has proved the records equal to another member's. Of
// several shards it is the longest. ok is false where there is no other member.
func (ns *Namespace) verifiedAge() (age time.Duration, ok bool) {
	members := ns.core.Members().Members()
	if len(members) == 1 && ID(members[0].ID) == ns.node.self.id {
		return 0, false
	}
	for _, sh := range ns.shards() {
		last, since := sh.verified.Last()
		at := last.At
		if at.IsZero() {
			at = since
		}
		age = max(age, ns.node.now().Sub(at))
	}
	return age, true
}
