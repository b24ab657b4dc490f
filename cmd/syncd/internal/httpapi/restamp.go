package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/peer"
)

func (s *server) registerRestamp() {
	answers(s, huma.Operation{
		OperationID: "future", Method: http.MethodGet, Path: "/v1/ns/{ns}/future",
		Summary: "Records whose versions are too far ahead of the node's clock; the other members decline them",
	}, ofNamespace(s, future))
	answers(s, huma.Operation{
		OperationID: "restamp", Method: http.MethodPost, Path: "/v1/ns/{ns}/restamp",
		Summary: "Give what this node wrote while its clock was wrong a version of now",
	}, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace) (out api.Restamped, err error) {
		if out.Restamped, err = ns.Restamp(ctx); err == nil {
			out.Left, err = future(ctx, ns)
		}
		return out, err
	}))
}

func future(ctx context.Context, ns *peer.Namespace) (api.Future, error) {
	return api.FutureOf(time.Now(), ns.Future(ctx))
}
