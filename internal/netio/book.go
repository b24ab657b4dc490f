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
	addrs []bookAddr // the newest first, at most MaxAddrs
	// removed: a person has removed the peer, and the book takes no address of it
	// until a person gives one.
	removed bool
	// pause: a person has paused the syncs with the peer.
	pause bool
}

// bookAddr is an address without /p2p/.
type bookAddr struct {
	ma.Multiaddr
	// announced: the address is from the peer, or from a node that knows it. The book drops it
	// when the peer announces others. An address that a person gave stays.
	announced bool
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
		p.put(ParseAddrs(entry.Given), false)
		p.put(ParseAddrs(entry.Announced), true)
		b.peers[id] = p
	}
	return nil
}

// put puts addresses before the others.
func (p *bookPeer) put(addrs []ma.Multiaddr, announced bool) {
	old := p.addrs
	p.addrs = nil
	for _, a := range addrs {
		i := find(old, a)
		// An address that a person has given stays so when the peer announces it.
		p.add(bookAddr{a, announced && (i < 0 || old[i].announced)})
	}
	for _, a := range old {
		p.add(a)
	}
}

// add appends an address that is new and has a place.
func (p *bookPeer) add(a bookAddr) {
	if len(p.addrs) < MaxAddrs && find(p.addrs, a.Multiaddr) < 0 {
		p.addrs = append(p.addrs, a)
	}
}

func find(addrs []bookAddr, a ma.Multiaddr) int {
	return slices.IndexFunc(addrs, func(b bookAddr) bool { return b.Equal(a) })
}

// forget drops the addresses that nodes have announced and that are not among those
// that they announce now.
func (p *bookPeer) forget(now []ma.Multiaddr) {
	p.addrs = slices.DeleteFunc(p.addrs, func(a bookAddr) bool { return a.announced && !ma.Contains(now, a.Multiaddr) })
}

// entry is the peer as the file holds it.
func (p *bookPeer) entry(id peer.ID) BookEntry {
	e := BookEntry{ID: []byte(id), Removed: p.removed, Paused: p.pause}
	for _, a := range p.addrs {
		if a.announced {
			e.Announced = append(e.Announced, a.Bytes())
		} else {
			e.Given = append(e.Given, a.Bytes())
		}
	}
	return e
}

// Addrs returns a peer's addresses, the newest first.
func (b *Book) Addrs(id peer.ID) []ma.Multiaddr {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []ma.Multiaddr
	if p := b.peers[id]; p != nil {
		for _, a := range p.addrs {
			out = append(out, a.Multiaddr)
		}
	}
	return out
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
		p.put(addrs, false)
	})
}

// Hear remembers addresses of a peer that another node has announced.
func (b *Book) Hear(id peer.ID, addrs []ma.Multiaddr) error {
	return b.change(id, func(p *bookPeer) {
		if !p.removed {
			p.put(addrs, true)
		}
	})
}

// Learn remembers the addresses that a peer announces now, in place of
// those that it announced before.
func (b *Book) Learn(id peer.ID, addrs []ma.Multiaddr) error {
	return b.change(id, func(p *bookPeer) {
		if !p.removed {
			p.forget(addrs)
			p.put(addrs, true)
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
	before := p.state()
	edit(p)
	b.peers[id] = p
	if known && maps.Equal(before, p.state()) {
		return nil
	}
	return b.write()
}

// state is all of a peer but the order of its addresses.
func (p *bookPeer) state() map[string]bool {
	out := map[string]bool{"removed": p.removed, "paused": p.pause}
	for _, a := range p.addrs {
		out[string(a.Bytes())] = a.announced
	}
	return out
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
