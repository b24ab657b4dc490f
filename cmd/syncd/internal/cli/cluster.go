package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer/status"
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
		st, err := client.Ask(ctx, daemon, api.GetNamespace, api.StatusParams{NSParams: api.OfNS(name), Cluster: true, Within: c.Within.String()})
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
			state += ", " + strings.ReplaceAll(string(kind), "_", " ")
		}
		proved := "never"
		if proof != nil {
			proved = fmt.Sprintf("%s with %s, %s", proof.At.Format(time.RFC3339), short(proof.With.String()), countOf(proof.Differences, "difference"))
		}
		if !m.Reachable {
			t.row(m.ID.String(), state, "", "", proved)
			continue
		}
		t.row(m.ID.String(), state, countOf(m.Records, "record"), comparison(m), proved, clockOf(m), programOf(m), diskOf(m))
	}
	t.print()
	a.printShards(ns)
	if n := len(ns.Without); n > 0 {
		a.printf("%s without a majority of hosts that answer: reads and writes at quorum fail there; see that the members run\n", countOf(n, "shard"))
	}
	if len(ns.Needed) > 0 {
		a.remark("shards would have no majority of their hosts left without: %s; member rm and lapse refuse it, and say what to do", strings.Join(texts(ns.Needed), " "))
	}
	for i := range ns.Cluster {
		if m := &ns.Cluster[i]; !m.Reachable {
			a.remark("%s: %s", short(m.ID.String()), oneLine(m.Problem))
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

// shardLines is how many shards that are not equal everywhere are shown; -o json has them all.
const shardLines = 10

// printShards says how many shards have equal copies, and of the others what each member holds.
func (a *app) printShards(ns *api.NamespaceStatus) {
	type row struct {
		id string
		*api.MemberShard
	}
	all := map[int][]row{}
	for i := range ns.Cluster {
		m := &ns.Cluster[i]
		for k := range m.Shards {
			at := m.Shards[k].Number
			all[at] = append(all[at], row{m.ID.String(), &m.Shards[k]})
		}
	}
	if len(all) == 0 {
		return
	}
	whole := map[int]int{} // how many shards have so many equal copies
	moves := map[int]*status.Move{}
	for i := range ns.Moves {
		moves[ns.Moves[i].Shard] = &ns.Moves[i]
	}
	var unlike []int
	for at, rows := range all {
		if moves[at] != nil {
			continue
		}
		if slices.ContainsFunc(rows, func(r row) bool { return !r.Equal }) {
			unlike = append(unlike, at)
			continue
		}
		whole[len(rows)]++
	}
	var parts []string
	for _, n := range slices.Sorted(maps.Keys(whole)) {
		copies := "1 copy"
		if n > 1 {
			copies = fmt.Sprintf("%d equal copies", n)
		}
		parts = append(parts, fmt.Sprintf("%d with %s", whole[n], copies))
	}
	shards := len(all)
	if p := ns.Policy.Placement; p != nil {
		shards = p.Shards
	}
	if shards > len(all) {
		parts = append(parts, fmt.Sprintf("%d without a holder that is known", shards-len(all)))
	}
	if len(moves) > 0 {
		parts = append(parts, fmt.Sprintf("%d that move", len(moves)))
	}
	if len(unlike) > 0 {
		parts = append(parts, fmt.Sprintf("%d with copies that differ or are not known", len(unlike)))
	}
	a.printf("%s: %s\n", countOf(shards, "shard"), strings.Join(parts, ", "))
	for i := range ns.Moves {
		if i == shardLines {
			a.printf("  and %d more that move\n", len(ns.Moves)-i)
			break
		}
		m := &ns.Moves[i]
		a.printf("  shard %d: %s\n", m.Shard, moveOf(m, short))
	}
	slices.Sort(unlike)
	for i, at := range unlike {
		if i == shardLines {
			a.printf("  and %d more\n", len(unlike)-i)
			return
		}
		var held []string
		for _, r := range all[at] {
			held = append(held, short(r.id)+" "+heldOf(r.MemberShard))
		}
		if all[at][0].Unheard {
			held = append(held, "a member has not said whether it holds it")
		}
		a.printf("  shard %d: %s\n", at, strings.Join(held, "; "))
	}
}

// moveOf says from which hosts a shard moves to which, and what it waits for.
func moveOf(m *status.Move, name func(string) string) string {
	list := func(ids []status.ID) string {
		var names []string
		for _, id := range ids {
			names = append(names, name(id.String()))
		}
		return strings.Join(names, " ")
	}
	waits := "not ready: " + list(m.Unready)
	if len(m.Unready) == 0 {
		waits = "all are ready, and an admin's node is to end the move"
	}
	return fmt.Sprintf("%s -> %s; %s", list(m.Old), list(m.New), waits)
}

// heldOf says what a member holds of a shard.
func heldOf(s *api.MemberShard) string {
	if s.Problem != "" {
		return "is not known"
	}
	return "holds " + countOf(s.Records, "record")
}

// comparisonOfShards says how what a member holds of its shards compares with what the others do;
// empty where it holds none.
func comparisonOfShards(m *api.ClusterMember) string {
	if len(m.Shards) == 0 {
		return ""
	}
	unlike, unknown := 0, 0
	for _, s := range m.Shards {
		switch {
		case s.Problem != "":
			unknown++
		case !s.Equal:
			unlike++
		}
	}
	var text []string
	if unlike > 0 {
		text = append(text, countOf(unlike, "shard")+" not equal with all holders")
	}
	if m.Missing > 0 {
		text = append(text, countOf(m.Missing, "record")+" fewer")
	}
	if unknown > 0 {
		text = append(text, countOf(unknown, "shard")+" not taken yet, or not known")
	}
	if len(text) == 0 {
		text = append(text, "equal")
	}
	return strings.Join(text, ", ")
}
