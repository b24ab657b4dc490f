package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/syncd-io/syncd/cmd/syncd/internal/httpapi"
)

// Version is the daemon's.
func (c *Client) Version(ctx context.Context) (httpapi.Version, error) {
	var out httpapi.Version
	err := c.call(ctx, http.MethodGet, "/v1/version", nil, nil, &out)
	return out, err
}

// Status describes the daemon's node.
func (c *Client) Status(ctx context.Context) (httpapi.Status, error) {
	var out httpapi.Status
	err := c.call(ctx, http.MethodGet, "/v1/status", nil, nil, &out)
	return out, err
}

// Namespaces lists the node's namespaces.
func (c *Client) Namespaces(ctx context.Context) ([]httpapi.Namespace, error) {
	var out struct {
		Namespaces []httpapi.Namespace `json:"namespaces"`
	}
	err := c.call(ctx, http.MethodGet, "/v1/namespaces", nil, nil, &out)
	return out.Namespaces, err
}

// CreateNamespace makes a namespace.
func (c *Client) CreateNamespace(ctx context.Context, in httpapi.NewNamespace) (httpapi.Namespace, error) {
	var out httpapi.Namespace
	err := c.call(ctx, http.MethodPost, "/v1/namespaces", nil, in, &out)
	return out, err
}

// DropNamespace deletes a namespace from the node.
func (c *Client) DropNamespace(ctx context.Context, ns string) error {
	return c.call(ctx, http.MethodDelete, nsPath(ns, ""), nil, nil, nil)
}

// NamespaceStatus describes a namespace and its members.
func (c *Client) NamespaceStatus(ctx context.Context, ns string) (httpapi.NamespaceStatus, error) {
	var out httpapi.NamespaceStatus
	err := c.call(ctx, http.MethodGet, nsPath(ns, "/status"), nil, nil, &out)
	return out, err
}

// Invite makes a ticket.
func (c *Client) Invite(ctx context.Context, in httpapi.Invitation) (string, error) {
	var out httpapi.Ticket
	err := c.call(ctx, http.MethodPost, "/v1/invites", nil, in, &out)
	return out.Ticket, err
}

// Join redeems a ticket.
func (c *Client) Join(ctx context.Context, ticket string) (httpapi.Namespace, error) {
	var out httpapi.Namespace
	err := c.call(ctx, http.MethodPost, "/v1/join", nil, httpapi.Ticket{Ticket: ticket}, &out)
	return out, err
}

// Peers lists the address book.
func (c *Client) Peers(ctx context.Context) ([]httpapi.Peer, error) {
	var out struct {
		Peers []httpapi.Peer `json:"peers"`
	}
	err := c.call(ctx, http.MethodGet, "/v1/peers", nil, nil, &out)
	return out.Peers, err
}

// AddPeer remembers an address and returns the peer's id.
func (c *Client) AddPeer(ctx context.Context, addr string) (string, error) {
	var out struct {
		ID string `json:"id"`
	}
	err := c.call(ctx, http.MethodPost, "/v1/peers", nil, httpapi.NewPeer{Addr: addr}, &out)
	return out.ID, err
}

// RemovePeer forgets a peer's addresses.
func (c *Client) RemovePeer(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "/v1/peers/"+url.PathEscape(id), nil, nil, nil)
}

// Syncs lists the last syncs, the latest first.
func (c *Client) Syncs(ctx context.Context) ([]httpapi.SyncEnd, error) {
	var out struct {
		Syncs []httpapi.SyncEnd `json:"syncs"`
	}
	err := c.call(ctx, http.MethodGet, "/v1/syncs", nil, nil, &out)
	return out.Syncs, err
}
