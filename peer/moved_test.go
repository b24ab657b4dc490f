package peer

import (
	"slices"
	"testing"

	ma "github.com/multiformats/go-multiaddr"

	"github.com/syncd-io/syncd/internal/netio"
)

// texts are addresses, sorted.
func texts(addrs []ma.Multiaddr) (out []string) {
	for _, a := range addrs {
		out = append(out, a.String())
	}
	slices.Sort(out)
	return out
}

// Where a copy of the data folder has run and told the members its own addresses, the
// node tells them its own again.
func TestAddressesOfACopyAreReplaced(t *testing.T) {
	a, b := openForTest(t, Config{}), openForTest(t, Config{})
	sa := createForTest(t, a, Policy{})
	sb := joinForTest(t, sa, b, RoleWrite)
	of := func(ns *Namespace, id ID) []string {
		t.Helper()
		all, err := ns.core.Addresses()
		must(t, err)
		for _, one := range all {
			if ID(one.ID) == id {
				return texts(netio.ParseAddrs(one.Addrs))
			}
		}
		return nil
	}
	sync := func() {
		t.Helper()
		must(t, errOf(sb.Sync(t.Context(), a.ID(), SyncOptions{})))
	}
	ofCopy := []ma.Multiaddr{ma.StringCast("/ip4/192.0.2.1/tcp/1")}
	sb.announce(ofCopy)
	sync()
	if got := of(sa, b.ID()); !slices.Equal(got, texts(ofCopy)) {
		t.Fatalf("a knows %v", got)
	}
	sb.tend()
	sync()
	if got := of(sa, b.ID()); !slices.Equal(got, texts(b.host.Dialable())) {
		t.Errorf("a knows %v, b has %v", got, b.host.Dialable())
	}
}
