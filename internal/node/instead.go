package node

import (
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// What a host holds in the place of a record that it is to hold.

// look says what is held under the keys of records.
func (set *Set) look(records []dbadapter.Hashed, outcomes []wire.HoldOutcome) error {
	for i := range records {
		held, err := set.Held(records[i].Key)
		if err != nil {
			return err
		}
		if outcomes[i].There = says(held, &records[i].Record); held != nil && !outcomes[i].There {
			outcomes[i].Other = seen(held)
		}
	}
	return nil
}

// there reports whether what a record says is held already.
func (set *Set) there(r *dbadapter.Record) (bool, error) {
	held, err := set.Held(r.Key)
	return err == nil && says(held, r), err
}

// says reports whether what is held, if it is anything, says what a record does. One without a
// writer is the same everywhere by its version, which an older one cannot stand for.
func says(held, r *dbadapter.Record) bool {
	return held != nil && held.SameContent(r) && (r.Version.Writer != 0 || held.Version.Compare(r.Version) >= 0)
}

// unseen is what is held in the place of a record, if the record's writer had not seen it, and which version
// is held; the zero one: none. One without a writer, which no record can name, counts as seen, but by a record on a condition only
// where it is not later than what that rests on.
func (set *Set) unseen(r *dbadapter.Record, q *wire.AskHold) (other *dbadapter.Record, version dbadapter.Version, err error) {
	held, err := set.Held(r.Key)
	switch {
	case err != nil || held == nil:
		return nil, version, err
	case held.Version == r.Version, held.Version.Writer == 0 && !(q.Condition && held.Version.Compare(q.On) > 0), held.Version.Writer != 0 && r.Supersedes(held.Version):
		return nil, held.Version, nil
	}
	return seen(held), held.Version, nil
}

// overruled has the host remember which records have lately come in the place of what their writers had not seen. Of two that
// rest on one version, the host may have taken and acknowledged the first, and then been brought the other one.
type overruled struct {
	mu    sync.Mutex // guards what follows
	of    map[dbadapter.Version]dbadapter.Version
	order []dbadapter.Version
}

// maxOverruled is how many are remembered of a set.
const maxOverruled = 1024

func (o *overruled) note(by, unseen dbadapter.Version) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[dbadapter.Version]dbadapter.Version{}
	}
	if _, known := o.of[by]; !known {
		o.order = append(o.order, by)
	}
	if o.of[by] = unseen; len(o.order) > maxOverruled {
		delete(o.of, o.order[0])
		o.order = append(o.order[:0], o.order[1:]...)
	}
}

// by is what a version has overruled, or nil.
func (o *overruled) by(v dbadapter.Version) *dbadapter.Record {
	o.mu.Lock()
	defer o.mu.Unlock()
	if unseen, ok := o.of[v]; ok {
		return &dbadapter.Record{Version: unseen}
	}
	return nil
}

// overruledBy is what a record on a condition has come in the place of, though its writer had not seen it, or nil. On is what it
// rests on: a version without a writer, which no record can name, may not be later.
func (set *Set) overruledBy(v, on dbadapter.Version) *dbadapter.Record {
	if r := set.overruled.by(v); r != nil {
		return r
	}
	if r := set.overDated.by(v); r != nil && r.Version.Compare(on) > 0 {
		return r
	}
	return nil
}

// seen is what a writer has to know of a record to replace it.
func seen(r *dbadapter.Record) *dbadapter.Record {
	return &dbadapter.Record{Version: r.Version, Replaces: r.Replaces}
}
