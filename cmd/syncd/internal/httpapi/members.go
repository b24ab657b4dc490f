package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

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
