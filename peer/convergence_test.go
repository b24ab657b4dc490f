package peer_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile/wire"
)

var seed = flag.Uint64("seed", 0, "replay TestConvergence with this seed; 0 draws one")

// twin is what three nodes must come to hold: of each key, the greatest of all
// the records that were ever acknowledged.
type twin map[string]dbadapter.Record

func (w twin) wrote(r dbadapter.Record) {
	if held, ok := w[string(r.Key)]; !ok || r.Compare(&held) > 0 {
		w[string(r.Key)] = r
	}
}

// Three nodes write, delete, import and sync at random, with clocks that run
// apart and jump; after a last round of syncs all hold what the twin holds.
func TestConvergence(t *testing.T) {
	drawn := *seed
	if drawn == 0 {
		drawn = rand.Uint64()
	}
	t.Logf("replay with -args -seed %d", drawn)
	random := rand.New(rand.NewPCG(drawn, 0))
	var (
		clocks [3]*testClock
		nodes  [3]*peer.Node
		spaces [3]*peer.Namespace
	)
	for i := range nodes {
		clocks[i] = newTestClock()
		key, err := crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i)}, ed25519.SeedSize)))
		must(t, err)
		nodes[i] = open(t, peer.Config{Clock: clocks[i].now, Identity: key})
	}
	spaces[0] = create(t, nodes[0], peer.Policy{MaxSkew: time.Hour})
	for i := 1; i < 3; i++ {
		spaces[i] = join(t, spaces[0], nodes[i], peer.RoleWrite)
	}
	sync1(t, spaces[1], nodes[0].ID()) // it hears of the third node: it could not call it else
	must(t, errOf(nodes[1].Connect(t.Context(), nodes[2].Addrs()[0])))
	want := twin{}
	for step := range 400 {
		i := random.IntN(3)
		ns, key, value := spaces[i], fmt.Appendf(nil, "k%d", random.IntN(40)), fmt.Appendf(nil, "v%d", random.IntN(5))
		held, err := ns.Get(t.Context(), key)
		found := !errors.Is(err, peer.ErrNotFound)
		if err != nil && found && !errors.Is(err, peer.ErrDeleted) {
			t.Fatal(err)
		}
		// wrote notes what this node has written upon what it held.
		wrote := func(r dbadapter.Record) {
			if found {
				r.Replace(&held)
			}
			want.wrote(r)
		}
		switch random.IntN(8) {
		case 0, 1, 2:
			v, err := ns.Put(t.Context(), key, value)
			must(t, err)
			wrote(dbadapter.Record{Key: key, Value: value, Version: v})
		case 3:
			v, err := ns.Delete(t.Context(), key)
			if err == nil {
				wrote(dbadapter.Record{Key: key, Version: v, Deleted: true})
			} else if !errors.Is(err, peer.ErrNotFound) && !errors.Is(err, peer.ErrDeleted) {
				t.Fatal(err)
			}
		case 4: // dated, at few times, so that equal versions of two contents meet
			at := newTestClock().now().Add(-time.Duration(random.IntN(3)) * time.Hour)
			must(t, errOf(ns.Import(t.Context(), items(peer.Item{Key: key, Value: value, Time: at}))))
			want.wrote(dbadapter.Record{Key: key, Value: value, Version: dbadapter.Version{Clock: dbadapter.TimestampAt(at)}})
		case 5:
			jump := time.Duration(random.Int64N(int64(50*time.Minute))) - 25*time.Minute
			clocks[i].turn(newTestClock().now().Add(jump).Sub(clocks[i].now())) // within the skew of all others
		default:
			j := (i + 1 + random.IntN(2)) % 3
			o := peer.SyncOptions{Direction: []wire.Direction{wire.Both, wire.Pull, wire.Push}[random.IntN(3)]}
			if random.IntN(3) == 0 {
				o.Prefix = fmt.Appendf(nil, "k%d", random.IntN(4))
			}
			if r, err := ns.Sync(t.Context(), nodes[j].ID(), o); err != nil || r.Rejected > 0 {
				t.Fatalf("step %d: %+v, %v", step, r, err)
			}
		}
	}
	for _, two := range [][2]int{{0, 1}, {1, 2}, {2, 0}, {0, 1}} {
		sync1(t, spaces[two[0]], nodes[two[1]].ID())
	}
	for i, ns := range spaces {
		got := twin{}
		for r, err := range ns.Scan(t.Context(), nil, peer.WithTombstones()) {
			must(t, err)
			got.wrote(r)
		}
		if len(got) != len(want) {
			t.Errorf("node %d holds %d records, not %d", i, len(got), len(want))
		}
		for key, w := range want {
			if g := got[key]; g.Compare(&w) != 0 {
				t.Errorf("node %d holds of %s %s %q upon %v, not %s %q upon %v", i, key, g.Version, g.Value, g.Replaces, w.Version, w.Value, w.Replaces)
			}
		}
		if d := ns.Info().Digest; d != spaces[0].Info().Digest {
			t.Errorf("node %d has another digest", i)
		}
	}
}
