package client

import (
	"bytes"
	"context"
	"net/http"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
)

// Batch writes the items of a JSON list of api.BatchItem, all or none, and returns their
// versions. The list goes out as it is: bytes that are not UTF-8 are refused, and not
// replaced.
func (c *Client) Batch(ctx context.Context, ns string, list []byte) ([]string, error) {
	var out api.Versions
	err := c.change(ctx, request{
		method: http.MethodPost, path: api.NamespacePath(ns) + "/batch", body: bytes.NewReader(list), kind: "application/json",
	}, into(&out))
	return out.Versions, err
}
