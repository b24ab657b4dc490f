package httpapi

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/offline"
)

// registerUpkeep serves what an operator asks of a node: collections, restamps, verifications, backups.
func (s *server) registerUpkeep() {
	answers(s, api.GetCollection, ofNamespace(s, func(_ context.Context, ns *peer.Namespace, _ *api.NSParams) (api.Collection, error) {
		return api.Collection{Collection: ns.Collection()}, nil
	}))
	answers(s, api.Collect, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, _ *api.NSParams) (api.Collection, error) {
		swept, err := ns.Collect(ctx)
		return api.Collection{Collection: ns.Collection(), Swept: &swept}, err
	}))
	answers(s, api.GetFuture, ofNamespace(s, future))
	answers(s, api.Restamp, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, in *api.NSParams) (out api.Restamped, err error) {
		if out.Restamped, err = ns.Restamp(ctx); err == nil {
			out.Left, err = future(ctx, ns, in)
		}
		return out, err
	}))
	answers(s, api.Verify, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, _ *api.NSParams) (api.Verification, error) {
		v, err := ns.Verify(ctx)
		return api.VerificationOf(v, ns.Lost()), err
	}))
	answers(s, api.AcceptLoss, ofNamespace(s, func(_ context.Context, ns *peer.Namespace, _ *api.NSParams) (api.None, error) {
		return api.None{}, ns.AcceptLoss()
	}))
	op := operation(api.MakeBackup)
	op.Responses = map[string]*huma.Response{"200": {Description: "The progress, and the backup", Content: lines(&huma.Schema{Type: "string"})}}
	serve(s, op, s.backUp)
}

func future(ctx context.Context, ns *peer.Namespace, _ *api.NSParams) (api.Future, error) {
	return api.FutureOf(time.Now(), ns.Future(ctx))
}

type backupInput struct {
	api.WithBody[api.NewBackup]
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
		return nil, problem.Usage("back up into %s: the daemon runs elsewhere: give an absolute path", in.Body.Dir)
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
