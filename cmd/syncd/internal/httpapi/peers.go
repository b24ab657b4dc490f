package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

type peerInput struct {
	ID string `path:"id" doc:"the peer's id"`
}

func (s *server) registerPeers() {
	answers(s, huma.Operation{
		OperationID: "status", Method: http.MethodGet, Path: "/v1/status", Summary: "The node, its namespaces and its peers",
	}, func(context.Context, *struct{}) (api.Status, error) { return api.StatusOf(s.Node), nil })
	answers(s, huma.Operation{
		OperationID: "peers", Method: http.MethodGet, Path: "/v1/peers", Summary: "The address book, and the members of all namespaces",
	}, func(context.Context, *struct{}) (api.Peers, error) { return api.Peers{Peers: s.Node.Peers()}, nil })
	answers(s, huma.Operation{
		OperationID: "add-peer", Method: http.MethodPost, Path: "/v1/peers", BodyReadTimeout: -1,
		Summary: "Remember a peer's address; this gives it no rights",
	}, func(ctx context.Context, in *input[api.NewPeer]) (api.PeerID, error) {
		id, err := s.Node.AddPeer(ctx, in.Body.Addr)
		return api.PeerID{ID: id.String()}, err
	})
	does(s, huma.Operation{
		OperationID: "remove-peer", Method: http.MethodDelete, Path: "/v1/peers/{id}",
		Summary: "Forget a peer until it is added again; where it is a member, it stays one",
	}, func(ctx context.Context, in *peerInput) error {
		id, err := api.ParseID(in.ID)
		if err != nil {
			return problem.Usage("%w", err)
		}
		return s.Node.RemovePeer(ctx, id)
	})
}

// registerPauses serves what takes a namespace, or a peer, out of syncs and back.
func (s *server) registerPauses() {
	for _, op := range []struct {
		name, of, by string
		namespace    func(*peer.Namespace, context.Context) error
		peer         func(*peer.Node, context.Context, peer.ID) error
	}{
		{"pause", "Take a namespace out of all syncs on this node, also after a restart; reads and writes go on", "End the syncs with a peer in all namespaces, also after a restart", (*peer.Namespace).Pause, (*peer.Node).PausePeer},
		{"resume", "Let a namespace take part in syncs again", "Let this node sync with a peer again", (*peer.Namespace).Resume, (*peer.Node).ResumePeer},
	} {
		does(s, huma.Operation{
			OperationID: op.name, Method: http.MethodPost, Path: "/v1/ns/{ns}/" + op.name, Summary: op.of,
		}, func(ctx context.Context, in *nsInput) error {
			ns, err := s.namespace(in.NS)
			if err != nil {
				return err
			}
			return op.namespace(ns, ctx)
		})
		does(s, huma.Operation{
			OperationID: op.name + "-peer", Method: http.MethodPost, Path: "/v1/peers/{id}/" + op.name, Summary: op.by,
		}, func(ctx context.Context, in *peerInput) error {
			id, err := api.ParseID(in.ID)
			if err != nil {
				return problem.Usage("%w", err)
			}
			return op.peer(s.Node, ctx, id)
		})
	}
}
