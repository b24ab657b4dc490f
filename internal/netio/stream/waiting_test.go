package stream

import (
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
)

// What waits for a peer is bounded in number and bytes, apart from other peers. One may
// wait always, and what has left makes room.
func TestWaiting(t *testing.T) {
	w := Waiting{Most: 2, MostBytes: 10}
	enter := func(id string, bytes int, want bool) func() {
		t.Helper()
		leave, ok := w.Enter(peer.ID(id), bytes)
		if ok != want {
			t.Errorf("%d bytes for %s wait: %t", bytes, id, ok)
		}
		return leave
	}
	first := enter("a", 100, true)
	enter("a", 1, false) // too many bytes
	second := enter("b", 4, true)
	enter("b", 6, true)
	enter("b", 0, false) // too many
	first()
	first = enter("a", 9, true)
	second()
	enter("b", 4, true)
	first()
	if len(w.peers) != 1 {
		t.Errorf("%d peers are remembered", len(w.peers))
	}
}
