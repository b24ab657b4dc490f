package node

import (
	"bytes"
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
	under map[dbadapter.Index][]dbadapter.Pair
}

func (rs *rejections) add(pair dbadapter.Pair, r Rejection) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if _, known := rs.of[pair]; !known {
		if rs.of == nil {
			rs.of, rs.under = map[dbadapter.Pair]Rejection{}, map[dbadapter.Index][]dbadapter.Pair{}
		}
		if len(rs.order) == MaxRejections {
			rs.remove(rs.order[0])
		}
		rs.order = append(rs.order, pair)
		rs.under[pair.Index] = append(rs.under[pair.Index], pair)
	}
	rs.of[pair] = r
}

// remove forgets a rejection; mu is held.
func (rs *rejections) remove(pair dbadapter.Pair) {
	is := func(p dbadapter.Pair) bool { return p == pair }
	delete(rs.of, pair)
	rs.order = slices.DeleteFunc(rs.order, is)
	if rs.under[pair.Index] = slices.DeleteFunc(rs.under[pair.Index], is); len(rs.under[pair.Index]) == 0 {
		delete(rs.under, pair.Index)
	}
}

// held forgets what was refused of a key that now holds the record: the record itself, and
// versions before it, which win nowhere any more.
func (rs *rejections) held(h dbadapter.Hasher, r *dbadapter.Hashed) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if len(rs.under[r.Index]) == 0 {
		return
	}
	own := dbadapter.PairOf(h, r)
	for _, pair := range slices.Clone(rs.under[r.Index]) {
		if refused := rs.of[pair]; pair == own || bytes.Equal(refused.Key, r.Key) && refused.Version.Compare(r.Version) < 0 {
			rs.remove(pair)
		}
	}
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

// outdated forgets those of the records refused whose keys hold a later version already: a
// peer has not heard of that yet. What cannot be read stays listed.
func (ns *Namespace) outdated(records []dbadapter.Hashed, refused []*refusal) {
	snap, err := ns.Store.Snapshot()
	if err != nil {
		return
	}
	defer snap.Close()
	for i := range records {
		if refused[i] == nil {
			continue
		}
		if held, err := snap.Get(records[i].Key); err == nil {
			ns.rejected.held(ns.Keys.Hasher, &dbadapter.Hashed{Record: held, Index: records[i].Index})
		}
	}
}

// written takes note of a commit of records.
func (ns *Namespace) written(writes []dbadapter.Write, outcomes []dbadapter.Outcome) {
	ns.vouching.waiting.note(writes, outcomes)
	for i, o := range outcomes {
		if (o.Result == dbadapter.Applied || o.Result == dbadapter.Same) && !writes[i].Action.Removes() {
			ns.rejected.held(ns.Keys.Hasher, &writes[i].Record)
		}
	}
}
