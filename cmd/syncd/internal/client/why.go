package client

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer/status"
)

// Why asks the peers, or one of them, what they hold under a key.
func (c *Client) Why(ctx context.Context, ns string, key []byte, peer string) (api.Whys, error) {
	q := url.Values{}
	if peer != "" {
		q.Set("peer", peer)
	}
	return ask[api.Whys](ctx, c, http.MethodGet, api.NamespacePath(ns)+"/why64/"+base64.RawURLEncoding.EncodeToString(key), q, nil)
}

// Wait waits until members hold what the daemon's node holds. What was found is
// meaningful beside an error.
func (c *Client) Wait(ctx context.Context, ns string, in api.WaitRequest) (status.Waited, error) {
	out, err := ask[status.Waited](ctx, c, http.MethodPost, api.NamespacePath(ns)+"/wait", nil, in)
	if p, ok := errors.AsType[*problem.Problem](err); ok && p.Waited != nil {
		out = *p.Waited
	}
	return out, err
}

// Locate says which members hold a key of a namespace of shards.
func (c *Client) Locate(ctx context.Context, ns string, key []byte, o GetOptions) (api.Located, error) {
	var out api.Located
	resp, few, err := c.send(ctx, request{
		method: http.MethodGet, path: api.NamespacePath(ns) + "/locate64/" + base64.RawURLEncoding.EncodeToString(key), query: o.query(),
	})
	if err != nil {
		return out, err
	}
	defer func() { _ = resp.Body.Close() }() // read only
	if err := into(&out)(resp.Header, resp.Body); err != nil {
		return out, err
	}
	return out, few
}
