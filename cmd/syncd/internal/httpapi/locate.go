package httpapi

import (
	"context"
	"errors"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/peer"
)

type (
	locateInput struct {
		RecordParams
		All bool `query:"all" doc:"ask all members that may hold the key"`
	}
	locateOutput struct{ Body api.Located }
)

func (s *server) locate(ctx context.Context, in *locateInput) (*locateOutput, error) {
	ns, key, err := s.record(&in.RecordParams)
	if err != nil {
		return nil, err
	}
	located, err := ns.Locate(ctx, key, level(in.All)...)
	if err != nil && !errors.Is(err, peer.ErrTooFew) { // the answer says which hosts were asked
		return nil, fail(err)
	}
	return &locateOutput{api.LocatedOf(key, &located)}, nil
}

func level(all bool) []peer.GetOption {
	if all {
		return []peer.GetOption{peer.Read(peer.All)}
	}
	return nil
}
