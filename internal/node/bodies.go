package node

import (
	"bytes"
	"crypto/sha256"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/placement"
)

// By placement writer large values are bodies: records under keys that name their shard (package bodies).

// Bodied reports whether large values are bodies in this namespace.
func (ns *Namespace) Bodied() bool { return ns.rule != nil && ns.rule.Kind == placement.Writer }

// NewBody points to the body of a value that this node sends now.
func (ns *Namespace) NewBody(key, value []byte) *bodies.Pointer {
	p := &bodies.Pointer{Shard: ns.bodyShard(key), Size: uint32(len(value)), Sent: dbadapter.TimestampAt(ns.node.Now()), Sum: sha256.Sum256(value)}
	ns.node.random(p.Salt[:], ForSalt)
	return p
}

// bodyShard is the shard for the body of a key's value: one in whose row this node is the first host, else
// another one that it hosts, else the key's. Keys are spread over several such shards.
func (ns *Namespace) bodyShard(key []byte) placement.Shard {
	var first, hosts []placement.Shard
	for _, set := range ns.Sets() {
		row := ns.Row(set.shard)
		if row == nil || !row.IsNew(ns.node.ID) {
			continue
		}
		if hosts = append(hosts, set.shard); row.New[0] == ns.node.ID {
			first = append(first, set.shard)
		}
	}
	home := ns.Home(key)
	for _, all := range [][]placement.Shard{first, hosts} {
		if len(all) > 0 {
			return all[int(home)%len(all)]
		}
	}
	return home
}

// reserved reports whether a key is that of a body or a hint, which no watch tells of.
func (ns *Namespace) reserved(key []byte) bool { return ns.Bodied() && bodies.Reserved(key) }

// BehindReserved is where a scan of users' keys behind a key begins.
func (ns *Namespace) BehindReserved(after []byte) []byte {
	if last := bodies.Last(); ns.Bodied() && bytes.Compare(after, last) < 0 {
		return last
	}
	return after
}
