package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

// cluster shows how the members of a namespace are, or those of all.
func (c statusCmd) cluster(ctx context.Context, a *app, daemon *client.Client) error {
	if c.Within <= 0 {
		return problem.Usage("status: --within %s: want more than 0", c.Within)
	}
	names, err := namesOf(ctx, daemon, c.NS)
	if err != nil {
		return attempt(err, "status")
	}
	out := []api.NamespaceStatus{}
	for _, name := range names {
		st, err := daemon.Cluster(ctx, name, c.Within)
		if err != nil {
			return attempt(err, "status of the members of %q", name)
		}
		out = append(out, st)
	}
	return a.answer(nil, out, func() {
		for i := range out {
			if i > 0 {
				a.printf("\n")
			}
			a.printCluster(&out[i])
		}
	})
}

func (a *app) printCluster(ns *api.NamespaceStatus) {
	t := a.table(ns.Name, "", "holds", "", "proved equal", "clock", "version", "disk")
	for i := range ns.Cluster {
		m := &ns.Cluster[i]
		state, proof := "answered in "+millis(m.TookMS), m.Proof
		switch {
		case m.Self:
			state = "this node"
		case !m.Reachable:
			state, proof = "away", m.Verified
		}
		if m.Lapsed {
			state += ", lapsed"
		}
		if m.Damaged && !slices.Contains(m.Troubles, "damaged") {
			state += ", damaged"
		}
		for _, kind := range m.Troubles {
			state += ", " + strings.ReplaceAll(kind, "_", " ")
		}
		proved := "never"
		if proof != nil {
			proved = fmt.Sprintf("%s with %s, %s", proof.At.Format(time.RFC3339), short(proof.With.String()), countOf(proof.Differences, "difference"))
		}
		if !m.Reachable {
			t.row(m.ID, state, "", "", proved)
			continue
		}
		t.row(m.ID, state, countOf(m.Records, "record"), comparison(m), proved, clockOf(m), programOf(m), diskOf(m))
	}
	t.print()
	a.printShards(ns)
	if n := len(ns.Without); n > 0 {
		a.printf("%s without a majority of hosts that answer: reads and writes at quorum fail there; see that the members run\n", countOf(n, "shard"))
	}
	if len(ns.Needed) > 0 {
		a.remark("shards would have no majority of their hosts left without: %s; member rm and lapse refuse it, and say what to do", strings.Join(ns.Needed, " "))
	}
	for i := range ns.Cluster {
		if m := &ns.Cluster[i]; !m.Reachable {
			a.remark("%s: %s", short(m.ID), oneLine(m.Problem))
		}
	}
}

// comparison says how what a member holds compares with what this node does.
func comparison(m *api.ClusterMember) string {
	text := comparisonOfShards(m)
	switch {
	case text != "":
	case m.Self:
		return ""
	case m.Digest == "": // a member that holds no shard
	case m.Equal:
		text = "equal"
	case m.Missing > 0:
		text = fmt.Sprintf("differs, %s fewer", countOf(m.Missing, "record"))
	case m.Missing < 0:
		text = fmt.Sprintf("differs, %s more", countOf(-m.Missing, "record"))
	default:
		text = "differs"
	}
	if m.Behind >= 1 {
		text += ", " + seconds(m.Behind) + " behind"
	}
	if !m.SameList {
		text += ", another list of members"
	}
	return strings.TrimPrefix(text, ", ")
}

// clockOf says how a member's clock compares with this node's, if that is sure.
func clockOf(m *api.ClusterMember) string {
	switch {
	case m.Self:
		return ""
	case m.Offset-m.OffsetErr > 1:
		return seconds(m.Offset) + " behind"
	case -m.Offset-m.OffsetErr > 1:
		return seconds(-m.Offset) + " ahead"
	}
	return "right"
}

// programOf is the version that a member tells, which may be any text.
func programOf(m *api.ClusterMember) string {
	if m.Program == "" {
		return ""
	}
	return show([]byte(m.Program))
}

func diskOf(m *api.ClusterMember) string {
	if m.Taken == 0 && m.Free == 0 {
		return ""
	}
	return fmt.Sprintf("%s, %s free", size(m.Taken), size(m.Free))
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}
