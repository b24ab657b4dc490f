package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

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
