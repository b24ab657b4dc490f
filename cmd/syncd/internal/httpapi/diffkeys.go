package httpapi

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
)

type diffKeysInput struct {
	NS     string `path:"ns" doc:"the namespace's local name"`
	Peer   string `query:"peer" required:"true" doc:"a peer id, or a multiaddr that ends in /p2p/ and one"`
	Prefix string `query:"prefix" doc:"only keys that begin with these bytes, percent-encoded"`
	Limit  int    `query:"limit" minimum:"0" doc:"list at most so many keys; 0: all"`
	RawRequest
}

func (s *server) registerDiffKeys() {
	schema := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[api.KeyDifference](), true, "KeyDifference")
	huma.Register(s.api, huma.Operation{
		OperationID: "diff-keys", Method: http.MethodGet, Path: "/v1/ns/{ns}/diff/keys", Summary: "List the keys that differ from a peer, a JSON object a line; changes nothing",
		Description: "In no order, as they are found. The last line is of the kind end, or of the kind error where something goes wrong after the first one; a list without it was cut.",
		Responses:   map[string]*huma.Response{"200": {Description: "The lines", Content: lines(schema)}},
	}, s.diffKeys)
}

// errHungUp ends a listing whose client has gone.
var errHungUp = errors.New("the client has gone")

func (s *server) diffKeys(ctx context.Context, in *diffKeysInput) (*huma.StreamResponse, error) {
	ns, err := s.namespace(in.NS)
	if err != nil {
		return nil, err
	}
	id, err := s.peer(ctx, in.Peer)
	if err != nil {
		return nil, err
	}
	hear, done := s.running.begin()
	var report reconcile.Report
	next, stop := iter.Pull2(func(yield func(reconcile.KeyDifference, error) bool) {
		defer done()
		var err error
		report, err = ns.DiffKeys(ctx, id, peer.DiffOptions{Prefix: []byte(in.Prefix), Limit: in.Limit, Progress: hear}, func(d reconcile.KeyDifference) error {
			if !yield(d, nil) {
				return errHungUp
			}
			return nil
		})
		if err != nil && !errors.Is(err, errHungUp) {
			yield(reconcile.KeyDifference{}, err)
		}
	})
	first, err, more := next()
	if err != nil {
		stop()
		return nil, fail(err)
	}
	return &huma.StreamResponse{Body: func(huma.Context) {
		defer stop()
		out := newLineWriter(in.write)
		defer out.end()
		for d := first; more && out.err == nil; {
			out.line(api.KeyDifferenceOf(&d))
			if d, err, more = next(); err != nil {
				found := api.ReportOf(&report)
				out.line(api.KeyDifference{Kind: api.KindError, Problem: problem.From(fail(err)), Report: &found})
				return
			}
		}
		found := api.ReportOf(&report)
		out.line(api.KeyDifference{Kind: api.KindEnd, More: report.MoreKeys, Report: &found})
	}}, nil
}
