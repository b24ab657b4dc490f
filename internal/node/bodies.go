package node

import (
	"bytes"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// By placement writer large values are bodies: records under keys that name their shard (package bodies).

// Bodied reports whether large values are bodies in this namespace.
func (ns *Namespace) Bodied() bool { return ns.rule != nil && ns.rule.Kind == placement.Writer }

// reserved reports whether a key is that of a body or a hint, which no watch tells of.
func (ns *Namespace) reserved(key []byte) bool { return ns.Bodied() && bodies.Reserved(key) }

// BehindReserved is where a scan of users' keys behind a key begins.
func (ns *Namespace) BehindReserved(after []byte) []byte {
	if last := bodies.Last(); ns.Bodied() && bytes.Compare(after, last) < 0 {
		return last
	}
	return after
}

// asUsers makes what is kept of a body, or of a hint, what it is to a user: a value of its key.
func (ns *Namespace) asUsers(r *dbadapter.Record) {
	if !ns.Bodied() || !bodies.Reserved(r.Key) {
		return
	}
	if _, of, is := bodies.Names(r.Key); is {
		if r.Key = of; !r.Deleted {
			r.Value = bodies.Inline(r.Value)
		}
	} else if told, err := wire.ParsePushed(r.Value); err == nil {
		*r = told
	}
}

// Size is the size of the user's value of a record as hosts hold it, such as an entry of a kept log.
func (ns *Namespace) Size(r *dbadapter.Record) int {
	if ns.Bodied() {
		return bodies.Size(r.Value)
	}
	return len(r.Value)
}

// UsersKey is the user's key of a record, of which that of a body names it; false: it has none, as a hint's.
func (ns *Namespace) UsersKey(key []byte) (of []byte, users bool) {
	if !ns.reserved(key) {
		return key, true
	}
	_, of, users = bodies.Names(key)
	return of, users
}
