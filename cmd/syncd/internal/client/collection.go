package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
)

// Collection says how far the collection of deleted and expired records is.
func (c *Client) Collection(ctx context.Context, ns string) (api.Collection, error) {
	return ask[api.Collection](ctx, c, http.MethodGet, api.NamespacePath(ns)+"/collection", nil, nil)
}

// Collect takes out the deleted and expired records that all members are past.
func (c *Client) Collect(ctx context.Context, ns string) (api.Collection, error) {
	return ask[api.Collection](ctx, c, http.MethodPost, api.NamespacePath(ns)+"/collection", nil, nil)
}

// Lapse makes the members wait for a silent one no longer; force: also where shards have no majority
// of their hosts left then.
func (c *Client) Lapse(ctx context.Context, ns, id string, force bool) error {
	query := url.Values{}
	if force {
		query.Set("force", "true")
	}
	return c.call(ctx, http.MethodPost, api.NamespacePath(ns)+"/members/"+url.PathEscape(id)+"/lapse", query, nil, nil)
}
