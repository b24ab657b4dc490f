package netio

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/syncd-io/syncd/dbadapter"
)

// Book remembers where peers were found, so that a sync by peer id
// works after a restart. An entry gives its peer no rights.
type Book struct {
	save func(BookNote) error // nil: in memory only

	mu    sync.Mutex
	peers map[peer.ID]*bookPeer
}

// NewBook makes an empty book. It is saved after each change, unless save is nil.
func NewBook(save func(BookNote) error) *Book {
	return &Book{save: save, peers: map[peer.ID]*bookPeer{}}
}

// bookPeer is what the book knows of one peer.
type bookPeer struct {
	addrs []ma.Multiaddr // without /p2p/, the newest first, at most MaxAddrs
	// given are those that a person gave: they stay. The others are from the peer, or from a node that knows it.
	// The book drops them when the peer announces others.
	given []ma.Multiaddr
	// removed: a person has removed the peer, and the book takes no address of it
	// until a person gives one.
	removed bool
	// pause: a person has paused the syncs with the peer.
	pause bool
}

// BookNote is the address book on the disk, in CBOR.
type BookNote struct {
	Peers []BookEntry `cbor:"2,keyasint"`
}

// BookEntry is what a BookNote has of one peer.
type BookEntry struct {
	ID        []byte   `cbor:"1,keyasint"`
	Given     [][]byte `cbor:"2,keyasint"`
	Announced [][]byte `cbor:"3,keyasint"`
	Removed   bool     `cbor:"4,keyasint"`
	Paused    bool     `cbor:"5,keyasint"`
}

// Load fills an empty book.
func (b *Book) Load(note BookNote) error {
	for _, entry := range note.Peers {
		id, err := peer.IDFromBytes(entry.ID)
		if err != nil {
			return fmt.Errorf("a peer id: %w", err)
		}
		p := &bookPeer{removed: entry.Removed, pause: entry.Paused}
		given := ParseAddrs(entry.Given)
		p.hold(given, slices.Concat(given, ParseAddrs(entry.Announced)))
		b.peers[id] = p
	}
	return nil
}

// hold holds the first MaxAddrs of all addresses, some of which a person gave.
func (p *bookPeer) hold(given, all []ma.Multiaddr) {
	p.addrs, p.given = nil, nil
	for _, a := range all {
		if len(p.addrs) == MaxAddrs || ma.Contains(p.addrs, a) {
			continue
		}
		if p.addrs = append(p.addrs, a); ma.Contains(given, a) {
			p.given = append(p.given, a)
		}
	}
}

// same reports whether the other differs in the order of addresses at most.
func (p *bookPeer) same(other *bookPeer) bool {
	return p.removed == other.removed && p.pause == other.pause && sameAddrs(p.given, other.given) && sameAddrs(p.addrs, other.addrs)
}

// entry is the peer as the file holds it.
func (p *bookPeer) entry(id peer.ID) BookEntry {
	announced := slices.DeleteFunc(slices.Clone(p.addrs), func(a ma.Multiaddr) bool { return ma.Contains(p.given, a) })
	return BookEntry{ID: []byte(id), Given: AddrBytes(p.given), Announced: AddrBytes(announced), Removed: p.removed, Paused: p.pause}
}

// Addrs returns a peer's addresses, the newest first.
func (b *Book) Addrs(id peer.ID) []ma.Multiaddr {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.peers[id]; p != nil {
		return slices.Clone(p.addrs)
	}
	return nil
}

// IDs lists the peers that were not removed.
func (b *Book) IDs() []peer.ID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []peer.ID
	for id, p := range b.peers {
		if !p.removed {
			out = append(out, id)
		}
	}
	return out
}

// Removed reports whether a person has removed the peer, and not added it since.
func (b *Book) Removed(id peer.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.peers[id]
	return p != nil && p.removed
}

// Paused reports whether a person has paused the syncs with the peer.
func (b *Book) Paused(id peer.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.peers[id]
	return p != nil && p.pause
}

// Pause pauses the syncs with a peer, or resumes them.
func (b *Book) Pause(id peer.ID, paused bool) error {
	return b.change(id, func(p *bookPeer) { p.pause = paused })
}

// Give remembers addresses that a person has given, and ends the removal of a
// peer.
func (b *Book) Give(id peer.ID, addrs []ma.Multiaddr) error {
	return b.change(id, func(p *bookPeer) {
		p.removed = false
		p.hold(slices.Concat(addrs, p.given), slices.Concat(addrs, p.addrs))
	})
}

// Hear remembers addresses of a peer that another node has announced.
func (b *Book) Hear(id peer.ID, addrs []ma.Multiaddr) error {
	return b.change(id, func(p *bookPeer) {
		if !p.removed {
			p.hold(p.given, slices.Concat(addrs, p.addrs))
		}
	})
}

// Learn remembers the addresses that a peer announces now, in place of
// those that it announced before.
func (b *Book) Learn(id peer.ID, addrs []ma.Multiaddr) error {
	return b.change(id, func(p *bookPeer) {
		if !p.removed {
			p.hold(p.given, slices.Concat(addrs, p.given))
		}
	})
}

// Remove forgets a peer, and takes no more addresses of it until one is given. Where it
// is paused it stays so: it may still be a member.
func (b *Book) Remove(id peer.ID) error {
	return b.change(id, func(p *bookPeer) { *p = bookPeer{removed: true, pause: p.pause} })
}

// change changes what the book knows of a peer, and saves the book unless only
// an order changed.
func (b *Book) change(id peer.ID, edit func(*bookPeer)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, known := b.peers[id]
	if !known {
		if len(b.peers) >= MaxPeers {
			return fmt.Errorf("%w: the address book holds %d peers: remove some", dbadapter.ErrLimit, MaxPeers)
		}
		p = &bookPeer{}
	}
	before := *p
	edit(p)
	b.peers[id] = p
	if known && p.same(&before) {
		return nil
	}
	return b.write()
}

// Save saves the book as it is.
func (b *Book) Save() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.write()
}

// write saves the book; the caller holds mu.
func (b *Book) write() error {
	if b.save == nil {
		return nil
	}
	note := BookNote{}
	for _, id := range slices.Sorted(maps.Keys(b.peers)) {
		note.Peers = append(note.Peers, b.peers[id].entry(id))
	}
	return b.save(note)
}
