package peer

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/peer/status"
)

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
