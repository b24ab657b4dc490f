package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// Policy is what the members of a namespace agree on.
type Policy struct {
	Signed  bool   `json:"signed" doc:"each record carries its writer's signature"`
	MaxSkew string `json:"max_skew" doc:"how far a version may be ahead of the receiver's clock"`
}

// Namespace describes a namespace of this node.
type Namespace struct {
	Name    string `json:"name" doc:"local to this node"`
	ID      string `json:"id" doc:"what its members know it by: a hash of its secret"`
	Role    string `json:"role" doc:"of this node" enum:"read,write,admin"`
	Policy  Policy `json:"policy"`
	Records int64  `json:"records" doc:"deleted ones included"`
	Digest  string `json:"digest" doc:"equal sets have equal digests"`
	Members int    `json:"members"`
	// Rejected counts what peers offered and this node refused.
	Rejected int       `json:"rejected"`
	Clock    time.Time `json:"clock,omitzero" doc:"time of the newest version; absent if there has been none"`
}

// Member is a node that this node deals with in a namespace.
type Member struct {
	ID    string    `json:"id"`
	Role  string    `json:"role" enum:"read,write,admin"`
	Since time.Time `json:"since"`
	Self  bool      `json:"self,omitempty" doc:"this node"`
}

// Rejection is a record that a peer offered and this node refused.
type Rejection struct {
	Key
	Version string    `json:"version"`
	Peer    string    `json:"peer"`
	Reason  string    `json:"reason"`
	Time    time.Time `json:"time"`
}

// NamespaceStatus is a namespace with its members and refusals.
type NamespaceStatus struct {
	Namespace
	MemberList []Member    `json:"member_list"`
	Rejections []Rejection `json:"rejections"`
}

// NewNamespace asks for a namespace.
type NewNamespace struct {
	Name     string `json:"name" doc:"1 to 64 letters, digits, '.', '_' or '-'"`
	Unsigned bool   `json:"unsigned,omitempty" doc:"without signatures: its members trust one another not to forge"`
	MaxSkew  string `json:"max_skew,omitempty" doc:"how far a version may be ahead of the receiver's clock; default 5m"`
}

// Invitation asks for a ticket.
type Invitation struct {
	NS      string `json:"ns"`
	Role    string `json:"role,omitempty" doc:"read, write (default) or admin"`
	Expires string `json:"expires,omitempty" doc:"for how long the ticket can be used; default 24h"`
}

// Ticket lets one node join a namespace, once.
type Ticket struct {
	Ticket string `json:"ticket" doc:"a secret: whoever presents it first becomes the member"`
}

type (
	namespaceOutput  struct{ Body Namespace }
	namespacesOutput struct {
		Body struct {
			Namespaces []Namespace `json:"namespaces"`
		}
	}
	statusOutput struct{ Body NamespaceStatus }
	nsInput      struct {
		NS string `path:"ns" doc:"the namespace's local name"`
	}
	newNamespaceInput struct{ Body NewNamespace }
	inviteInput       struct{ Body Invitation }
	ticketBody        struct{ Body Ticket }
)

