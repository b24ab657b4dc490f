package netio

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/syncd-io/syncd/dbadapter"
)

// ErrAddr: a text is no multiaddr of the kind that is asked for.
var ErrAddr = errors.New("malformed address")

// parseAnnounced reads the addresses that a node tells to others. The node cannot see
// whether they lead to it. So an address is refused only if no node could ever dial it,
// or if it names another node.
func parseAnnounced(self peer.ID, addrs []string) ([]ma.Multiaddr, error) {
	if len(addrs) > MaxAddrs {
		return nil, fmt.Errorf("%w: %d addresses to announce; peers keep at most %d of a node", dbadapter.ErrLimit, len(addrs), MaxAddrs)
	}
	var out []ma.Multiaddr
	for _, s := range addrs {
		a, err := parseAnnouncedAddr(self, s)
		if err != nil {
			return nil, fmt.Errorf("announce %q: %w: want a multiaddr under which other nodes can dial this one, such as /ip4/192.0.2.1/tcp/4001 or /dns4/host.example/udp/4001/quic-v1: %w", s, ErrAddr, err)
		}
		if !ma.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out, nil
}

func parseAnnouncedAddr(self peer.ID, s string) (ma.Multiaddr, error) {
	full, err := ma.NewMultiaddr(s)
	if err != nil {
		return nil, err
	}
	a, id := peer.SplitAddr(full)
	switch {
	case id != "" && id != self:
		return nil, fmt.Errorf("it names node %s, and this node is %s", id, self)
	case !isTCP(a) && !isQUIC(a):
		return nil, errors.New("it is not a host followed by a TCP port, or by a UDP port and quic-v1")
	case a[1].Value() == "0":
		return nil, errors.New("it has port 0")
	case manet.IsIPUnspecified(a):
		return nil, errors.New("its host stands for all interfaces")
	case len(a.Bytes()) > maxAddrSize:
		return nil, fmt.Errorf("it has more than %d bytes", maxAddrSize)
	}
	switch a[0].Protocol().Code {
	case ma.P_IP4, ma.P_IP6, ma.P_DNS, ma.P_DNS4, ma.P_DNS6:
		return a, nil
	}
	return nil, fmt.Errorf("/%s is not a host that a node can dial", a[0].Protocol().Name)
}

// AddrBytes are addresses in binary.
func AddrBytes(addrs []ma.Multiaddr) [][]byte {
	out := make([][]byte, 0, len(addrs))
	for _, a := range addrs {
		out = append(out, a.Bytes())
	}
	return out
}

// ParseAddrs reads at most MaxAddrs addresses and skips bytes that are not a multiaddr,
// or not printable. An address is a hint, and a wrong one costs only a dial.
func ParseAddrs(raw [][]byte) []ma.Multiaddr {
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

// ParsePeer reads a multiaddr that ends in /p2p/ and the peer's id.
func ParsePeer(s string) (peer.AddrInfo, error) {
	info, err := peer.AddrInfoFromString(s)
	if err == nil && slices.ContainsFunc(info.Addrs, func(a ma.Multiaddr) bool { return !printable(a) }) {
		err = errors.New("it cannot be printed")
	}
	if err != nil || len(info.Addrs) == 0 {
		return peer.AddrInfo{}, fmt.Errorf("%w %q: want a multiaddr such as /ip4/192.0.2.1/tcp/4747/p2p/12D3Koo… (%v)", ErrAddr, s, err)
	}
	return *info, nil
}

// isTCP reports whether an address is a host and a TCP port.
func isTCP(a ma.Multiaddr) bool { return len(a) == 2 && a[1].Protocol().Code == ma.P_TCP }

// isQUIC reports whether an address is a host, a UDP port and QUIC version 1.
func isQUIC(a ma.Multiaddr) bool {
	return len(a) == 3 && a[1].Protocol().Code == ma.P_UDP && a[2].Protocol().Code == ma.P_QUIC_V1
}

// isRelayed reports whether an address leads through a relay.
func isRelayed(a ma.Multiaddr) bool {
	return slices.ContainsFunc(a, func(c ma.Component) bool { return c.Protocol().Code == ma.P_CIRCUIT })
}

// isNear reports whether an address that a neighbour tells is one to dial: a port
// at an address of its own.
func isNear(a ma.Multiaddr) bool {
	return (isTCP(a) || isQUIC(a)) && manet.IsThinWaist(a) && !manet.IsIPLoopback(a) && !manet.IsIPUnspecified(a)
}

// sameAddrs reports whether two lists hold the same addresses in any order.
func sameAddrs(a, b []ma.Multiaddr) bool {
	sorted := func(addrs []ma.Multiaddr) [][]byte {
		out := AddrBytes(addrs)
		slices.SortFunc(out, bytes.Compare)
		return slices.CompactFunc(out, bytes.Equal)
	}
	return slices.EqualFunc(sorted(a), sorted(b), bytes.Equal)
}
