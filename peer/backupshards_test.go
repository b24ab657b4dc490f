package peer_test

import (
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/peer"
)

// A backup of shards, with a locator or without, is restored, whole and with what has changed since.
func TestBackupOfShards(t *testing.T) {
	t.Parallel()
	for _, p := range []peer.Placement{
		{Kind: "hash", Shards: 8, Replicas: 1},
		{Kind: "hash", Shards: 8, Replicas: 1, Locator: true},
	} {
		t.Run(fmt.Sprintf("%s, a locator %t", p.Kind, p.Locator), func(t *testing.T) {
			t.Parallel()
			n, to := open(t, peer.Config{Dir: t.TempDir(), ListenAddrs: []string{}}), t.TempDir()
			ns := create(t, n, peer.Policy{Placement: &p})
			eventually(t, "there is a layout", func() bool {
				_, err := ns.Put(t.Context(), []byte("0/0"), []byte("value"))
				return err == nil
			})
			const generations, each = 2, 20
			for g := range generations {
				for i := range each {
					put(t, ns, fmt.Sprint(g, "/", i), "value")
				}
				if b := backUp(t, n, to); len(b.Namespaces) != 1 || b.Namespaces[0].Records != int64((g+1)*each) {
					t.Errorf("generation %d holds %+v", g+1, b.Namespaces)
				}
			}
			shut(t, n)
			for g := range generations {
				r := open(t, peer.Config{Dir: restore(t, to, g+1), ListenAddrs: []string{}})
				restored := notes(t, r)
				if got := restored.Info().Records; got != int64((g+1)*each) {
					t.Errorf("of generation %d %d records are restored", g+1, got)
				}
				shut(t, r)
			}
		})
	}
}
