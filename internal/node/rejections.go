package node

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Rejection is a record that a peer offered and this node refused.
type Rejection struct {
	Key     []byte
	Version dbadapter.Version
	From    ID // the peer that offered it, which need not be its writer
	Reason  string
	Time    time.Time // of the refusal

	code wire.Reason
}

// refusedName names a refused record. Its pair would not do: a member can grind several
// records of one index to one checksum.
type refusedName struct {
	index  dbadapter.Index
	digest dbadapter.Digest
}

// rejections remembers what was refused, under its index and digest, the
// last MaxRejections of them. They are not kept on disk: after a restart the
// records are offered, examined and refused once more.
type rejections struct {
	mu    sync.Mutex
	of    map[refusedName]Rejection
	order []refusedName // by the first refusal; each once
	under map[dbadapter.Index][]refusedName
}

func (rs *rejections) add(name refusedName, r Rejection) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if _, known := rs.of[name]; !known {
		if rs.of == nil {
			rs.of, rs.under = map[refusedName]Rejection{}, map[dbadapter.Index][]refusedName{}
		}
		if len(rs.order) == MaxRejections {
			rs.remove(rs.order[0])
		}
		rs.order = append(rs.order, name)
		rs.under[name.index] = append(rs.under[name.index], name)
	}
	rs.of[name] = r
}

// remove forgets a rejection; mu is held.
func (rs *rejections) remove(name refusedName) {
	is := func(n refusedName) bool { return n == name }
	delete(rs.of, name)
	rs.order = slices.DeleteFunc(rs.order, is)
	if rs.under[name.index] = slices.DeleteFunc(rs.under[name.index], is); len(rs.under[name.index]) == 0 {
		delete(rs.under, name.index)
	}
}

// held forgets what was refused of a key that now holds the record. That is the
// record itself, and versions before it, which win nowhere any more.
func (rs *rejections) held(r *dbadapter.Hashed) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if len(rs.under[r.Index]) == 0 {
		return
	}
	own := refusedName{r.Index, r.Digest}
	for _, name := range slices.Clone(rs.under[r.Index]) {
		if refused := rs.of[name]; name == own || bytes.Equal(refused.Key, r.Key) && refused.Version.Compare(r.Version) < 0 {
			rs.remove(name)
		}
	}
}

// reason is why a record was refused; 0 where no refusal of it is remembered.
func (rs *rejections) reason(r *dbadapter.Hashed) wire.Reason {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.of[refusedName{r.Index, r.Digest}].code
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
	for _, name := range rs.order {
		r := rs.of[name]
		r.Key = slices.Clone(r.Key)
		out = append(out, r)
	}
	return out
}

// Rejected lists what this node refused of what peers offered, the oldest first.
func (set *Set) Rejected() []Rejection { return set.rejected.list() }

// RejectedCount is how many rejections are remembered.
func (set *Set) RejectedCount() int { return set.rejected.count() }

// reject remembers a record, which may be one that cannot be stored.
func (set *Set) reject(r *dbadapter.Hashed, from ID, why *refusal) {
	if set.ns.node.Refused != nil {
		set.ns.node.Refused(why.err)
	}
	set.rejected.add(refusedName{r.Index, r.Digest}, Rejection{
		Key: slices.Clone(r.Key), Version: r.Version, From: from, Reason: why.err.Error(), Time: set.ns.node.Now().UTC(), code: why.reason,
	})
}

// outdated forgets those of the records refused whose keys hold a later version already: a
// peer has not heard of that yet. What cannot be read stays listed.
func (set *Set) outdated(records []dbadapter.Hashed, refused []*refusal) {
	snap, err := set.Store.Snapshot()
	if err != nil {
		return
	}
	defer snap.Close()
	for i := range records {
		if refused[i] == nil {
			continue
		}
		if held, err := snap.Get(records[i].Key); err == nil {
			set.rejected.held(&dbadapter.Hashed{Record: held, Index: records[i].Index})
		}
	}
}

// written takes note of a commit of records.
func (set *Set) written(writes []dbadapter.Write, outcomes []dbadapter.Outcome) {
	set.gc.Waiting().Committed(writes, outcomes)
	for i, o := range outcomes {
		if (o.Result == dbadapter.Applied || o.Result == dbadapter.Same) && !writes[i].Action.Removes() {
			set.rejected.held(&writes[i].Record)
		}
	}
}
