package httpapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

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
