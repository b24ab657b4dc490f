package node

import (
	"context"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/route"
)

// meanwhile is a store in which something happens once, before a commit.
type meanwhile struct {
	dbadapter.Namespace
	then func()
}

func (s *meanwhile) Apply(ctx context.Context, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
	if then := s.then; then != nil {
		s.then = nil
		then()
	}
	return s.Namespace.Apply(ctx, writes)
}

// Of two records that have both seen the version which a host holds, and that the host is asked to hold at once, it takes
// one, and gives it as what is held instead of the other one: it commits a record in the place of what it has looked at.
func TestHoldsWhatItHasLookedAt(t *testing.T) {
	for name, earlier := range map[string]bool{"the earlier one first": true, "the later one first": false} {
		t.Run(name, func(t *testing.T) {
			w := newMovers(t, 3, 4)
			w.settle()
			key := w.keyAt(0, true)
			remote := w.all[0].ns.Remote(key)
			make := func(i int, seen ...*dbadapter.Record) *dbadapter.Record {
				return must(w.all[i].ns.Remote(key).Make(Draft{Record: dbadapter.Record{Key: key, Value: []byte{byte(i)}}, Seen: seen}))
			}
			first := make(1)
			if o := must(remote.HoldHere(t.Context(), first, route.Manner{})); !o.Held {
				t.Fatalf("%+v", o)
			}
			one, other := make(1, first), make(2, first)
			if one.Version.Compare(other.Version) > 0 == earlier {
				one, other = other, one
			}
			set := remote.Here()
			set.Store = &meanwhile{set.Store, func() {
				if o := must(remote.HoldHere(t.Context(), one, route.Manner{})); !o.Held {
					t.Errorf("the one: %+v", o)
				}
			}}
			if o := must(remote.HoldHere(t.Context(), other, route.Manner{})); o.Held || o.Other == nil || o.Other.Version != one.Version {
				t.Errorf("the other one: %+v", o)
			}
			if n := set.Store.KeptCount(dbadapter.KeptConflict); n != 0 {
				t.Errorf("%d conflicts", n)
			}
		})
	}
}
