package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// What was refused is listed until its key holds that record or a later one, however that
// came, and no longer; a version before it changes nothing.
func TestRejectedUntilALaterVersion(t *testing.T) {
	for name, c := range map[string]struct {
		then func(a, b *machine, sa, sb *Namespace) error
		left int
	}{
		"the writer deletes it": {func(a, b *machine, sa, sb *Namespace) error {
			must(commit(sa.Sets()[0].Delete([]byte("k"))))
			_, _, err := b.sync(sb, a, syncing.Ask{})
			return err
		}, 0},
		"the writer writes it anew": {func(a, b *machine, sa, sb *Namespace) error {
			must(put(sa, "k", "later"))
			_, _, err := b.sync(sb, a, syncing.Ask{})
			return err
		}, 0},
		"this node writes it": {func(_, _ *machine, _, sb *Namespace) error {
			_, err := put(sb, "k", "mine")
			return err
		}, 0},
		"this node imports it": {func(_, _ *machine, _, sb *Namespace) error {
			_, err := importAll(sb, []Item{{Key: []byte("k"), Value: []byte("mine")}})
			return err
		}, 0},
		"this node imports an older one": {func(_, _ *machine, _, sb *Namespace) error {
			_, err := importAll(sb, []Item{{Key: []byte("k"), Value: []byte("mine"), Time: noon.Add(-time.Hour)}})
			return err
		}, 1},
		"the writer deletes it, and another peer has not heard": {func(a, b *machine, sa, sb *Namespace) error {
			third := newMachine(3)
			sc := must(third.join(a, invite(sa, RoleWrite)))
			third.clock = a.clock.Add(2 * sa.Members().Policy().MaxSkew)
			must(put(sc, "k", "of the third"))
			if _, _, err := third.sync(sc, b, syncing.Ask{}); !errors.Is(err, syncing.ErrRejected) {
				return err
			}
			a.clock = third.clock.Add(time.Minute)
			a.turn(sa, third)
			must(commit(sa.Sets()[0].Delete([]byte("k"))))
			b.clock = a.clock
			if _, _, err := b.sync(sb, a, syncing.Ask{}); err != nil || sb.Sets()[0].RejectedCount() != 0 {
				return errors.Join(err, fmt.Errorf("%v is listed", sb.Sets()[0].Rejected()))
			}
			b.clock = noon // its clock goes wrong
			r := must(dbadapter.Hash(sb.Sets()[0].Keys.Hasher, must(get(sc, "k"))))
			verdicts := must(sb.Sets()[0].Admit(context.Background(), third.ID, 0, noTerm, []dbadapter.Hashed{r})())
			if verdicts[0].Reason != wire.ReasonClock {
				return fmt.Errorf("it was not refused: %v", verdicts)
			}
			return nil
		}, 0},
		"this node writes another key": {func(_, _ *machine, _, sb *Namespace) error {
			_, err := put(sb, "another", "")
			return err
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newMachine(1), newMachine(2)
			sa := a.create("notes", Policy{})
			sb := must(b.join(a, invite(sa, RoleWrite)))
			if _, _, err := b.sync(sb, a, syncing.Ask{}); err != nil {
				t.Fatal(err)
			}
			a.clock = a.clock.Add(2 * sa.Members().Policy().MaxSkew)
			must(put(sa, "k", "v"))
			if _, _, err := b.sync(sb, a, syncing.Ask{}); !errors.Is(err, syncing.ErrRejected) || sb.Sets()[0].RejectedCount() != 1 {
				t.Fatal(err, sb.Sets()[0].Rejected())
			}
			a.clock = a.clock.Add(time.Minute)
			b.clock = a.clock
			if err := c.then(a, b, sa, sb); err != nil {
				t.Fatal(err)
			}
			if list := sb.Sets()[0].Rejected(); len(list) != c.left || sb.Sets()[0].RejectedCount() != c.left {
				t.Errorf("%v is listed", list)
			}
		})
	}
}

// Of the versions of a key, and of the keys of an index, that were refused, those go that are not
// later than what is held.
func TestRejectionsOfAKey(t *testing.T) {
	h := crowding{must(newMachine(1).create("notes", Policy{}), error(nil)).Sets()[0].Keys.Hasher}
	var rs rejections
	of := func(key string, minute int, value string) *dbadapter.Hashed {
		r := dbadapter.Record{Key: []byte(key), Value: []byte(value), Version: dbadapter.Version{Clock: dbadapter.TimestampAt(noon.Add(time.Duration(minute) * time.Minute)), Writer: 1}}
		return new(must(dbadapter.Hash(h, r)))
	}
	for i := range MaxRejections + 3 {
		r := of(fmt.Sprint("filler ", i), 0, "")
		rs.add(refusedName{r.Index, r.Digest}, Rejection{Key: r.Key, Version: r.Version})
	}
	for _, r := range []*dbadapter.Hashed{of(crowd(1), 1, "a"), of(crowd(1), 2, "a"), of(crowd(1), 2, "b"), of(crowd(1), 3, "a"), of(crowd(2), 1, "a")} {
		rs.add(refusedName{r.Index, r.Digest}, Rejection{Key: r.Key, Version: r.Version})
	}
	rs.held(of(crowd(1), 2, "b"))
	if n := rs.count(); n != MaxRejections-2 || len(rs.order) != n || len(rs.under[12345]) != 3 {
		t.Errorf("%d are left, %d in order, and %v", n, len(rs.order), rs.under[12345])
	}
	for range 3 {
		rs.held(of(crowd(1), 9, ""))
		rs.held(of(crowd(2), 9, ""))
	}
	if n := rs.count(); n != MaxRejections-5 || len(rs.under[12345]) != 0 || len(rs.under) > n {
		t.Errorf("%d are left", n)
	}
}
