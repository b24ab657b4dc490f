package httpapi

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

func (s *server) registerSyncs() {
	answers(s, api.RunSync, func(ctx context.Context, in *api.WithBody[api.SyncRequest]) (api.Report, error) {
		return s.sync(ctx, in.Body)
	})
	answers(s, api.GetDiff, func(ctx context.Context, in *api.DiffParams) (api.Report, error) {
		return s.sync(ctx, api.SyncRequest{Peer: in.Peer, NS: in.NS, Prefix64: []byte(in.Prefix), Dir: in.Dir, Method: in.Method, DryRun: true})
	})
	answers(s, api.ListSyncs, func(context.Context, *api.None) (api.Syncs, error) {
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
		return s.Node.Connect(ctx, text)
	}
	id, err := api.ParseID(text)
	if err != nil {
		return "", problem.Usage("%w; syncd peer ls lists the known ones", err)
	}
	return id, nil
}

type diffKeysInput struct {
	api.DiffKeysParams
	RawRequest
}

func (s *server) registerDiffKeys() {
	schema := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[api.KeyDifference](), true, "KeyDifference")
	op := operation(api.DiffKeys)
	op.Responses = map[string]*huma.Response{"200": {Description: "The lines", Content: lines(schema)}}
	serve(s, op, ofNamespace(s, s.diffKeys))
}

// errHungUp ends a listing whose client has gone.
var errHungUp = errors.New("the client has gone")

func (s *server) diffKeys(ctx context.Context, ns *peer.Namespace, in *diffKeysInput) (*huma.StreamResponse, error) {
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
		return nil, err
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

// running are the syncs that callers wait for, with their reports so far, the oldest first.
type running struct {
	mu  sync.Mutex // guards what follows
	all []*reconcile.Report
}

// begin notes a sync. hear takes its report so far, done ends it.
func (r *running) begin() (hear func(reconcile.Report), done func()) {
	mine := new(reconcile.Report)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, mine)
	hear = func(report reconcile.Report) {
		r.mu.Lock()
		defer r.mu.Unlock()
		*mine = report
	}
	return hear, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = slices.DeleteFunc(r.all, func(one *reconcile.Report) bool { return one == mine })
	}
}

// reports are those of the syncs that have said something.
func (r *running) reports() (out []api.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, report := range r.all {
		if report.Namespace != "" {
			out = append(out, api.ReportOf(report))
		}
	}
	return out
}
