package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/offline"
)

type lapseInput struct {
	NS    string `path:"ns" doc:"the namespace's local name"`
	ID    string `path:"id" doc:"the member's id"`
	Force bool   `query:"force" doc:"also where shards have no majority of their hosts left then"`
}

// registerUpkeep serves what an operator asks of a node: collections, restamps, verifications, backups.
func (s *server) registerUpkeep() {
	answers(s, huma.Operation{
		OperationID: "collection", Method: http.MethodGet, Path: "/v1/ns/{ns}/collection",
		Summary: "How far the collection of deleted and expired records is, and which members hold it back",
	}, ofNamespace(s, func(_ context.Context, ns *peer.Namespace) (api.Collection, error) {
		return api.Collection{Collection: ns.Collection()}, nil
	}))
	answers(s, huma.Operation{
		OperationID: "collect", Method: http.MethodPost, Path: "/v1/ns/{ns}/collection",
		Summary: "Take out the deleted and expired records that all members are past",
	}, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace) (api.Collection, error) {
		swept, err := ns.Collect(ctx)
		return api.Collection{Collection: ns.Collection(), Swept: &swept}, err
	}))
	does(s, huma.Operation{
		OperationID: "lapse", Method: http.MethodPost, Path: "/v1/ns/{ns}/members/{id}/lapse",
		Summary: "Wait for a silent member no longer: deleted records can go before it has heard of that",
	}, func(ctx context.Context, in *lapseInput) error {
		return s.change(in.NS, in.ID, func(ns *peer.Namespace, id peer.ID) error {
			if in.Force {
				return ns.ForceLapse(ctx, id)
			}
			return ns.Lapse(ctx, id)
		})
	})
	answers(s, huma.Operation{
		OperationID: "future", Method: http.MethodGet, Path: "/v1/ns/{ns}/future",
		Summary: "Records whose versions are too far ahead of the node's clock; the other members decline them",
	}, ofNamespace(s, future))
	answers(s, huma.Operation{
		OperationID: "restamp", Method: http.MethodPost, Path: "/v1/ns/{ns}/restamp",
		Summary: "Give what this node wrote while its clock was wrong a version of now",
	}, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace) (out api.Restamped, err error) {
		if out.Restamped, err = ns.Restamp(ctx); err == nil {
			out.Left, err = future(ctx, ns)
		}
		return out, err
	}))
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
	huma.Register(s.api, huma.Operation{
		OperationID: "backup", Method: http.MethodPost, Path: "/v1/backups",
		Summary: "Back the node up into a folder of the daemon's machine, while it runs",
		Description: `A JSON object a line: {"bytes":N} tells the progress, {"backup":{…}} ends the answer. ` +
			`A backup that fails on the way ends it with {"problem":{…}}, one that is refused is a problem of its own. Closing the connection ends a backup, and leaves those before it.`,
		Responses: map[string]*huma.Response{"200": {Description: "The progress, and the backup", Content: lines(&huma.Schema{Type: "string"})}},
	}, s.backUp)
}

func future(ctx context.Context, ns *peer.Namespace) (api.Future, error) {
	return api.FutureOf(time.Now(), ns.Future(ctx))
}

type backupInput struct {
	Body api.NewBackup
	RawRequest
}

// backupLine is a line of the answer to a backup.
type backupLine struct {
	Bytes   int64            `json:"bytes,omitempty"`
	Backup  *offline.Backup  `json:"backup,omitempty"`
	Problem *problem.Problem `json:"problem,omitempty"`
}

// backupPause is the pause between two lines that tell the progress.
const backupPause = 200 * time.Millisecond

func (s *server) backUp(_ context.Context, in *backupInput) (*huma.StreamResponse, error) {
	if !filepath.IsAbs(in.Body.Dir) {
		return nil, fail(problem.Usage("back up into %s: the daemon runs elsewhere: give an absolute path", in.Body.Dir))
	}
	return &huma.StreamResponse{Body: func(h huma.Context) {
		out, last := newLineWriter(in.write), time.Time{}
		defer out.end()
		b, err := s.Node.Backup(h.Context(), in.Body.Dir, offline.BackupOptions{
			Full: in.Body.Full, Program: "syncd " + s.Version.Version, Progress: func(bytes int64) {
				if now := time.Now(); now.Sub(last) >= backupPause {
					last = now
					out.line(backupLine{Bytes: bytes})
				}
			},
		})
		if err != nil {
			s.Logger.Warn("a backup failed", slog.String("dir", in.Body.Dir), slog.Any("error", err))
			p := problem.From(err)
			out.refuse(p, backupLine{Problem: p})
			return
		}
		s.Logger.Info("a backup was made", slog.String("dir", in.Body.Dir), slog.Int("generation", b.Generation), slog.Int64("bytes", b.Bytes))
		out.line(backupLine{Backup: b})
	}}, nil
}
