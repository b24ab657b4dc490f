package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/fxamacker/cbor/v2"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// addressBook remembers where peers were found, so that a sync by peer id
// works after a restart. To be in it gives no rights.
type addressBook struct {
	path string // empty: in memory only

	mu    sync.Mutex
	addrs map[ID][]ma.Multiaddr // newest first, at most MaxAddrs each, without /p2p/
}

// bookFile is the address book on disk.
type bookFile struct {
	Format int         `cbor:"1,keyasint"`
	Peers  []bookEntry `cbor:"2,keyasint"`
}

type bookEntry struct {
	ID    []byte   `cbor:"1,keyasint"`
	Addrs [][]byte `cbor:"2,keyasint"`
}

func openAddressBook(path string) (*addressBook, error) {
	b := &addressBook{path: path, addrs: map[ID][]ma.Multiaddr{}}
	if path == "" {
		return b, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the address book: %w", err)
	}
	var file bookFile
	if err := decodeState(path, data, &file); err != nil {
		return nil, err
	}
	if err := checkFormat(path, file.Format); err != nil {
		return nil, err
	}
	for _, entry := range file.Peers {
		id, err := peer.IDFromBytes(entry.ID)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: a peer id: %v", ErrCorrupt, path, err)
		}
		b.addrs[id] = parseAddrs(entry.Addrs)
	}
	return b, nil
}

// of returns a peer's addresses, the newest first.
func (b *addressBook) of(id ID) []ma.Multiaddr {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.addrs[id])
}

func (b *addressBook) ids() []ID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.addrs))
}

// add puts addresses before those known of a peer, and saves the book if that
// changed anything but their order.
func (b *addressBook) add(id ID, addrs []ma.Multiaddr) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, known := b.addrs[id]
	if !known && len(b.addrs) >= MaxPeers {
		return fmt.Errorf("%w: the address book holds %d peers: remove some", ErrLimit, MaxPeers)
	}
	merged := make([]ma.Multiaddr, 0, len(addrs)+len(old))
	for _, a := range slices.Concat(addrs, old) {
		if len(merged) < MaxAddrs && !ma.Contains(merged, a) {
			merged = append(merged, a)
		}
	}
	b.addrs[id] = merged
	isOld := func(a ma.Multiaddr) bool { return ma.Contains(old, a) }
	if known && len(merged) == len(old) && !slices.ContainsFunc(merged, func(a ma.Multiaddr) bool { return !isOld(a) }) {
		return nil
	}
	return b.save()
}

func (b *addressBook) remove(id ID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.addrs[id]; !known {
		return fmt.Errorf("%w: peer %s is not in the address book", ErrNotFound, id)
	}
	delete(b.addrs, id)
	return b.save()
}

// save writes the book; the caller holds mu.
func (b *addressBook) save() error {
	if b.path == "" {
		return nil
	}
	file := bookFile{Format: bookFormat}
	for _, id := range slices.Sorted(maps.Keys(b.addrs)) {
		file.Peers = append(file.Peers, bookEntry{[]byte(id), addrBytes(b.addrs[id])})
	}
	data, err := cbor.Marshal(file)
	if err != nil {
		return err
	}
	return writeFile(b.path, data)
}

func addrBytes(addrs []ma.Multiaddr) [][]byte {
	out := make([][]byte, 0, len(addrs))
	for _, a := range addrs {
		out = append(out, a.Bytes())
	}
	return out
}

// parseAddrs reads at most MaxAddrs addresses and leaves out what is none: an
// address is a hint, and a bad one costs only a dial.
func parseAddrs(raw [][]byte) []ma.Multiaddr {
	var out []ma.Multiaddr
	for _, b := range raw {
		a, err := ma.NewMultiaddrBytes(b)
		if err != nil || len(b) > maxAddrSize || len(out) == MaxAddrs {
			continue
		}
		if a, _ = peer.SplitAddr(a); a != nil && !ma.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// parsePeerAddr reads a multiaddr that says where and who.
func parsePeerAddr(s string) (peer.AddrInfo, error) {
	info, err := peer.AddrInfoFromString(s)
	if err != nil || len(info.Addrs) == 0 {
		return peer.AddrInfo{}, fmt.Errorf("address %q: want a multiaddr such as /ip4/192.0.2.1/tcp/4001/p2p/12D3Koo… (%v)", s, err)
	}
	if err := checkID(info.ID); err != nil {
		return peer.AddrInfo{}, err
	}
	return *info, nil
}
