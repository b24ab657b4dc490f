package client

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// Batch writes the items of a JSON list of api.BatchItem, all or none, and returns their
// versions, also beside an error where too few hosts have confirmed them. The list goes out as it is: bytes that are not UTF-8 are refused, and not
// replaced.
func (c *Client) Batch(ctx context.Context, ns string, list []byte) ([]string, error) {
	var out api.Versions
	err := c.change(ctx, request{
		method: http.MethodPost, path: api.NamespacePath(ns) + "/batch", body: bytes.NewReader(list), kind: "application/json",
	}, into(&out))
	if p, ok := errors.AsType[*problem.Problem](err); ok && errors.Is(p, peer.ErrUnconfirmed) {
		return p.Versions, err
	}
	return out.Versions, err
}
