package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer/offline"
)

type backupInput struct{ Body api.NewBackup }

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
		Responses: map[string]*huma.Response{"200": {Description: "The progress, and the backup", Content: lines()}},
	}, s.backUp)
}

func (s *server) backUp(_ context.Context, in *backupInput) (*huma.StreamResponse, error) {
	if !filepath.IsAbs(in.Body.Dir) {
		return nil, fail(problem.Usage("back up into %s: the daemon runs elsewhere: give an absolute path", in.Body.Dir))
	}
	return &huma.StreamResponse{Body: func(h huma.Context) {
		out := &backupAnswer{h: h}
		b, err := s.Node.Backup(h.Context(), in.Body.Dir, offline.BackupOptions{
			Full: in.Body.Full, Program: "syncd " + s.Version.Version, Progress: out.progress,
		})
		if err != nil {
			s.Logger.Warn("a backup failed", slog.String("dir", in.Body.Dir), slog.Any("error", err))
			out.failed(problem.From(err))
			return
		}
		s.Logger.Info("a backup was made", slog.String("dir", in.Body.Dir), slog.Int("generation", b.Generation), slog.Int64("bytes", b.Bytes))
		made := *b
		out.line(backupLine{Backup: &made})
	}}, nil
}

// backupAnswer writes the lines of an answer.
type backupAnswer struct {
	h     huma.Context
	begun bool
	last  time.Time
}

func (a *backupAnswer) progress(bytes int64) {
	if now := time.Now(); now.Sub(a.last) >= backupPause {
		a.last = now
		a.line(backupLine{Bytes: bytes})
	}
}

func (a *backupAnswer) failed(p *problem.Problem) {
	if a.begun {
		a.line(backupLine{Problem: p})
		return
	}
	a.h.SetHeader("Content-Type", "application/problem+json")
	a.h.SetStatus(p.Status)
	_ = json.NewEncoder(a.h.BodyWriter()).Encode(p) // the client is gone, then
}

func (a *backupAnswer) line(l backupLine) {
	if !a.begun {
		a.begun = true
		a.h.SetHeader("Content-Type", linesType)
	}
	b, err := json.Marshal(l)
	if err != nil {
		panic(fmt.Sprintf("a line of a backup: %v", err)) // plain types only
	}
	_, _ = a.h.BodyWriter().Write(append(b, '\n')) // a client that is gone ends the request's context
	if f, ok := a.h.BodyWriter().(http.Flusher); ok {
		f.Flush()
	}
}