func (s *server) registerNamespaces() {
	huma.Register(s.api, huma.Operation{
		OperationID: "namespaces", Method: http.MethodGet, Path: "/v1/namespaces", Summary: "List the namespaces of this node",
	}, func(context.Context, *struct{}) (*namespacesOutput, error) {
		out := &namespacesOutput{}
		out.Body.Namespaces = []Namespace{}
		for _, ns := range s.Node.Namespaces() {
			out.Body.Namespaces = append(out.Body.Namespaces, describe(ns.Info()))
		}
		return out, nil
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "create-namespace", Method: http.MethodPost, Path: "/v1/namespaces",
		Summary: "Make a namespace, with this node as its first admin", BodyReadTimeout: -1,
	}, s.createNamespace)
	huma.Register(s.api, huma.Operation{
		OperationID: "drop-namespace", Method: http.MethodDelete, Path: "/v1/ns/{ns}", DefaultStatus: http.StatusNoContent,
		Summary: "Delete a namespace from this node; the other members keep theirs",
	}, func(ctx context.Context, in *nsInput) (*struct{}, error) {
		if _, err := s.namespace(in.NS); err != nil {
			return nil, err
		}
		return nil, fail(s.Node.DropNamespace(ctx, in.NS))
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "namespace-status", Method: http.MethodGet, Path: "/v1/ns/{ns}/status",
		Summary: "A namespace, its members and what was refused",
	}, s.namespaceStatus)
	huma.Register(s.api, huma.Operation{
		OperationID: "invite", Method: http.MethodPost, Path: "/v1/invites",
		Summary: "Make a ticket for one node to join a namespace", BodyReadTimeout: -1,
	}, s.invite)
	huma.Register(s.api, huma.Operation{
		OperationID: "join", Method: http.MethodPost, Path: "/v1/join",
		Summary: "Redeem a ticket", BodyReadTimeout: -1,
	}, func(ctx context.Context, in *ticketBody) (*namespaceOutput, error) {
		ns, err := s.Node.Join(ctx, in.Body.Ticket)
		if err != nil {
			return nil, fail(err)
		}
		return &namespaceOutput{describe(ns.Info())}, nil
	})
}

func describe(i peer.Info) Namespace {
	skew := i.Policy.MaxSkew
	if skew == 0 {
		skew = peer.DefaultMaxSkew
	}
	return Namespace{
		Name: i.Name, ID: i.ID, Role: i.Role.String(),
		Policy:  Policy{Signed: !i.Policy.Unsigned, MaxSkew: skew.String()},
		Records: i.Records, Digest: i.Digest, Members: i.Members, Rejected: i.Rejected, Clock: i.Clock,
	}
}

func (s *server) createNamespace(ctx context.Context, in *newNamespaceInput) (*namespaceOutput, error) {
	skew, err := duration("max_skew", in.Body.MaxSkew)
	if err != nil {
		return nil, err
	}
	ns, err := s.Node.CreateNamespace(ctx, in.Body.Name, peer.Policy{Unsigned: in.Body.Unsigned, MaxSkew: skew})
	if err != nil {
		return nil, fail(err)
	}
	return &namespaceOutput{describe(ns.Info())}, nil
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

func (s *server) namespaceStatus(_ context.Context, in *nsInput) (*statusOutput, error) {
	ns, err := s.namespace(in.NS)
	if err != nil {
		return nil, err
	}
	out := &statusOutput{NamespaceStatus{Namespace: describe(ns.Info()), MemberList: []Member{}, Rejections: []Rejection{}}}
	for _, m := range ns.Members() {
		out.Body.MemberList = append(out.Body.MemberList, Member{
			ID: m.ID.String(), Role: m.Role.String(), Since: m.Since, Self: m.ID == s.Node.ID(),
		})
	}
	for _, r := range ns.Rejected() {
		out.Body.Rejections = append(out.Body.Rejections, Rejection{
			Key: KeyOf(r.Key), Version: r.Version.String(), Peer: r.Peer.String(), Reason: r.Reason, Time: r.Time,
		})
	}
	return out, nil
}

func (s *server) invite(ctx context.Context, in *inviteInput) (*ticketBody, error) {
	ns, err := s.namespace(in.Body.NS)
	if err != nil {
		return nil, err
	}
	o := peer.InviteOptions{}
	if in.Body.Role != "" {
		if o.Role, err = peer.ParseRole(in.Body.Role); err != nil {
			return nil, fail(problem.Usage("%w", err))
		}
	}
	if o.Expires, err = duration("expires", in.Body.Expires); err != nil {
		return nil, err
	}
	ticket, err := ns.Invite(ctx, o)
	if err != nil {
		return nil, fail(err)
	}
	return &ticketBody{Ticket{ticket}}, nil
}
