package refusals

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Rejection is a record that a peer offered and this node refused.
type Rejection struct {
	Key     []byte
	Version dbadapter.Version
	From    roster.ID // the peer that offered it, which need not be its writer
	Reason  string
	Time    time.Time   // of the refusal
	Rule    wire.Reason // that Reason explains
}

// refusedName names a refused record. Its pair would not do: a member can grind several
// records of one index to one checksum.
type refusedName struct {
	index  dbadapter.Index
	digest dbadapter.Digest
}

// Rejections remembers what was refused, under its index and digest, the
// last MaxRejections of them. They are not kept on disk: after a restart the
// records are offered, examined and refused once more.
type Rejections struct {
	mu    sync.Mutex
	of    map[refusedName]Rejection
	order []refusedName // by the first refusal; each once
	under map[dbadapter.Index][]refusedName
}

// Add remembers a record, which may be one that cannot be stored.
func (rs *Rejections) Add(r *dbadapter.Hashed, from roster.ID, rule wire.Reason, why error, now time.Time) {
	rs.add(refusedName{r.Index, r.Digest}, Rejection{
		Key: slices.Clone(r.Key), Version: r.Version, From: from, Reason: why.Error(), Time: now.UTC(), Rule: rule,
	})
}

func (rs *Rejections) add(name refusedName, r Rejection) {
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
func (rs *Rejections) remove(name refusedName) {
	is := func(n refusedName) bool { return n == name }
	delete(rs.of, name)
	rs.order = slices.DeleteFunc(rs.order, is)
	if rs.under[name.index] = slices.DeleteFunc(rs.under[name.index], is); len(rs.under[name.index]) == 0 {
		delete(rs.under, name.index)
	}
}

// Held forgets what was refused of a key that now holds the record. That is the
// record itself, and versions before it, which win nowhere any more.
func (rs *Rejections) Held(r *dbadapter.Hashed) {
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

// Rule is that by which a record was refused; 0 where no refusal of it is remembered.
func (rs *Rejections) Rule(r *dbadapter.Hashed) wire.Reason {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.of[refusedName{r.Index, r.Digest}].Rule
}

// Count is how many there are.
func (rs *Rejections) Count() int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return len(rs.of)
}

// List lists them, the oldest first.
func (rs *Rejections) List() []Rejection {
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
