package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/peer"
)

type lapseInput struct {
	NS    string `path:"ns" doc:"the namespace's local name"`
	ID    string `path:"id" doc:"the member's id"`
	Force bool   `query:"force" doc:"also where shards have no majority of their hosts left then"`
}

func (s *server) registerCollection() {
	answers(s, huma.Operation{
		OperationID: "collection", Method: http.MethodGet, Path: "/v1/ns/{ns}/collection",
		Summary: "How far the collection of deleted and expired records is, and which members hold it back",
	}, ofNamespace(s, func(_ context.Context, ns *peer.Namespace) (api.Collection, error) {
		return api.Collection{Collection: ns.Collection()}, nil
	}))
	answers(s, huma.Operation{
		OperationID: "collect", Method: http.MethodPost, Path: "/v1/ns/{ns}/collection",
		Summary: "Take out the deleted and expired records that all members are past",
	}, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace) (api.Collection, error) {
		swept, err := ns.Collect(ctx)
		return api.Collection{Collection: ns.Collection(), Swept: &swept}, err
	}))
	does(s, huma.Operation{
		OperationID: "lapse", Method: http.MethodPost, Path: "/v1/ns/{ns}/members/{id}/lapse",
		Summary: "Wait for a silent member no longer: deleted records can go before it has heard of that",
	}, func(ctx context.Context, in *lapseInput) error {
		return s.change(in.NS, in.ID, func(ns *peer.Namespace, id peer.ID) error {
			if in.Force {
				return ns.ForceLapse(ctx, id)
			}
			return ns.Lapse(ctx, id)
		})
	})
}
