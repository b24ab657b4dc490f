package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
)

// Members lists the members of a namespace; all adds those that were.
func (c *Client) Members(ctx context.Context, ns string, all bool) (api.Members, error) {
	var query url.Values
	if all {
		query = url.Values{"all": {"true"}}
	}
	return ask[api.Members](ctx, c, http.MethodGet, api.NamespacePath(ns)+"/members", query, nil)
}

// SetMember gives a node a role.
func (c *Client) SetMember(ctx context.Context, ns, id string, in api.NewRole) error {
	return c.call(ctx, http.MethodPut, memberPath(ns, id), nil, in, nil)
}

// RemoveMember ends a node's membership; force: also where the node itself leaves something behind.
func (c *Client) RemoveMember(ctx context.Context, ns, id string, force bool) error {
	return c.call(ctx, http.MethodDelete, memberPath(ns, id), forced(force), nil, nil)
}

func memberPath(ns, id string) string {
	return api.NamespacePath(ns) + "/members/" + url.PathEscape(id)
}

// Invite makes a ticket.
func (c *Client) Invite(ctx context.Context, in api.Invitation) (string, error) {
	out, err := ask[api.Ticket](ctx, c, http.MethodPost, "/v1/invites", nil, in)
	return out.Ticket, err
}

// Invites lists the tickets that the node has issued.
func (c *Client) Invites(ctx context.Context, ns string) (api.Invites, error) {
	return ask[api.Invites](ctx, c, http.MethodGet, api.NamespacePath(ns)+"/invites", nil, nil)
}

// Revoke makes a ticket useless.
func (c *Client) Revoke(ctx context.Context, ns, id string) error {
	return c.call(ctx, http.MethodDelete, api.NamespacePath(ns)+"/invites/"+url.PathEscape(id), nil, nil, nil)
}
