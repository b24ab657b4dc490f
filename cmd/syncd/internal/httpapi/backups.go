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
	"github.com/syncd-io/syncd/peer/offline"
)

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

func (s *server) registerBackups() {
	huma.Register(s.api, huma.Operation{
		OperationID: "backup", Method: http.MethodPost, Path: "/v1/backups",
		Summary: "Back the node up into a folder of the daemon's machine, while it runs",
		Description: `A JSON object a line: {"bytes":N} tells the progress, {"backup":{…}} ends the answer. ` +
			`A backup that fails on the way ends it with {"problem":{…}}, one that is refused is a problem of its own. Closing the connection ends a backup, and leaves those before it.`,
		Responses: map[string]*huma.Response{"200": {Description: "The progress, and the backup", Content: lines(&huma.Schema{Type: "string"})}},
	}, s.backUp)
}

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
