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
			a, b, sa, sb := newPair(RoleWrite)
			succeeds(t, third(b.sync(sb, a, syncing.Ask{})))
			a.clock = a.clock.Add(2 * sa.Members().Policy().MaxSkew)
			must(put(sa, "k", "v"))
			if _, _, err := b.sync(sb, a, syncing.Ask{}); !errors.Is(err, syncing.ErrRejected) || sb.Sets()[0].RejectedCount() != 1 {
				t.Fatal(err, sb.Sets()[0].Rejected())
			}
			a.clock = a.clock.Add(time.Minute)
			b.clock = a.clock
			succeeds(t, c.then(a, b, sa, sb))
			if list := sb.Sets()[0].Rejected(); len(list) != c.left || sb.Sets()[0].RejectedCount() != c.left {
				t.Errorf("%v is listed", list)
			}
		})
	}
}
