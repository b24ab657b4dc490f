package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

type (
	nsInput struct {
		NS string `path:"ns" doc:"the namespace's local name"`
	}
	dropInput struct {
		NS    string `path:"ns" doc:"the namespace's local name"`
		Force bool   `query:"force" doc:"delete also what this node may hold alone, shards that it has not handed over among it, and as the last admin"`
	}
	// input and output are requests and answers that are JSON alone.
	input[B any]  struct{ Body B }
	output[B any] struct{ Body B }
)

// answers serves an operation that answers with JSON.
func answers[I, B any](s *server, op huma.Operation, do func(context.Context, *I) (B, error)) {
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*output[B], error) {
		body, err := do(ctx, in)
		if err != nil {
			return nil, fail(err)
		}
		return &output[B]{body}, nil
	})
}

// does serves an operation that has no answer but that it is done.
func does[I any](s *server, op huma.Operation, do func(context.Context, *I) error) {
	op.DefaultStatus = http.StatusNoContent
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*struct{}, error) { return nil, fail(do(ctx, in)) })
}

// ofNamespace makes an operation of what takes a namespace and nothing else.
func ofNamespace[B any](s *server, do func(context.Context, *peer.Namespace) (B, error)) func(context.Context, *nsInput) (B, error) {
	return func(ctx context.Context, in *nsInput) (out B, err error) {
		ns, err := s.namespace(in.NS)
		if err != nil {
			return out, err
		}
		return do(ctx, ns)
	}
}

func (s *server) registerNamespaces() {
	answers(s, huma.Operation{
		OperationID: "namespaces", Method: http.MethodGet, Path: "/v1/namespaces", Summary: "List the namespaces of this node",
	}, func(context.Context, *struct{}) (api.Namespaces, error) {
		out := api.Namespaces{Namespaces: []api.Namespace{}}
		for _, ns := range s.Node.Namespaces() {
			out.Namespaces = append(out.Namespaces, api.NamespaceOf(ns))
		}
		return out, nil
	})
	answers(s, huma.Operation{
		OperationID: "create-namespace", Method: http.MethodPost, Path: "/v1/namespaces",
		Summary: "Make a namespace, with this node as its first admin", BodyReadTimeout: -1,
	}, s.createNamespace)
	does(s, huma.Operation{
		OperationID: "drop-namespace", Method: http.MethodDelete, Path: "/v1/ns/{ns}",
		Summary:     "Delete a namespace from this node; the other members keep theirs",
		Description: "Where this node may alone hold what was written here, or has set records aside, the answer is 409, held_here; where the other members would have no admin left, 403, denied. In a namespace that is cut into shards the other members keep theirs, too, and may lack what is only in shards of this node. So while there are other members the answer is 409, not_handed_over, until this node has handed its shards over: give it the role read, and others take them over.",
	}, func(ctx context.Context, in *dropInput) error {
		if _, err := s.namespace(in.NS); errors.Is(err, problem.ErrNoNamespace) { // else it is served, or not
			return err
		}
		if in.Force {
			return s.Node.ForceDrop(ctx, in.NS)
		}
		return s.Node.DropNamespace(ctx, in.NS)
	})
	answers(s, huma.Operation{
		OperationID: "namespace-status", Method: http.MethodGet, Path: "/v1/ns/{ns}/status",
		Summary: "A namespace, its members and what was refused; with cluster, how all members are",
	}, s.namespaceStatus)
	answers(s, huma.Operation{
		OperationID: "layout", Method: http.MethodGet, Path: "/v1/ns/{ns}/layout",
		Summary: "Which members hold each shard of a namespace",
	}, ofNamespace(s, func(_ context.Context, ns *peer.Namespace) (status.Layout, error) {
		l, err := ns.Layout()
		return l, err
	}))
	answers(s, huma.Operation{
		OperationID: "force-layout", Method: http.MethodPost, Path: "/v1/ns/{ns}/layout",
		Summary:     "Name what is left of shards that have lost a majority of their hosts",
		Description: "What only the lost hosts held is lost for good. Lapse or remove the members that are gone first.",
	}, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace) (api.Forced, error) {
		left, err := ns.ForceLayout(ctx)
		return api.Forced{Shards: left}, err
	}))
	answers(s, huma.Operation{
		OperationID: "reindex", Method: http.MethodPost, Path: "/v1/ns/{ns}/reindex",
		Summary:     "By placement writer, hand the records that this node was told to the hosts of their keys",
		Description: "For when the hosts of keys have lost their data, and hosts of large values have not. 504 (unconfirmed): a majority of a key's hosts has not taken its record; the others are handed on.",
	}, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace) (api.Reindexed, error) {
		handed, err := ns.Reindex(ctx)
		return api.Reindexed{Records: handed}, err
	}))
	answers(s, huma.Operation{
		OperationID: "invite", Method: http.MethodPost, Path: "/v1/invites",
		Summary: "Make a ticket with which nodes can join a namespace", BodyReadTimeout: -1,
	}, s.invite)
	answers(s, huma.Operation{
		OperationID: "join", Method: http.MethodPost, Path: "/v1/join",
		Summary: "Redeem a ticket, and sync with the inviter", BodyReadTimeout: -1,
	}, func(ctx context.Context, in *input[api.Ticket]) (api.Joined, error) {
		ns, report, err := s.Node.JoinSync(ctx, in.Body.Ticket, peer.SyncOptions{})
		if ns == nil {
			return api.Joined{}, err
		}
		out := api.Joined{Namespace: api.NamespaceOf(ns), Fetched: report.Applied, Bytes: report.WireBytesReceived}
		if err != nil {
			out.Problem = err.Error()
		}
		return out, nil
	})
}

