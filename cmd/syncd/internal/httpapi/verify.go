package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/peer"
)

func (s *server) registerVerify() {
	huma.Register(s.api, huma.Operation{
		OperationID: "verify", Method: http.MethodPost, Path: "/v1/ns/{ns}/verify",
		Summary: "Read the store's files and all records, and compute anew what the node keeps of them",
	}, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace) (api.Verification, error) {
		v, err := ns.Verify(ctx)
		return api.VerificationOf(v, ns.Lost()), err
	}))
	huma.Register(s.api, huma.Operation{
		OperationID: "repair", Method: http.MethodPost, Path: "/v1/ns/{ns}/repair",
		Summary: "Verify; leave what is damaged in the store behind, and take back from members what is missing since",
	}, func(ctx context.Context, in *nsInput) (*output[api.Repair], error) {
		if _, err := s.Node.Namespace(in.NS); errors.Is(err, peer.ErrNotFound) {
			_, err = s.namespace(in.NS)
			return nil, err
		}
		r, err := s.Node.Repair(ctx, in.NS) // also of a namespace that is not served
		if err != nil {
			return nil, fail(err)
		}
		return &output[api.Repair]{api.RepairOf(&r)}, nil
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "accept-loss", Method: http.MethodDelete, Path: "/v1/ns/{ns}/lost", DefaultStatus: http.StatusNoContent,
		Summary: "End the list of what the node lacks since damage was repaired: no member has it",
	}, func(_ context.Context, in *nsInput) (*struct{}, error) {
		ns, err := s.namespace(in.NS)
		if err == nil {
			if err = ns.AcceptLoss(); err != nil {
				err = fail(err)
			}
		}
		return nil, err
	})
}
