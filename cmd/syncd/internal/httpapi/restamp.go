package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
)

type (
	futureOutput    struct{ Body api.Future }
	restampedOutput struct{ Body api.Restamped }
)

func (s *server) registerRestamp() {
	huma.Register(s.api, huma.Operation{
		OperationID: "future", Method: http.MethodGet, Path: "/v1/ns/{ns}/future",
		Summary: "Records whose versions are too far ahead of the node's clock; the other members decline them",
	}, func(ctx context.Context, in *nsInput) (*futureOutput, error) {
		ns, err := s.namespace(in.NS)
		if err != nil {
			return nil, err
		}
		f, err := api.FutureOf(time.Now(), ns.Future(ctx))
		return &futureOutput{f}, fail(err)
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "restamp", Method: http.MethodPost, Path: "/v1/ns/{ns}/restamp",
		Summary: "Give what this node wrote while its clock was wrong a version of now",
	}, func(ctx context.Context, in *nsInput) (*restampedOutput, error) {
		ns, err := s.namespace(in.NS)
		if err != nil {
			return nil, err
		}
		out := &restampedOutput{}
		if out.Body.Restamped, err = ns.Restamp(ctx); err != nil {
			return nil, fail(err)
		}
		out.Body.Left, err = api.FutureOf(time.Now(), ns.Future(ctx))
		return out, fail(err)
	})
}
