package httpapi

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// output is an answer that is JSON alone.
type output[B any] struct{ Body B }

// operation describes a route.
func operation[In, Out any](r api.Route[In, Out]) huma.Operation {
	op := huma.Operation{OperationID: r.ID, BodyReadTimeout: -1} // patientBody bounds its pauses
	op.Method, op.Path, _ = strings.Cut(r.Pattern, " ")
	op.Summary, op.Description, _ = strings.Cut(r.Text, "\n")
	return op
}

// serve serves an operation that takes or answers more than JSON.
func serve[In, Out any](s *server, op huma.Operation, do func(context.Context, *In) (*Out, error)) {
	huma.Register(s.api, op, func(ctx context.Context, in *In) (*Out, error) {
		out, err := do(ctx, in)
		return out, fail(err)
	})
}

// answers serves a route that answers with JSON, or by its status alone.
func answers[In, Out any](s *server, r api.Route[In, Out], do func(context.Context, *In) (Out, error)) {
	if reflect.TypeFor[Out]() == reflect.TypeFor[api.None]() {
		serve(s, operation(r), func(ctx context.Context, in *In) (*struct{}, error) {
			_, err := do(ctx, in)
			return nil, err
		})
		return
	}
	serve(s, operation(r), func(ctx context.Context, in *In) (*output[Out], error) {
		body, err := do(ctx, in)
		return &output[Out]{body}, err
	})
}

// ofNamespace finds the namespace that a request is about, and bounds for how long it waits for others.
func ofNamespace[In interface{ Namespace() string }, Out any](s *server, do func(context.Context, *peer.Namespace, *In) (Out, error)) func(context.Context, *In) (Out, error) {
	return func(ctx context.Context, in *In) (out Out, err error) {
		ns, err := s.namespace((*in).Namespace())
		if err != nil {
			return out, err
		}
		timeout := ""
		if stated, ok := any(in).(interface{ Patience() string }); ok {
			timeout = stated.Patience()
		}
		ctx, cancel, err := within(ctx, timeout)
		if err != nil {
			return out, err
		}
		defer cancel()
		return do(ctx, ns, in)
	}
}

// within bounds for how long a request waits for others, by the time that it states, if it states one.
func within(ctx context.Context, timeout string) (context.Context, context.CancelFunc, error) {
	d, err := duration("timeout", timeout)
	if d == 0 {
		return ctx, func() {}, err
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	return ctx, cancel, nil
}

func (s *server) registerNamespaces() {
	answers(s, api.ListNamespaces, func(context.Context, *api.None) (api.Namespaces, error) {
		out := api.Namespaces{Namespaces: []api.Namespace{}}
		for _, ns := range s.Node.Namespaces() {
			out.Namespaces = append(out.Namespaces, api.NamespaceOf(ns))
		}
		return out, nil
	})
	answers(s, api.CreateNamespace, s.createNamespace)
	answers(s, api.DropNamespace, func(ctx context.Context, in *api.DropParams) (none api.None, err error) {
		if _, err := s.namespace(in.NS); errors.Is(err, problem.ErrNoNamespace) { // else it is served, or not
			return none, err
		}
		if in.Force {
			return none, s.Node.ForceDrop(ctx, in.NS)
		}
		return none, s.Node.DropNamespace(ctx, in.NS)
	})
	answers(s, api.GetNamespace, ofNamespace(s, s.namespaceStatus))
	answers(s, api.GetLayout, ofNamespace(s, func(_ context.Context, ns *peer.Namespace, _ *api.NSParams) (status.Layout, error) {
		return ns.Layout()
	}))
	answers(s, api.ForceLayout, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, _ *api.NSParams) (api.Forced, error) {
		left, err := ns.ForceLayout(ctx)
		return api.Forced{Shards: left}, err
	}))
	answers(s, api.Reindex, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, _ *api.NSParams) (api.Reindexed, error) {
		handed, err := ns.Reindex(ctx)
		return api.Reindexed{Records: handed}, err
	}))
	answers(s, api.MakeTicket, s.invite)
	answers(s, api.Join, func(ctx context.Context, in *api.WithBody[api.Ticket]) (api.Joined, error) {
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

func (s *server) createNamespace(ctx context.Context, in *api.WithBody[api.NewNamespace]) (out api.Namespace, err error) {
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

func (s *server) invite(ctx context.Context, in *api.WithBody[api.Invitation]) (out api.Ticket, err error) {
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

// namespaceStatus describes a namespace, and on request all of its members.
func (s *server) namespaceStatus(ctx context.Context, ns *peer.Namespace, in *api.StatusParams) (out api.NamespaceStatus, err error) {
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
		out.Without, out.Needed = ns.Majorities(all)
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
	select {
	case <-s.Ending:
		return problem.From(errors.Join(peer.ErrClosed, errors.New("the daemon is shutting down")))
	default:
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

func (s *server) registerMembers() {
	answers(s, api.ListMembers, ofNamespace(s, func(_ context.Context, ns *peer.Namespace, in *api.MembersParams) (api.Members, error) {
		return api.MembersOf(s.Node, ns, in.All), nil
	}))
	answers(s, api.SetMember, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, in *api.SetMemberParams) (none api.None, err error) {
		var role peer.Role
		if err := role.UnmarshalText([]byte(in.Body.Role)); err != nil {
			return none, problem.Usage("%w", err)
		}
		life, err := duration("expires", in.Body.Expires)
		if err != nil {
			return none, err
		}
		var until time.Time
		if life > 0 {
			until = time.Now().Add(life)
		}
		id, err := member(in.NS, in.ID)
		switch {
		case err != nil:
			return none, err
		case in.Body.Force:
			return none, ns.ForceRole(ctx, id, role, until)
		}
		return none, ns.SetRoleUntil(ctx, id, role, until)
	}))
	answers(s, api.RemoveMember, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, in *api.RemoveParams) (none api.None, err error) {
		id, err := member(in.NS, in.ID)
		switch {
		case err != nil:
			return none, err
		case in.Force:
			return none, ns.ForceRemove(ctx, id)
		}
		return none, ns.Remove(ctx, id)
	}))
	answers(s, api.Lapse, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, in *api.LapseParams) (none api.None, err error) {
		id, err := member(in.NS, in.ID)
		switch {
		case err != nil:
			return none, err
		case in.Force:
			return none, ns.ForceLapse(ctx, id)
		}
		return none, ns.Lapse(ctx, id)
	}))
	answers(s, api.ListInvites, ofNamespace(s, func(_ context.Context, ns *peer.Namespace, _ *api.NSParams) (api.Invites, error) {
		return api.Invites{Invites: ns.Invites()}, nil
	}))
	answers(s, api.Revoke, ofNamespace(s, func(ctx context.Context, ns *peer.Namespace, in *api.RevokeParams) (none api.None, err error) {
		return none, ns.Revoke(ctx, in.ID)
	}))
}

// member is the id of a member of a namespace.
func member(name, text string) (peer.ID, error) {
	id, err := api.ParseID(text)
	if err != nil {
		return "", problem.Usage("%w; syncd member ls %s lists the members", err, name)
	}
	return id, nil
}
