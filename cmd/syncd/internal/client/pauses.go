package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
)

// Pause takes a namespace out of all syncs on the daemon's node.
func (c *Client) Pause(ctx context.Context, ns string) error {
	return c.call(ctx, http.MethodPost, api.NamespacePath(ns)+"/pause", nil, nil, nil)
}

// Resume lets a namespace take part in syncs again.
func (c *Client) Resume(ctx context.Context, ns string) error {
	return c.call(ctx, http.MethodPost, api.NamespacePath(ns)+"/resume", nil, nil, nil)
}

// PausePeer ends the syncs with a peer.
func (c *Client) PausePeer(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, "/v1/peers/"+url.PathEscape(id)+"/pause", nil, nil, nil)
}

// ResumePeer lets the daemon's node sync with a peer again.
func (c *Client) ResumePeer(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, "/v1/peers/"+url.PathEscape(id)+"/resume", nil, nil, nil)
}
