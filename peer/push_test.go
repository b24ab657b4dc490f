package peer_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	libp2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

// pushCluster is n members of a namespace that run no syncs of their own accord while
// the test lasts, but push.
func pushCluster(t *testing.T, n int) (nodes []*peer.Node, spaces []*peer.Namespace) {
	t.Helper()
	return peer.ClusterForTest(t, peer.Policy{}, slices.Repeat([]peer.Config{{SyncInterval: time.Hour}}, n)...)
}

// holds reports whether a node holds a value under a key.
func holds(t *testing.T, ns *peer.Namespace, key, value string) bool {
	r, err := ns.Get(t.Context(), []byte(key))
	return err == nil && string(r.Value) == value
}

// A stranger that is connected and speaks the protocol gets no stream, and can open none.
func TestStrangersGetNoPushes(t *testing.T) {
	nodes, spaces := pushCluster(t, 2)
	stranger, err := peer.NewHost(peer.Config{})
	must(t, err)
	defer func() { _ = stranger.Close() }()
	streams := make(chan string, 100)
	protocols := []protocol.ID{"/syncd/push/1", "/syncd/direct/1.0.0"}
	for _, id := range protocols {
		stranger.SetStreamHandler(id, func(s network.Stream) { streams <- s.ID() })
	}
	at, err := libp2ppeer.AddrInfoFromString(nodes[0].Addrs()[0])
	must(t, err)
	must(t, stranger.Connect(t.Context(), *at))
	for _, id := range protocols {
		s, err := stranger.NewStream(t.Context(), at.ID, id)
		if err == nil {
			_, err = s.Read(make([]byte, 1))
		}
		if err == nil {
			t.Errorf("a stranger was told something over %s", id)
		}
	}
	must(t, errOf(spaces[0].Put(t.Context(), []byte("k"), []byte("v"))))
	eventually(t, "the member holds what was pushed", func() bool { return holds(t, spaces[1], "k", "v") })
	if len(streams) > 0 {
		t.Error("a stranger got a stream")
	}
}

// A member that was removed gets nothing of what is written from then on.
func TestRemovedMemberGetsNoPushes(t *testing.T) {
	nodes, spaces := pushCluster(t, 3)
	write := func(key string) {
		must(t, errOf(spaces[0].Put(t.Context(), []byte(key), []byte("v"))))
	}
	write("before")
	for i := 1; i < 3; i++ {
		eventually(t, "all hold what was pushed", func() bool { return holds(t, spaces[i], "before", "v") })
	}
	must(t, spaces[0].Remove(t.Context(), nodes[2].ID()))
	sync1(t, spaces[1], nodes[0].ID()) // it hears of the removal
	for round := range 5 {
		key := fmt.Sprint("after ", round)
		write(key)
		eventually(t, "the member holds what was pushed", func() bool { return holds(t, spaces[1], key, "v") })
		if holds(t, spaces[2], key, "v") {
			t.Fatalf("the former member holds %q", key)
		}
	}
}

// A member whose role is over by its time gets nothing of what is written from then on,
// though no admin has written that down.
func TestMemberForATimeGetsNoPushes(t *testing.T) {
	t.Parallel()
	for lasts := 3 * time.Second; !memberForATime(t, lasts); lasts *= 4 {
		if lasts > time.Minute {
			t.Fatal("nothing was pushed while the role lasted")
		}
	}
}

