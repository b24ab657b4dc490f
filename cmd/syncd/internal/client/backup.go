package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer/offline"
)

// Backup backs the daemon's node up into a folder of its machine. progress is told
// how many bytes have been written.
func (c *Client) Backup(ctx context.Context, in api.NewBackup, progress func(bytes int64)) (offline.Backup, error) {
	var out offline.Backup
	b, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	resp, err := c.do(ctx, request{method: http.MethodPost, path: "/v1/backups", body: bytes.NewReader(b), kind: "application/json"})
	if err != nil {
		return out, err
	}
	defer func() { _ = resp.Body.Close() }() // read only
	for lines := json.NewDecoder(resp.Body); ; {
		var line struct {
			Bytes   int64
			Backup  *offline.Backup
			Problem *problem.Problem
		}
		switch err := lines.Decode(&line); {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case err != nil:
			return out, fmt.Errorf("the daemon's answer broke off (%w); see its log", err)
		case line.Problem != nil:
			return out, line.Problem
		case line.Backup != nil:
			return *line.Backup, nil
		}
		progress(line.Bytes)
	}
}
