package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

type (
	peersOutput  struct{ Body api.Peers }
	newPeerInput struct{ Body api.NewPeer }
	peerIDOutput struct{ Body api.PeerID }
	peerInput    struct {
		ID string `path:"id" doc:"the peer's id"`
	}
	nodeOutput struct{ Body api.Status }
)

func (s *server) registerPeers() {
	huma.Register(s.api, huma.Operation{
		OperationID: "status", Method: http.MethodGet, Path: "/v1/status", Summary: "The node, its namespaces and its peers",
	}, func(context.Context, *struct{}) (*nodeOutput, error) {
		return &nodeOutput{api.StatusOf(s.Node)}, nil
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "peers", Method: http.MethodGet, Path: "/v1/peers", Summary: "The address book, and the members of all namespaces",
	}, func(context.Context, *struct{}) (*peersOutput, error) {
		return &peersOutput{api.PeersOf(s.Node.Peers())}, nil
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "add-peer", Method: http.MethodPost, Path: "/v1/peers", BodyReadTimeout: -1,
		Summary: "Remember a peer's address; this gives it no rights",
	}, func(ctx context.Context, in *newPeerInput) (*peerIDOutput, error) {
		id, err := s.Node.AddPeer(ctx, in.Body.Addr)
		if err != nil {
			return nil, fail(err)
		}
		return &peerIDOutput{api.PeerID{ID: id.String()}}, nil
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "remove-peer", Method: http.MethodDelete, Path: "/v1/peers/{id}", DefaultStatus: http.StatusNoContent,
		Summary: "Forget a peer until it is added again; where it is a member, it stays one",
	}, func(ctx context.Context, in *peerInput) (*struct{}, error) {
		id, err := peer.ParseID(in.ID)
		if err != nil {
			return nil, fail(problem.Usage("%w", err))
		}
		return nil, fail(s.Node.RemovePeer(ctx, id))
	})
}