// memberForATime is false if the role was over before all had heard of it and a write was
// pushed.
func memberForATime(t *testing.T, lasts time.Duration) bool {
	nodes, spaces := pushCluster(t, 3)
	until := time.Now().Add(lasts)
	must(t, spaces[0].SetRoleUntil(t.Context(), nodes[2].ID(), peer.RoleRead, until))
	for _, pair := range [][2]int{{1, 0}, {2, 0}, {2, 1}} {
		if _, err := spaces[pair[0]].Sync(t.Context(), nodes[pair[1]].ID(), peer.SyncOptions{}); err != nil {
			if time.Now().Before(until) {
				t.Fatal(err)
			}
			return false
		}
	}
	must(t, nodes[0].Close(t.Context()))
	for !holds(t, spaces[2], "before", "v") {
		if time.Now().After(until) {
			return false
		}
		must(t, errOf(spaces[1].Put(t.Context(), []byte("before"), []byte("v"))))
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(time.Until(until) + 200*time.Millisecond)
	for round := range 5 {
		key := fmt.Sprint("after ", round)
		must(t, errOf(spaces[1].Put(t.Context(), []byte(key), []byte("v"))))
		time.Sleep(100 * time.Millisecond)
		if holds(t, spaces[2], key, "v") {
			t.Fatalf("the former member holds %q", key)
		}
	}
	return true
}

// What one of four nodes writes, however large it is, the others hold without a sync at
// an interval, each of them.
func TestPush(t *testing.T) {
	nodes, spaces := pushCluster(t, 4)
	large := string(bytes.Repeat([]byte("x"), 100_000))
	for round := range 3 {
		for i, ns := range spaces {
			for what, value := range map[string]string{"small": fmt.Sprint(round), "large": fmt.Sprint(round) + large} {
				must(t, errOf(ns.Put(t.Context(), fmt.Appendf(nil, "%s %d", what, i), []byte(value))))
			}
		}
		for i := range spaces {
			for j := range nodes {
				eventually(t, fmt.Sprintf("node %d holds what node %d wrote", j, i), func() bool {
					return holds(t, spaces[j], fmt.Sprint("small ", i), fmt.Sprint(round)) && holds(t, spaces[j], fmt.Sprint("large ", i), fmt.Sprint(round)+large)
				})
			}
		}
	}
	digest := func(i int) dbadapter.Digest { return spaces[i].Info().Digest }
	for i := range spaces {
		eventually(t, "all are equal", func() bool { return digest(i) == digest(0) })
	}
}

// Between two nodes of which one has paused the other for a while, pushes go both ways
// once it is resumed.
func TestPushesAfterAPause(t *testing.T) {
	nodes, spaces := pushCluster(t, 2)
	told := func(key string) {
		t.Helper()
		for i, ns := range spaces {
			from := fmt.Sprint(key, " of ", i)
			must(t, errOf(ns.Put(t.Context(), []byte(from), []byte("v"))))
			eventually(t, "the other holds what was pushed", func() bool { return holds(t, spaces[1-i], from, "v") })
		}
	}
	told("before")
	must(t, nodes[0].PausePeer(t.Context(), nodes[1].ID()))
	time.Sleep(3 * time.Second) // so long that the other tries no more
	must(t, nodes[0].ResumePeer(t.Context(), nodes[1].ID()))
	told("after")
}

// The bounds of the bandwidth hold for pushes that come and for those that are passed on.
func TestBandwidthOfPushes(t *testing.T) {
	registry := prometheus.NewRegistry()
	bounded := open(t, peer.Config{SyncInterval: time.Hour, Registerer: registry, Bandwidth: peer.Bandwidth{Receive: peer.MinBandwidth}})
	writer := open(t, peer.Config{SyncInterval: time.Hour})
	spaces := []*peer.Namespace{create(t, bounded, peer.Policy{})}
	spaces = append(spaces, join(t, spaces[0], writer, peer.RoleWrite))
	of := func(metric string) float64 { return metricOf(t, registry, metric, "received") }
	const size, waits = 32 << 10, "syncd_bandwidth_wait_seconds_total"
	for i := range 10 {
		synced, before := of("syncd_sync_bytes_total"), of(waits)
		key, value := fmt.Sprint("large ", i), strings.Repeat("x", size)
		must(t, errOf(spaces[1].Put(t.Context(), []byte(key), []byte(value))))
		eventually(t, "the other holds what was pushed", func() bool { return holds(t, spaces[0], key, value) })
		if of("syncd_sync_bytes_total") > synced {
			continue // the first sync after the opening has brought it
		}
		if of(waits) == before {
			t.Error("what is pushed waits for no bound")
		}
		return
	}
	t.Error("syncs bring all of it")
}
