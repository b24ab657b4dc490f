package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/peer/status"
)

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
			all[at] = append(all[at], row{m.ID, &m.Shards[k]})
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
