package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
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
	return c.call(ctx, http.MethodDelete, api.NamespacePath(ns), params{"force": force}, nil, nil)
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
	return ask[api.NamespaceStatus](ctx, c, http.MethodGet, api.NamespacePath(ns)+"/status", params{"cluster": true, "within": within}, nil)
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
	return c.call(ctx, http.MethodPost, memberPath(ns, id)+"/lapse", params{"force": force}, nil, nil)
}

// Members lists the members of a namespace; all adds those that were.
func (c *Client) Members(ctx context.Context, ns string, all bool) (api.Members, error) {
	return ask[api.Members](ctx, c, http.MethodGet, api.NamespacePath(ns)+"/members", params{"all": all}, nil)
}

// SetMember gives a node a role.
func (c *Client) SetMember(ctx context.Context, ns, id string, in api.NewRole) error {
	return c.call(ctx, http.MethodPut, memberPath(ns, id), nil, in, nil)
}

// RemoveMember ends a node's membership; force: also where the node itself leaves something behind.
func (c *Client) RemoveMember(ctx context.Context, ns, id string, force bool) error {
	return c.call(ctx, http.MethodDelete, memberPath(ns, id), params{"force": force}, nil, nil)
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

// Verify reads the store's files and all records of a namespace.
func (c *Client) Verify(ctx context.Context, ns string) (api.Verification, error) {
	return ask[api.Verification](ctx, c, http.MethodPost, api.NamespacePath(ns)+"/verify", nil, nil)
}

// AcceptLoss ends what is said of a loss by damage to the store.
func (c *Client) AcceptLoss(ctx context.Context, ns string) error {
	return c.call(ctx, http.MethodDelete, api.NamespacePath(ns)+"/lost", nil, nil, nil)
}

// The lists of kept records.
const (
	Conflicts = "conflicts"
	Rejected  = "rejected"
)

func keptPath(ns, list string, seq uint64) string {
	return api.NamespacePath(ns) + "/" + list + "/" + strconv.FormatUint(seq, 10)
}

// Kept lists a page of one of the lists: of all keys, or of one. member, if not empty, is that whose
// list it is; else it is the daemon's.
func (c *Client) Kept(ctx context.Context, ns, list, member string, key []byte, cursor uint64, limit int) (api.KeptList, error) {
	return ask[api.KeptList](ctx, c, http.MethodGet, api.NamespacePath(ns)+"/"+list,
		params{"limit": limit, "member": member, "key": string(key), "cursor": cursor}, nil)
}

// KeptValue is one entry with its value.
func (c *Client) KeptValue(ctx context.Context, ns, list string, seq uint64) (api.KeptValue, error) {
	return ask[api.KeptValue](ctx, c, http.MethodGet, keptPath(ns, list, seq), nil, nil)
}

// RestoreKept writes an entry again and forgets it.
func (c *Client) RestoreKept(ctx context.Context, ns, list string, seq uint64) (api.Restored, error) {
	var out api.Restored
	err := c.change(ctx, request{method: http.MethodPost, path: keptPath(ns, list, seq) + "/restore"}, into(&out))
	return out, err
}

// ForgetKept forgets an entry for good.
func (c *Client) ForgetKept(ctx context.Context, ns, list string, seq uint64) error {
	return c.call(ctx, http.MethodDelete, keptPath(ns, list, seq), nil, nil, nil)
}

// ForgetAllKept forgets the entries up to one for good.
func (c *Client) ForgetAllKept(ctx context.Context, ns, list string, through uint64) (api.Forgotten, error) {
	return ask[api.Forgotten](ctx, c, http.MethodDelete, api.NamespacePath(ns)+"/"+list, params{"through": through}, nil)
}
