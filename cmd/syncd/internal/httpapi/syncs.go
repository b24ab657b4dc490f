package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// SyncRequest asks for a sync.
type SyncRequest struct {
	Peer     string `json:"peer" doc:"a peer id, or a multiaddr that ends in /p2p/ and one"`
	NS       string `json:"ns" doc:"the namespace's local name"`
	Prefix   string `json:"prefix,omitempty" doc:"only keys that begin with it"`
	Prefix64 []byte `json:"prefix64,omitempty" doc:"the prefix, if it is not UTF-8"`
	Dir      string `json:"dir,omitempty" enum:"both,pull,push" doc:"which way records may go; default both"`
	Method   string `json:"method,omitempty" enum:"auto,sketch,all" doc:"default auto: the cheapest"`
	DryRun   bool   `json:"dry_run,omitempty" doc:"find the differences, change nothing"`
}

// SyncEnd is a sync that has ended.
type SyncEnd struct {
	Time     time.Time   `json:"time"`
	Incoming bool        `json:"incoming" doc:"the peer began it"`
	DryRun   bool        `json:"dry_run" doc:"it found the differences and moved nothing"`
	Report   peer.Report `json:"report"`
	Error    string      `json:"error,omitempty"`
}

type (
	reportOutput struct{ Body peer.Report }
	syncInput    struct{ Body SyncRequest }
	diffInput    struct {
		NS     string `path:"ns" doc:"the namespace's local name"`
		Peer   string `query:"peer" required:"true" doc:"a peer id, or a multiaddr that ends in /p2p/ and one"`
		Prefix string `query:"prefix" doc:"only keys that begin with these bytes, percent-encoded"`
	}
	syncsOutput struct {
		Body struct {
			Syncs []SyncEnd `json:"syncs"`
		}
	}
)

func (s *server) registerSyncs() {
	huma.Register(s.api, huma.Operation{
		OperationID: "sync", Method: http.MethodPost, Path: "/v1/sync", BodyReadTimeout: -1,
		Summary: "Make this node's records and a peer's equal",
	}, func(ctx context.Context, in *syncInput) (*reportOutput, error) { return s.sync(ctx, in.Body) })
	huma.Register(s.api, huma.Operation{
		OperationID: "diff", Method: http.MethodGet, Path: "/v1/ns/{ns}/diff",
		Summary: "What differs from a peer, with a forecast of what a sync would move; changes nothing",
	}, func(ctx context.Context, in *diffInput) (*reportOutput, error) {
		return s.sync(ctx, SyncRequest{Peer: in.Peer, NS: in.NS, Prefix64: []byte(in.Prefix), DryRun: true})
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "syncs", Method: http.MethodGet, Path: "/v1/syncs", Summary: "The last syncs, the latest first",
	}, func(context.Context, *struct{}) (*syncsOutput, error) {
		out := &syncsOutput{}
		out.Body.Syncs = []SyncEnd{}
		for _, r := range s.Node.RecentSyncs() {
			out.Body.Syncs = append(out.Body.Syncs, SyncEnd{r.Time, r.Incoming, r.DryRun, r.Report, r.Error})
		}
		return out, nil
	})
}

func (s *server) sync(ctx context.Context, in SyncRequest) (*reportOutput, error) {
	ns, err := s.namespace(in.NS)
	if err != nil {
		return nil, err
	}
	id, err := s.peer(ctx, in.Peer)
	if err != nil {
		return nil, err
	}
	prefix := []byte(in.Prefix)
	if in.Prefix64 != nil {
		prefix = in.Prefix64
	}
	report, err := ns.Sync(ctx, id, peer.SyncOptions{
		Prefix: prefix, Direction: peer.Direction(in.Dir), Method: in.Method, DryRun: in.DryRun,
	})
	if err != nil {
		p := *problem.From(err)
		p.Report = &report
		return nil, &p
	}
	return &reportOutput{report}, nil
}

// peer finds who is meant: by id, or by an address, which is dialled.
func (s *server) peer(ctx context.Context, text string) (peer.ID, error) {
	if strings.HasPrefix(text, "/") {
		if err := checkAddr(text); err != nil {
			return "", err
		}
		id, err := s.Node.Connect(ctx, text)
		return id, fail(err)
	}
	id, err := peer.ParseID(text)
	if err != nil {
		return "", fail(problem.Usage("%w; syncd peer ls lists the known ones", err))
	}
	return id, nil
}
