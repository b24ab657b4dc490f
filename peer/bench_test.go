package peer

import (
	"fmt"
	"testing"
)

// BenchmarkTransports compares a node that listens over TCP only, over QUIC only,
// and over both.
func BenchmarkTransports(b *testing.B) {
	for name, listen := range map[string][]string{
		"tcp": {"/ip4/127.0.0.1/tcp/0"}, "quic": {"/ip4/127.0.0.1/udp/0/quic-v1"}, "both": nil,
	} {
		b.Run("open/"+name, func(b *testing.B) {
			for b.Loop() {
				n := benchOpen(b, listen)
				b.StopTimer()
				benchClose(b, n)
				b.StartTimer()
			}
		})
		b.Run("connect/"+name, func(b *testing.B) {
			n := benchOpen(b, listen)
			defer benchClose(b, n)
			from := benchOpen(b, []string{})
			defer benchClose(b, from)
			for b.Loop() {
				must(b, from.host.Dial(b.Context(), n.self.id, n.host.Dialable()))
				b.StopTimer()
				must(b, from.host.Network().ClosePeer(n.self.id))
				b.StartTimer()
			}
		})
		b.Run("sync64MiB/"+name, func(b *testing.B) {
			b.SetBytes(64 << 20)
			for b.Loop() {
				b.StopTimer()
				n, ns := benchPair(b, listen)
				b.StartTimer()
				r, err := ns.Sync(b.Context(), n.self.id, SyncOptions{})
				if err != nil || !r.Verified || r.Applied != 64 {
					b.Fatalf("%+v, %v", r, err)
				}
				b.StopTimer()
				benchClose(b, n)
				benchClose(b, ns.node)
				b.StartTimer()
			}
		})
	}
}

func benchOpen(b *testing.B, listen []string) *Node {
	b.Helper()
	n, err := Open(b.Context(), Config{ListenAddrs: listen})
	must(b, err)
	return n
}

func benchClose(b *testing.B, n *Node) {
	b.Helper()
	must(b, n.Close(b.Context()))
}

// benchPair is a node with 64 records of 1 MiB, and a member without.
func benchPair(b *testing.B, listen []string) (*Node, *Namespace) {
	b.Helper()
	n, member := benchOpen(b, listen), benchOpen(b, []string{})
	at, err := n.CreateNamespace(b.Context(), "bench", Policy{})
	must(b, err)
	ticket, err := at.Invite(b.Context(), InviteOptions{})
	must(b, err)
	ns, err := member.Join(b.Context(), ticket)
	must(b, err)
	for i := range 64 {
		value := make([]byte, 1<<20)
		value[0] = byte(i)
		must(b, errOf(at.Put(b.Context(), fmt.Append(nil, i), value)))
	}
	return n, ns
}
