package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile/wire"
)

type (
	diffInput struct {
		NS     string `path:"ns" doc:"the namespace's local name"`
		Peer   string `query:"peer" required:"true" doc:"a peer id, or a multiaddr that ends in /p2p/ and one"`
		Prefix string `query:"prefix" doc:"only keys that begin with these bytes, percent-encoded"`
		Dir    string `query:"dir" enum:"both,pull,push" default:"both" doc:"which way the forecast lets records go"`
		Method string `query:"method" enum:"auto,sketch,all" default:"auto" doc:"how the differences are found"`
	}
)

func (s *server) registerSyncs() {
	answers(s, huma.Operation{
		OperationID: "sync", Method: http.MethodPost, Path: "/v1/sync", BodyReadTimeout: -1,
		Summary: "Make this node's records and a peer's equal",
	}, func(ctx context.Context, in *input[api.SyncRequest]) (api.Report, error) { return s.sync(ctx, in.Body) })
	answers(s, huma.Operation{
		OperationID: "diff", Method: http.MethodGet, Path: "/v1/ns/{ns}/diff",
		Summary: "What differs from a peer, with a forecast of what a sync would move; changes nothing",
	}, func(ctx context.Context, in *diffInput) (api.Report, error) {
		return s.sync(ctx, api.SyncRequest{Peer: in.Peer, NS: in.NS, Prefix64: []byte(in.Prefix), Dir: in.Dir, Method: in.Method, DryRun: true})
	})
	answers(s, huma.Operation{
		OperationID: "syncs", Method: http.MethodGet, Path: "/v1/syncs", Summary: "The last syncs, the latest first, and those that callers wait for",
	}, func(context.Context, *struct{}) (api.Syncs, error) {
		out := api.SyncsOf(s.Node.RecentSyncs())
		out.Running = s.running.reports()
		return out, nil
	})
}

func (s *server) sync(ctx context.Context, in api.SyncRequest) (out api.Report, err error) {
	ns, err := s.namespace(in.NS)
	if err != nil {
		return out, err
	}
	id, err := s.peer(ctx, in.Peer)
	if err != nil {
		return out, err
	}
	prefix := []byte(in.Prefix)
	if in.Prefix64 != nil {
		prefix = in.Prefix64
	}
	direction, err := wire.ParseDirection(in.Dir)
	if err != nil {
		return out, problem.Usage("%w", err)
	}
	method, err := wire.ParseMethod(in.Method)
	if err != nil {
		return out, problem.Usage("%w", err)
	}
	hear, done := s.running.begin()
	defer done()
	report, err := ns.Sync(ctx, id, peer.SyncOptions{
		Prefix: prefix, Direction: direction, Method: method, DryRun: in.DryRun, Progress: hear,
	})
	out = api.ReportOf(&report)
	if err != nil {
		p := *problem.From(fail(err))
		p.Report = &out
		return out, &p
	}
	return out, nil
}

// peer finds the peer that is meant: by its id, or by an address, which it dials.
func (s *server) peer(ctx context.Context, text string) (peer.ID, error) {
	if strings.HasPrefix(text, "/") {
		id, err := s.Node.Connect(ctx, text)
		return id, fail(err)
	}
	id, err := api.ParseID(text)
	if err != nil {
		return "", fail(problem.Usage("%w; syncd peer ls lists the known ones", err))
	}
	return id, nil
}
