package peer_test

import (
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

// Whatever a node writes is later than all that it holds, records included that
// came from a node whose clock is ahead: of another key, in a batch, upon a
// condition, by Delete.
func TestWritesFollowWhatIsHeld(t *testing.T) {
	write := map[string]func(ns *peer.Namespace, held dbadapter.Version) error{
		"another key": func(ns *peer.Namespace, _ dbadapter.Version) error {
			_, err := ns.Put(t.Context(), []byte("l"), []byte("ours"))
			return err
		},
		"put": func(ns *peer.Namespace, _ dbadapter.Version) error {
			_, err := ns.Put(t.Context(), []byte("k"), []byte("ours"))
			return err
		},
		"put upon a condition": func(ns *peer.Namespace, held dbadapter.Version) error {
			_, err := ns.PutIf(t.Context(), []byte("k"), []byte("ours"), held)
			return err
		},
		"delete": func(ns *peer.Namespace, _ dbadapter.Version) error {
			_, err := ns.Delete(t.Context(), []byte("k"))
			return err
		},
		"batch": func(ns *peer.Namespace, held dbadapter.Version) error {
			return ns.Batch(t.Context(), func(b *peer.Batch) error {
				b.PutIf([]byte("k"), []byte("ours"), held)
				b.Put([]byte("l"), []byte("ours"))
				b.Delete([]byte("m"))
				return nil
			})
		},
	}
	for what, write := range write {
		t.Run(what, func(t *testing.T) {
			ca, cb := newTestClock(), newTestClock()
			na, _, sa, sb := pair(t, peer.Config{Clock: ca.now}, peer.Config{Clock: cb.now}, peer.Policy{})
			cb.turn(peer.DefaultMaxSkew / 2)
			theirs := put(t, sb, "k", "theirs")
			sync1(t, sb, na.ID())
			must(t, write(sa, theirs))
			ours := 0
			for r, err := range sa.Scan(t.Context(), nil, peer.WithTombstones()) {
				must(t, err)
				if r.Version == theirs {
					continue
				}
				if ours++; r.Version.Clock <= theirs.Clock {
					t.Errorf("%q was written as %s, no later than %s, which was held", r.Key, r.Version, theirs)
				}
			}
			if ours == 0 {
				t.Error("nothing was written")
			}
			sync1(t, sb, na.ID())
			equal(t, sa, sb)
		})
	}
}
