package peer

import (
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// parseAnnounced reads the addresses that a node tells to others. The node cannot see
// whether they lead to it. So an address is refused only if no node could ever dial it,
// or if it names another node.
func parseAnnounced(self ID, addrs []string) ([]ma.Multiaddr, error) {
	if len(addrs) > MaxAddrs {
		return nil, fmt.Errorf("%w: %d addresses to announce; peers keep at most %d of a node", ErrLimit, len(addrs), MaxAddrs)
	}
	var out []ma.Multiaddr
	for _, s := range addrs {
		a, err := parseAnnouncedAddr(self, s)
		if err != nil {
			return nil, fmt.Errorf("announce %q: %w: want a multiaddr under which other nodes can dial this one, such as /ip4/192.0.2.1/tcp/4001 or /dns4/host.example/udp/4001/quic-v1: %w", s, ErrInvalid, err)
		}
		if !ma.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out, nil
}

func parseAnnouncedAddr(self ID, s string) (ma.Multiaddr, error) {
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
