package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
)

// Batch writes the items of a JSON list of api.BatchItem, all or none, and returns their
// versions. The list goes out as it is: bytes that are not UTF-8 are refused, and not
// replaced.
func (c *Client) Batch(ctx context.Context, ns string, list []byte) ([]string, error) {
	resp, err := c.do(ctx, request{
		method: http.MethodPost, path: api.NamespacePath(ns) + "/batch", body: bytes.NewReader(list), kind: "application/json",
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // read only
	var out api.Versions
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return nil, fmt.Errorf("reading the daemon's answer: %w", err)
	}
	return out.Versions, nil
}
