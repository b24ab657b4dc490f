package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/peer/status"
)

// Version is the daemon's.
func (c *Client) Version(ctx context.Context) (api.Program, error) {
	return ask[api.Program](ctx, c, http.MethodGet, "/v1/version", nil, nil)
}

// Status describes the daemon's node.
func (c *Client) Status(ctx context.Context) (api.Status, error) {
	return ask[api.Status](ctx, c, http.MethodGet, "/v1/status", nil, nil)
}

// Namespaces lists the node's namespaces.
func (c *Client) Namespaces(ctx context.Context) ([]api.Namespace, error) {
	out, err := ask[api.Namespaces](ctx, c, http.MethodGet, "/v1/namespaces", nil, nil)
	return out.Namespaces, err
}

// CreateNamespace makes a namespace.
func (c *Client) CreateNamespace(ctx context.Context, in api.NewNamespace) (api.Namespace, error) {
	return ask[api.Namespace](ctx, c, http.MethodPost, "/v1/namespaces", nil, in)
}

// DropNamespace deletes a namespace from the node; force: also what it alone may hold.
func (c *Client) DropNamespace(ctx context.Context, ns string, force bool) error {
	return c.call(ctx, http.MethodDelete, api.NamespacePath(ns), forced(force), nil, nil)
}

func forced(force bool) url.Values {
	if !force {
		return nil
	}
	return url.Values{"force": {"true"}}
}

// Layout says which members hold each shard of a namespace.
func (c *Client) Layout(ctx context.Context, ns string) (status.Layout, error) {
	return ask[status.Layout](ctx, c, http.MethodGet, api.NamespacePath(ns)+"/layout", nil, nil)
}

// ForceLayout names what is left of shards that have lost a majority of their hosts.
func (c *Client) ForceLayout(ctx context.Context, ns string) (api.Forced, error) {
	return ask[api.Forced](ctx, c, http.MethodPost, api.NamespacePath(ns)+"/layout", nil, nil)
}

// Reindex hands records that the daemon was told to the hosts of their keys.
func (c *Client) Reindex(ctx context.Context, ns string) (api.Reindexed, error) {
	return ask[api.Reindexed](ctx, c, http.MethodPost, api.NamespacePath(ns)+"/reindex", nil, nil)
}

// NamespaceStatus describes a namespace and its members.
func (c *Client) NamespaceStatus(ctx context.Context, ns string) (api.NamespaceStatus, error) {
	return ask[api.NamespaceStatus](ctx, c, http.MethodGet, api.NamespacePath(ns)+"/status", nil, nil)
}

// Cluster describes a namespace, with what its members answer within a time.
func (c *Client) Cluster(ctx context.Context, ns string, within time.Duration) (api.NamespaceStatus, error) {
	q := url.Values{"cluster": {"true"}, "within": {within.String()}}
	return ask[api.NamespaceStatus](ctx, c, http.MethodGet, api.NamespacePath(ns)+"/status", q, nil)
}

// Future lists what a namespace holds that is from the future.
func (c *Client) Future(ctx context.Context, ns string) (api.Future, error) {
	return ask[api.Future](ctx, c, http.MethodGet, api.NamespacePath(ns)+"/future", nil, nil)
}

// Restamp gives what the node wrote while its clock was wrong a version of now.
func (c *Client) Restamp(ctx context.Context, ns string) (api.Restamped, error) {
	return ask[api.Restamped](ctx, c, http.MethodPost, api.NamespacePath(ns)+"/restamp", nil, nil)
}

// Join redeems a ticket.
func (c *Client) Join(ctx context.Context, ticket string) (api.Joined, error) {
	return ask[api.Joined](ctx, c, http.MethodPost, "/v1/join", nil, api.Ticket{Ticket: ticket})
}

// Peers lists the address book.
func (c *Client) Peers(ctx context.Context) ([]status.Peer, error) {
	out, err := ask[api.Peers](ctx, c, http.MethodGet, "/v1/peers", nil, nil)
	return out.Peers, err
}

// AddPeer remembers an address and returns the peer's id.
func (c *Client) AddPeer(ctx context.Context, addr string) (string, error) {
	out, err := ask[api.PeerID](ctx, c, http.MethodPost, "/v1/peers", nil, api.NewPeer{Addr: addr})
	return out.ID, err
}

// RemovePeer forgets a peer's addresses.
func (c *Client) RemovePeer(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "/v1/peers/"+url.PathEscape(id), nil, nil, nil)
}

// Syncs lists the last syncs, the latest first.
func (c *Client) Syncs(ctx context.Context) ([]api.SyncEnd, error) {
	out, err := ask[api.Syncs](ctx, c, http.MethodGet, "/v1/syncs", nil, nil)
	return out.Syncs, err
}

// Running returns the reports so far of the syncs that callers wait for.
func (c *Client) Running(ctx context.Context) ([]api.Report, error) {
	out, err := ask[api.Syncs](ctx, c, http.MethodGet, "/v1/syncs", nil, nil)
	return out.Running, err
}
