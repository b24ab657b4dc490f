package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/peer"
)

func (s *server) registerVerify() {
	answers(s, huma.Operation{
		OperationID: "verify", Method: http.MethodPost, Path: "/v1/ns/{ns}/verify",
		Summary: "Read the store's files and all records, and compute anew what the node keeps of them",
	}, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace) (api.Verification, error) {
		v, err := ns.Verify(ctx)
		return api.VerificationOf(v, ns.Lost()), err
	}))
	does(s, huma.Operation{
		OperationID: "accept-loss", Method: http.MethodDelete, Path: "/v1/ns/{ns}/lost",
		Summary: "End what is said of a loss by damage to the store",
	}, func(_ context.Context, in *nsInput) error {
		ns, err := s.namespace(in.NS)
		if err == nil {
			err = ns.AcceptLoss()
		}
		return err
	})
}
