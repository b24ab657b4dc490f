package peer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/syncd-io/syncd/internal/durable"
)

// addressBook remembers where peers were found, so that a sync by peer id
// works after a restart. An entry gives its peer no rights.
type addressBook struct {
	file durable.File // without a path: in memory only

	mu    sync.Mutex
	peers map[ID]*bookPeer
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
	// told: the address is from the peer, or from a node that knows it. The book drops it
	// when the peer tells others. An address that a person gave stays.
	told bool
}

// bookFile is the address book on disk.
type bookFile struct {
	Peers []bookEntry `cbor:"2,keyasint"`
}

type bookEntry struct {
	ID      []byte   `cbor:"1,keyasint"`
	Given   [][]byte `cbor:"2,keyasint"`
	Told    [][]byte `cbor:"3,keyasint"`
	Removed bool     `cbor:"4,keyasint"`
	Paused  bool     `cbor:"5,keyasint"`
}

// load reads the file into an empty book.
func (b *addressBook) load() error {
	var file bookFile
	if err := loadNote(b.file, &file); err != nil {
		return err
	}
	for _, entry := range file.Peers {
		id, err := peer.IDFromBytes(entry.ID)
		if err != nil {
			return durable.Damaged(b.file.Path, "is damaged (a peer id: %v)", err)
		}
		p := &bookPeer{removed: entry.Removed, pause: entry.Paused}
		p.put(parseAddrs(entry.Given), false)
		p.put(parseAddrs(entry.Told), true)
		b.peers[id] = p
	}
	return nil
}

// put puts addresses before the others.
func (p *bookPeer) put(addrs []ma.Multiaddr, told bool) {
	old := p.addrs
	p.addrs = nil
	for _, a := range addrs {
		i := find(old, a)
		// An address that a person has given stays so when the peer tells it.
		p.add(bookAddr{a, told && (i < 0 || old[i].told)})
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
	p.addrs = slices.DeleteFunc(p.addrs, func(a bookAddr) bool { return a.told && !ma.Contains(now, a.Multiaddr) })
}

// entry is the peer as the file holds it.
func (p *bookPeer) entry(id ID) bookEntry {
	e := bookEntry{ID: []byte(id), Removed: p.removed, Paused: p.pause}
	for _, a := range p.addrs {
		if a.told {
			e.Told = append(e.Told, a.Bytes())
		} else {
			e.Given = append(e.Given, a.Bytes())
		}
	}
	return e
}

// of returns a peer's addresses, the newest first.
func (b *addressBook) of(id ID) []ma.Multiaddr {
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

// ids lists the peers that were not removed.
func (b *addressBook) ids() []ID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []ID
	for id, p := range b.peers {
		if !p.removed {
			out = append(out, id)
		}
	}
	return out
}

// removed reports whether a person has removed the peer, and not added it since.
func (b *addressBook) removed(id ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.peers[id]
	return p != nil && p.removed
}

// paused reports whether a person has paused the syncs with the peer.
func (b *addressBook) paused(id ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.peers[id]
	return p != nil && p.pause
}

// pause pauses the syncs with a peer, or resumes them.
func (b *addressBook) pause(id ID, paused bool) error {
	return b.change(id, func(p *bookPeer) { p.pause = paused })
}

// give remembers addresses that a person has given, and ends the removal of a
// peer.
func (b *addressBook) give(id ID, addrs []ma.Multiaddr) error {
	return b.change(id, func(p *bookPeer) {
		p.removed = false
		p.put(addrs, false)
	})
}

// hear remembers addresses that another node has told of a peer.
func (b *addressBook) hear(id ID, addrs []ma.Multiaddr) error {
	return b.change(id, func(p *bookPeer) {
		if !p.removed {
			p.put(addrs, true)
		}
	})
}

// learn remembers the addresses that a peer announces now, in place of
// those that it announced before.
func (b *addressBook) learn(id ID, addrs []ma.Multiaddr) error {
	return b.change(id, func(p *bookPeer) {
		if !p.removed {
			p.forget(addrs)
			p.put(addrs, true)
		}
	})
}

// remove forgets a peer, and takes no more addresses of it until one is given. Where it
// is paused it stays so: it may still be a member.
func (b *addressBook) remove(id ID) error {
	return b.change(id, func(p *bookPeer) { *p = bookPeer{removed: true, pause: p.pause} })
}

// change changes what the book knows of a peer, and saves the book unless only
// an order changed.
func (b *addressBook) change(id ID, edit func(*bookPeer)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, known := b.peers[id]
	if !known {
		if len(b.peers) >= MaxPeers {
			return fmt.Errorf("%w: the address book holds %d peers: remove some", ErrLimit, MaxPeers)
		}
		p = &bookPeer{}
	}
	before := p.state()
	edit(p)
	b.peers[id] = p
	if known && maps.Equal(before, p.state()) {
		return nil
	}
	return b.save()
}

// state is all of a peer but the order of its addresses.
func (p *bookPeer) state() map[string]bool {
	out := map[string]bool{"removed": p.removed, "paused": p.pause}
	for _, a := range p.addrs {
		out[string(a.Bytes())] = a.told
	}
	return out
}

// save writes the book; the caller holds mu.
func (b *addressBook) save() error {
	if b.file.Path == "" {
		return nil
	}
	file := bookFile{}
	for _, id := range slices.Sorted(maps.Keys(b.peers)) {
		file.Peers = append(file.Peers, b.peers[id].entry(id))
	}
	return saveNote(b.file, file)
}

func addrBytes(addrs []ma.Multiaddr) [][]byte {
	out := make([][]byte, 0, len(addrs))
	for _, a := range addrs {
		out = append(out, a.Bytes())
	}
	return out
}

// parseAddrs reads at most MaxAddrs addresses and skips bytes that are not a multiaddr,
// or not printable. An address is a hint, and a wrong one costs only a dial.
func parseAddrs(raw [][]byte) []ma.Multiaddr {
	var out []ma.Multiaddr
	for _, b := range raw {
		a, err := ma.NewMultiaddrBytes(b)
		if err != nil || len(b) > maxAddrSize || len(out) == MaxAddrs || !printable(a) {
			continue
		}
		if a, _ = peer.SplitAddr(a); a != nil && !ma.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// printable reports whether texts may name an address: a zone can hold any bytes.
func printable(a ma.Multiaddr) bool {
	return strings.IndexFunc(a.String(), func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) < 0
}

// parsePeerAddr reads a multiaddr that ends in /p2p/ and the peer's id.
func parsePeerAddr(s string) (peer.AddrInfo, error) {
	info, err := peer.AddrInfoFromString(s)
	if err == nil && slices.ContainsFunc(info.Addrs, func(a ma.Multiaddr) bool { return !printable(a) }) {
		err = errors.New("it cannot be printed")
	}
	if err != nil || len(info.Addrs) == 0 {
		return peer.AddrInfo{}, fmt.Errorf("%w: address %q: want a multiaddr such as /ip4/192.0.2.1/tcp/4747/p2p/12D3Koo… (%v)", ErrInvalid, s, err)
	}
	if err := checkID(info.ID); err != nil {
		return peer.AddrInfo{}, err
	}
	return *info, nil
}
