package client

import (
	"context"
	"net/http"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
)

// Verify reads the store's files and all records of a namespace.
func (c *Client) Verify(ctx context.Context, ns string) (api.Verification, error) {
	return ask[api.Verification](ctx, c, http.MethodPost, api.NamespacePath(ns)+"/verify", nil, nil)
}

// AcceptLoss ends what is said of a loss by damage to the store.
func (c *Client) AcceptLoss(ctx context.Context, ns string) error {
	return c.call(ctx, http.MethodDelete, api.NamespacePath(ns)+"/lost", nil, nil, nil)
}
