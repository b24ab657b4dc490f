package peer

import "fmt"

// Bandwidth bounds how many bytes a second the syncs and the pushes of a node move. It
// bounds what this node sends and what it receives each by itself, as most links carry
// both at once. 0 means no bound; another value is at least MinBandwidth. Counted is what
// syncs write and read, on both sides' calls, and pushes, those that are passed on too.
// Not counted are what TCP, QUIC and encryption add (a few per cent), handshakes, joins,
// and what a relay service carries for others. A push that waits for too long is dropped,
// and a sync brings what it held. Of its own writes a node pushes no more than half of
// Send.
//
// A bound also narrows how many syncs run at once: one that this node began and one
// that its peers began for each MinBandwidth. So each keeps a rate at which no peer
// thinks that it has stalled.
type Bandwidth struct {
	// Send and Receive are for all peers together.
	Send, Receive int64
	// PeerSend and PeerReceive are for each peer.
	PeerSend, PeerReceive int64
}

func (b *Bandwidth) check() error {
	for what, limit := range map[string]int64{"Send": b.Send, "Receive": b.Receive, "PeerSend": b.PeerSend, "PeerReceive": b.PeerReceive} {
		if limit != 0 && limit < MinBandwidth {
			return fmt.Errorf("%w: Bandwidth.%s is %d bytes a second; it is at least %d, or 0 for no bound", ErrInvalid, what, limit, MinBandwidth)
		}
	}
	return nil
}

// narrow leaves each sync its share of the bounds.
func (b *Bandwidth) narrow(l Limits) Limits {
	l.Sessions = narrowed(l.Sessions, b.Send, b.Receive)
	l.SessionsPerPeer = narrowed(l.SessionsPerPeer, b.PeerSend, b.PeerReceive)
	return l
}

// ownPerPeer is how many syncs of its own a node has with one peer at once.
func (b *Bandwidth) ownPerPeer(l Limits) int {
	return narrowed(l.Sessions, b.PeerSend, b.PeerReceive)
}

func narrowed(n int, limits ...int64) int {
	for _, limit := range limits {
		if limit > 0 {
			n = max(1, int(min(int64(n), limit/MinBandwidth)))
		}
	}
	return n
}
