package node

import (
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Rejection is a record that a peer offered and this node refused.
type Rejection struct {
	Key     []byte
	Version dbadapter.Version
	From    ID // the peer that offered it, which need not be its writer
	Reason  string
	Time    time.Time // of the refusal
}

// rejections remembers what was refused, under the pair that stands for it, the
// last MaxRejections of them. They are not kept on disk: after a restart the
// records are offered, examined and refused once more.
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

// Rejected lists what this node refused of what peers offered, the oldest first.
func (ns *Namespace) Rejected() []Rejection { return ns.rejected.list() }

// RejectedCount is how many rejections are remembered.
func (ns *Namespace) RejectedCount() int { return ns.rejected.count() }

// reject remembers a record, which may be one that cannot be stored and has a
// pair all the same.
func (ns *Namespace) reject(r *dbadapter.Hashed, from ID, why error) {
	if ns.node.Refused != nil {
		ns.node.Refused(why)
	}
	ns.rejected.add(dbadapter.PairOf(ns.Keys.Hasher, r), Rejection{
		Key: slices.Clone(r.Key), Version: r.Version, From: from, Reason: why.Error(), Time: ns.node.Now().UTC(),
	})
}

// accepted forgets that a record was refused before.
func (ns *Namespace) accepted(r *dbadapter.Hashed) {
	if ns.rejected.count() > 0 {
		ns.rejected.remove(dbadapter.PairOf(ns.Keys.Hasher, r))
	}
}
