package peer

import (
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// A member that falls silent within a sync does not delay the others.
func TestSilentMemberHoldsUpNobody(t *testing.T) {
	t.Parallel()
	a := openForTest(t, Config{SyncInterval: 5 * time.Millisecond, Limits: Limits{IdleTimeout: time.Hour}})
	silent, other := openForTest(t, Config{}), openForTest(t, Config{})
	inside, release := make(chan struct{}, 1), make(chan struct{})
	defer close(release)
	silent.host.SetStreamHandler(SyncProtocol, func(s network.Stream) {
		inside <- struct{}{}
		<-release
		s.Reset()
	})
	sa := createForTest(t, a, Policy{})
	joinForTest(t, sa, silent, RoleWrite)
	<-inside
	so := joinForTest(t, sa, other, RoleWrite)
	must(t, errOf(sa.Put(t.Context(), []byte("k"), nil)))
	eventually(t, "the other member has the record", func() bool { return so.Info().Digest == sa.Info().Digest })
}

// A namespace that a peer has dropped does not keep their other namespaces from
// being synced.
func TestDroppedNamespaceStarvesNone(t *testing.T) {
	a, b := openForTest(t, Config{SyncInterval: 5 * time.Millisecond}), openForTest(t, Config{})
	var here, there [2]*Namespace
	for i, name := range []string{"first", "second"} {
		var err error
		there[i], err = b.CreateNamespace(t.Context(), name, Policy{})
		must(t, err)
		here[i] = joinForTest(t, there[i], a, RoleWrite)
	}
	must(t, b.ForceDrop(t.Context(), "first"))
	failed := func() (n int) {
		for _, s := range a.RecentSyncs() {
			if s.Report.Namespace == "first" && s.Error != "" {
				n++
			}
		}
		return n
	}
	eventually(t, "the first namespace fails, again and again", func() bool { return failed() > 2 })
	must(t, errOf(here[1].Put(t.Context(), []byte("k"), nil)))
	eventually(t, "the second namespace is synced", func() bool { return here[1].Info().Digest == there[1].Info().Digest })
}