func (s *server) createNamespace(ctx context.Context, in *input[api.NewNamespace]) (out api.Namespace, err error) {
	skew, err := duration("max_skew", in.Body.MaxSkew)
	if err != nil {
		return out, err
	}
	ns, err := s.Node.CreateNamespace(ctx, in.Body.Name, peer.Policy{Unsigned: in.Body.Unsigned, MaxSkew: skew, Placement: in.Body.Placement.Peer()})
	if err != nil {
		return out, err
	}
	return api.NamespaceOf(ns), nil
}

// duration reads a positive duration; empty is 0.
func duration(name, s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fail(problem.Usage("%s: %q is no duration above 0, such as 90s or 24h", name, s))
	}
	return d, nil
}

func (s *server) invite(ctx context.Context, in *input[api.Invitation]) (out api.Ticket, err error) {
	ns, err := s.namespace(in.Body.NS)
	if err != nil {
		return out, err
	}
	o := peer.InviteOptions{Uses: in.Body.Uses}
	if in.Body.Role != "" {
		if err = o.Role.UnmarshalText([]byte(in.Body.Role)); err != nil {
			return out, problem.Usage("%w", err)
		}
	}
	if o.Expires, err = duration("expires", in.Body.Expires); err == nil {
		out.Ticket, err = ns.Invite(ctx, o)
	}
	return out, err
}

// mostPatience is the longest time that members may be given to say how they are.
const mostPatience = 5 * time.Minute

type statusInput struct {
	NS      string `path:"ns" doc:"the namespace's local name"`
	Cluster bool   `query:"cluster" doc:"ask all members, at once, how they are"`
	Within  string `query:"within" default:"5s" doc:"how long the answers may take, at most 5m"`
}

