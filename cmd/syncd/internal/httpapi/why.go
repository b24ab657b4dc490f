package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

type (
	whyInput struct {
		RecordParams
		Peer string `query:"peer" doc:"a peer id, or a multiaddr that ends in /p2p/ and one; without it, each other member is asked"`
	}
	waitInput struct {
		NS   string `path:"ns" doc:"the namespace's local name"`
		Body api.WaitRequest
	}
)

// registerWhy serves what members hold, as they say when they are asked.
func (s *server) registerWhy() {
	answers(s, huma.Operation{
		OperationID: "why", Method: http.MethodGet, Path: "/v1/ns/{ns}/why/{key}",
		Summary:     "Why a key is, or is not, the same at the peers",
		Description: "Asks them at once. A peer that does not answer within 15 s is unknown, and the cause says why.",
	}, s.why)
	huma.Register(s.api, huma.Operation{
		OperationID: "locate", Method: http.MethodGet, Path: "/v1/ns/{ns}/locate/{key}",
		Summary:     "Which members hold a key of a namespace that is cut into shards",
		Description: "Looks the key up as a read does, and tells what was asked and what each has said. 503: too few hosts have answered, and the body says which.",
	}, s.locate)
	answers(s, huma.Operation{
		OperationID: "wait", Method: http.MethodPost, Path: "/v1/ns/{ns}/wait",
		Summary:     "Wait until members hold what this node holds, or a version of a key",
		Description: "504 (unconfirmed): the time was over first; waited says which members hold it, and what the others said.",
	}, s.wait)
}

func (s *server) why(ctx context.Context, in *whyInput) (out api.Whys, err error) {
	ns, key, err := s.record(&in.RecordParams)
	if err != nil {
		return out, err
	}
	var peers []peer.ID
	if in.Peer != "" {
		id, err := s.peer(ctx, in.Peer)
		if err != nil {
			return out, err
		}
		peers = append(peers, id)
	}
	whys, err := ns.Why(ctx, key, peers...)
	if err != nil {
		return out, err
	}
	out = api.WhysOf(key, whys)
	if len(peers) == 0 {
		body, err := ns.WhereBody(ctx, key)
		if err != nil && !errors.Is(err, peer.ErrUnreachable) { // what the members say tells why too few answer
			return out, err
		}
		out.Body = api.BodyOf(body)
	}
	return out, nil
}

func (s *server) wait(ctx context.Context, in *waitInput) (out status.Waited, err error) {
	ns, err := s.namespace(in.NS)
	if err != nil {
		return out, err
	}
	o := peer.WaitOptions{Count: in.Body.Count, Key: in.Body.Key64}
	if in.Body.Key != nil {
		o.Key = []byte(*in.Body.Key)
	}
	for _, text := range in.Body.Peers {
		id, err := s.peer(ctx, text)
		if err != nil {
			return out, err
		}
		o.Peers = append(o.Peers, id)
	}
	switch {
	case in.Body.Key != nil && in.Body.Key64 != nil:
		return out, problem.Usage("key and key64 exclude one another")
	case in.Body.Version != "" && o.Key == nil:
		return out, problem.Usage("version: it is that of a key; name the key, too")
	case in.Body.Version != "":
		if o.Version, err = dbadapter.ParseVersion(in.Body.Version); err != nil {
			return out, problem.Usage("%w", err)
		}
	}
	ctx, cancel, err := within(ctx, in.Body.Timeout)
	if err != nil {
		return out, err
	}
	defer cancel()
	waited, err := ns.Wait(ctx, o)
	out = waited
	if err != nil {
		p := *problem.From(fail(err))
		p.Waited = &out
		return out, &p
	}
	return out, nil
}

// within bounds for how long a request waits for others, by the time that it states, or not.
func within(ctx context.Context, timeout string) (context.Context, context.CancelFunc, error) {
	d, err := duration("timeout", timeout)
	if err != nil {
		return nil, nil, err
	}
	if d == 0 {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	return ctx, cancel, nil
}

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
