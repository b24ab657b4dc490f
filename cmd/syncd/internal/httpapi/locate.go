package httpapi

import (
	"context"
	"net/http"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/peer"
)

type (
	locateInput struct {
		RecordParams
		ReadParams
		All bool `query:"all" doc:"the same as read=all"`
	}
	locateOutput struct {
		Status  int
		Answers string `header:"Syncd-Answers"`
		Detail  string `header:"Syncd-Detail"`
		Body    api.Located
	}
)

func (s *server) locate(ctx context.Context, in *locateInput) (*locateOutput, error) {
	ns, key, err := s.record(&in.RecordParams)
	if err != nil {
		return nil, err
	}
	options, err := in.options()
	if err != nil {
		return nil, err
	}
	if in.All {
		options = append(options, peer.Read(peer.All))
	}
	ctx, cancel, err := within(ctx, in.Timeout)
	if err != nil {
		return nil, err
	}
	defer cancel()
	located, err := ns.Locate(ctx, key, options...)
	out := &locateOutput{Status: http.StatusOK, Body: api.LocatedOf(key, &located)}
	if few, headers := tooFew(err); few { // the answer says which hosts were asked
		out.Status, out.Answers, out.Detail = http.StatusServiceUnavailable, headers.Get(api.AnswersHeader), detail(err)
	} else if err != nil {
		return nil, fail(err)
	}
	return out, nil
}