// namespaceStatus describes a namespace, and on request all of its members.
func (s *server) namespaceStatus(ctx context.Context, in *statusInput) (out api.NamespaceStatus, err error) {
	ns, err := s.namespace(in.NS)
	if err != nil {
		return out, err
	}
	out = api.NamespaceStatusOf(s.Node, ns)
	if !in.Cluster {
		return out, nil
	}
	within, err := duration("within", in.Within)
	if err != nil {
		return out, err
	}
	if within > mostPatience {
		return out, problem.Usage("within %s: want at most %s", in.Within, mostPatience)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	all, err := ns.Cluster(ctx)
	if err != nil {
		return out, err
	}
	out.Cluster = api.ClusterOf(all)
	if l, err := ns.Layout(); err == nil { // none, of one shard
		out.Moves = l.Moves
		var needed []peer.ID
		out.Without, needed = ns.Majorities(all)
		for _, id := range needed {
			out.Needed = append(out.Needed, id.String())
		}
	}
	return out, nil
}

type readyInput struct {
	Synced string `query:"synced" doc:"503, too, unless a sync has proved each namespace that has other members equal to one of them within this time, such as 15m"`
}

// ready is the rule of /readyz: the daemon is not shutting down, and in no state in which it
// cannot do its work; and if the request names a time, each namespace that has other members
// was proved equal to one of them within it.
func (s *server) ready(in *readyInput) error {
	if s.Ready != nil && !s.Ready() {
		return problem.From(errors.Join(peer.ErrClosed, errors.New("the daemon is shutting down")))
	}
	if all := s.Node.Troubles(); len(all) > 0 {
		var causes []string
		for _, c := range all {
			causes = append(causes, string(c.Kind)+": "+c.Cause)
		}
		return problem.From(fmt.Errorf("%w: the daemon cannot do its work: %s", peer.ErrBusy, strings.Join(causes, "; ")))
	}
	if in.Synced == "" {
		return nil
	}
	within, err := duration("synced", in.Synced)
	if err != nil {
		return err
	}
	if names := s.Node.Unproved(within); len(names) > 0 {
		return problem.From(fmt.Errorf("%w: no sync has proved %s equal to another member within %s", peer.ErrBusy, strings.Join(names, ", "), within))
	}
	return nil
}

type (
	membersInput struct {
		NS  string `path:"ns" doc:"the namespace's local name"`
		All bool   `query:"all" doc:"former members, and changes that do not count, too"`
	}
	setMemberInput struct {
		NS   string `path:"ns" doc:"the namespace's local name"`
		ID   string `path:"id" doc:"the node's id"`
		Body api.NewRole
	}
	removeInput struct {
		NS    string `path:"ns" doc:"the namespace's local name"`
		ID    string `path:"id" doc:"the member's id"`
		Force bool   `query:"force" doc:"also where this node leaves with writes that no sync has proved another member to hold, or as the last admin; and where shards have no majority of their hosts left then"`
	}
	revokeInput struct {
		NS string `path:"ns" doc:"the namespace's local name"`
		ID string `path:"id" doc:"the ticket's id, or the ticket itself"`
	}
)

func (s *server) registerMembers() {
	answers(s, huma.Operation{
		OperationID: "members", Method: http.MethodGet, Path: "/v1/ns/{ns}/members", Summary: "List the members of a namespace",
	}, func(_ context.Context, in *membersInput) (out api.Members, err error) {
		ns, err := s.namespace(in.NS)
		if err == nil {
			out = api.MembersOf(s.Node, ns, in.All)
		}
		return out, err
	})
	does(s, huma.Operation{
		OperationID: "set-member", Method: http.MethodPut, Path: "/v1/ns/{ns}/members/{id}",
		Summary: "Give a member another role, or admit a node that has the secret already", BodyReadTimeout: -1,
	}, func(ctx context.Context, in *setMemberInput) error {
		var role peer.Role
		err := role.UnmarshalText([]byte(in.Body.Role))
		if err != nil {
			return problem.Usage("%w", err)
		}
		life, err := duration("expires", in.Body.Expires)
		if err != nil {
			return err
		}
		var until time.Time
		if life > 0 {
			until = time.Now().Add(life)
		}
		return s.change(in.NS, in.ID, func(ns *peer.Namespace, id peer.ID) error {
			if in.Body.Force {
				return ns.ForceRole(ctx, id, role, until)
			}
			return ns.SetRoleUntil(ctx, id, role, until)
		})
	})
	does(s, huma.Operation{
		OperationID: "remove-member", Method: http.MethodDelete, Path: "/v1/ns/{ns}/members/{id}",
		Summary: "End a node's membership; it keeps what it has read",
	}, func(ctx context.Context, in *removeInput) error {
		return s.change(in.NS, in.ID, func(ns *peer.Namespace, id peer.ID) error {
			if in.Force {
				return ns.ForceRemove(ctx, id)
			}
			return ns.Remove(ctx, id)
		})
	})
	answers(s, huma.Operation{
		OperationID: "invites", Method: http.MethodGet, Path: "/v1/ns/{ns}/invites",
		Summary: "List the tickets that this node has issued; those that are used up or expired for a week",
	}, ofNamespace(s, func(_ context.Context, ns *peer.Namespace) (api.Invites, error) {
		return api.Invites{Invites: ns.Invites()}, nil
	}))
	does(s, huma.Operation{
		OperationID: "revoke-invite", Method: http.MethodDelete, Path: "/v1/ns/{ns}/invites/{id}",
		Summary: "Make a ticket useless; the nodes that have joined by it stay members",
	}, func(ctx context.Context, in *revokeInput) error {
		ns, err := s.namespace(in.NS)
		if err != nil {
			return err
		}
		return ns.Revoke(ctx, in.ID)
	})
}

// change changes a member of a namespace.
func (s *server) change(name, member string, do func(ns *peer.Namespace, id peer.ID) error) error {
	ns, err := s.namespace(name)
	if err != nil {
		return err
	}
	id, err := api.ParseID(member)
	if err != nil {
		return problem.Usage("%w; syncd member ls %s lists the members", err, name)
	}
	return do(ns, id)
}
