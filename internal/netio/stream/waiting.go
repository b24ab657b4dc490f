package stream

import (
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Waiting bounds what waits for a place at one peer, in number and bytes. A single one may
// wait whatever its size.
type Waiting struct {
	Most, MostBytes int

	mu    sync.Mutex // guards what follows
	peers map[peer.ID]waiting
}

type waiting struct{ count, bytes int }

// Enter reports whether so many bytes may wait. If so, they do until leave.
func (w *Waiting) Enter(id peer.ID, bytes int) (leave func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.peers[id]
	of.count, of.bytes = of.count+1, of.bytes+bytes
	if of.count > 1 && (of.count > w.Most || of.bytes > w.MostBytes) {
		return nil, false
	}
	if w.peers == nil {
		w.peers = map[peer.ID]waiting{}
	}
	w.peers[id] = of
	return func() { w.leave(id, bytes) }, true
}

func (w *Waiting) leave(id peer.ID, bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.peers[id]
	if of.count, of.bytes = of.count-1, of.bytes-bytes; of.count == 0 {
		delete(w.peers, id)
		return
	}
	w.peers[id] = of
}
