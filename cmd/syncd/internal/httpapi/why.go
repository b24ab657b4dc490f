package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// registerWhy serves what members hold, as they say when they are asked.
func (s *server) registerWhy() {
	answers(s, api.Explain, ofRecord(s, s.why))
	serve(s, operation(api.Locate), ofRecord(s, s.locate))
	answers(s, api.Wait, ofNamespace(s, s.wait))
}

func (s *server) why(ctx context.Context, ns *peer.Namespace, key []byte, in *api.WhyParams) (out api.Whys, err error) {
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
		if out.Body, err = ns.WhereBody(ctx, key); err != nil && !errors.Is(err, peer.ErrUnreachable) { // what the members say tells why too few answer
			return out, err
		}
	}
	return out, nil
}

func (s *server) wait(ctx context.Context, ns *peer.Namespace, in *api.WaitParams) (out status.Waited, err error) {
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
	waited, err := ns.Wait(ctx, o)
	out = waited
	if err != nil {
		p := *problem.From(fail(err))
		p.Waited = &out
		return out, &p
	}
	return out, nil
}

type locateOutput struct {
	Status  int
	Answers string `header:"Syncd-Answers"`
	Detail  string `header:"Syncd-Detail"`
	Body    api.Located
}

func (s *server) locate(ctx context.Context, ns *peer.Namespace, key []byte, in *api.LocateParams) (*locateOutput, error) {
	options, err := getOptions(&in.ReadParams)
	if err != nil {
		return nil, err
	}
	if in.All {
		options = append(options, peer.Read(peer.All))
	}
	located, err := ns.Locate(ctx, key, options...)
	out := &locateOutput{Status: http.StatusOK, Body: api.LocatedOf(key, &located)}
	if few, headers := tooFew(err); few { // the answer says which hosts were asked
		out.Status, out.Answers, out.Detail = http.StatusServiceUnavailable, headers.Get(api.AnswersHeader), detail(err)
	} else if err != nil {
		return nil, err
	}
	return out, nil
}
