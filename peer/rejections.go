package peer

import (
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Rejection is a record that was offered and refused.
type Rejection struct {
	Key     []byte
	Version dbadapter.Version
	// Peer is the other side: who offered it, which need not be who wrote it;
	// or, from RefusedBy, who refused it.
	Peer   ID
	Reason string
	// Time is when it was refused or, from RefusedBy, when it was looked up.
	Time time.Time
}

// rejections remembers what was refused, under the pair that stands for it, the
// last MaxRejections of them. They are not kept on disk: after a restart the
// records are offered, checked and refused once more.
type rejections struct {
	mu    sync.Mutex
	of    map[dbadapter.Pair]Rejection
	order []dbadapter.Pair // by the first refusal; each once
}

func (rs *rejections) add(pair dbadapter.Pair, r Rejection) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if _, known := rs.of[pair]; !known {
		if rs.of == nil {
			rs.of = map[dbadapter.Pair]Rejection{}
		}
		if len(rs.order) == MaxRejections {
			delete(rs.of, rs.order[0])
			rs.order = rs.order[1:]
		}
		rs.order = append(rs.order, pair)
	}
	rs.of[pair] = r
}

// remove forgets a rejection: the record has become acceptable.
func (rs *rejections) remove(pair dbadapter.Pair) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if _, known := rs.of[pair]; !known {
		return
	}
	delete(rs.of, pair)
	rs.order = slices.DeleteFunc(rs.order, func(p dbadapter.Pair) bool { return p == pair })
}

func (rs *rejections) count() int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return len(rs.of)
}

func (rs *rejections) list() []Rejection {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	out := make([]Rejection, 0, len(rs.order))
	for _, pair := range rs.order {
		r := rs.of[pair]
		r.Key = slices.Clone(r.Key)
		out = append(out, r)
	}
	return out
}

// Rejected lists what was refused of what peers offered, the oldest first.
func (ns *Namespace) Rejected() []Rejection { return ns.rejected.list() }

func (ns *Namespace) reject(r *dbadapter.Record, from ID, why string) {
	// It may be one that cannot be stored, and has a pair all the same.
	hashed := dbadapter.Hashed{Record: *r, Index: ns.keys.Hasher.Index(r.Key), Digest: ns.keys.Hasher.Digest(r)}
	ns.rejected.add(dbadapter.PairOf(ns.keys.Hasher, &hashed), Rejection{
		Key: slices.Clone(r.Key), Version: r.Version, Peer: from, Reason: why, Time: ns.node.now().UTC(),
	})
}

// accepted forgets that a record was refused before.
func (ns *Namespace) accepted(r *dbadapter.Hashed) {
	if ns.rejected.count() > 0 {
		ns.rejected.remove(dbadapter.PairOf(ns.keys.Hasher, r))
	}
}
