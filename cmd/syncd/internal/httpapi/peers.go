package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	libp2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// Peer is an entry of the address book.
type Peer struct {
	ID         string   `json:"id"`
	Addrs      []string `json:"addrs"`
	Connected  bool     `json:"connected"`
	Namespaces []string `json:"namespaces" doc:"local names of those that the peer is a member of"`
}

// NewPeer is an address to remember.
type NewPeer struct {
	Addr string `json:"addr" doc:"a multiaddr that ends in /p2p/ and the peer's id"`
}

// Status describes the node.
type Status struct {
	ID         string      `json:"id"`
	Addrs      []string    `json:"addrs" doc:"under which it can be dialled"`
	Started    time.Time   `json:"started"`
	Syncs      int         `json:"syncs" doc:"running now"`
	Namespaces []Namespace `json:"namespaces"`
	Peers      []Peer      `json:"peers"`
}

type (
	peersOutput struct {
		Body struct {
			Peers []Peer `json:"peers"`
		}
	}
	newPeerInput struct{ Body NewPeer }
	peerIDOutput struct {
		Body struct {
			ID string `json:"id"`
		}
	}
	peerInput struct {
		ID string `path:"id" doc:"the peer's id"`
	}
	nodeOutput struct{ Body Status }
)

func (s *server) registerPeers() {
	huma.Register(s.api, huma.Operation{
		OperationID: "status", Method: http.MethodGet, Path: "/v1/status", Summary: "The node, its namespaces and its peers",
	}, func(context.Context, *struct{}) (*nodeOutput, error) {
		st := s.Node.Status()
		out := &nodeOutput{Status{
			ID: st.ID.String(), Addrs: st.Addrs, Started: st.Started, Syncs: st.Syncs,
			Namespaces: []Namespace{}, Peers: describePeers(st.Peers),
		}}
		for _, i := range st.Namespaces {
			out.Body.Namespaces = append(out.Body.Namespaces, describe(i))
		}
		return out, nil
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "peers", Method: http.MethodGet, Path: "/v1/peers", Summary: "The address book, and the members of all namespaces",
	}, func(context.Context, *struct{}) (*peersOutput, error) {
		out := &peersOutput{}
		out.Body.Peers = describePeers(s.Node.Peers())
		return out, nil
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "add-peer", Method: http.MethodPost, Path: "/v1/peers", BodyReadTimeout: -1,
		Summary: "Remember a peer's address; this gives it no rights",
	}, func(ctx context.Context, in *newPeerInput) (*peerIDOutput, error) {
		if err := checkAddr(in.Body.Addr); err != nil {
			return nil, err
		}
		id, err := s.Node.AddPeer(ctx, in.Body.Addr)
		if err != nil {
			return nil, fail(err)
		}
		out := &peerIDOutput{}
		out.Body.ID = id.String()
		return out, nil
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "remove-peer", Method: http.MethodDelete, Path: "/v1/peers/{id}", DefaultStatus: http.StatusNoContent,
		Summary: "Forget a peer's addresses; where it is a member, it stays one",
	}, func(ctx context.Context, in *peerInput) (*struct{}, error) {
		id, err := peer.ParseID(in.ID)
		if err != nil {
			return nil, fail(problem.Usage("%w", err))
		}
		return nil, fail(s.Node.RemovePeer(ctx, id))
	})
}

// checkAddr reports an address that cannot be one of a peer.
func checkAddr(addr string) error {
	if _, err := libp2ppeer.AddrInfoFromString(addr); err != nil {
		return fail(problem.Usage("address %q: want a multiaddr such as /ip4/192.0.2.1/tcp/4747/p2p/12D3Koo… (%w)", addr, err))
	}
	return nil
}

func describePeers(all []peer.PeerInfo) []Peer {
	out := make([]Peer, 0, len(all))
	for _, p := range all {
		out = append(out, Peer{p.ID.String(), list(p.Addrs), p.Connected, list(p.Namespaces)})
	}
	return out
}

// list makes nil an empty list, which is what JSON readers expect.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
