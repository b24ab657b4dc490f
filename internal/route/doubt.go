package route

import (
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
)

// Why a read is not sure is told to a person, who may have a host to start, or only to wait.

// doubt says of each node why its answer is not enough. complete: each candidate has answered.
func (g *Get) doubt(found *dbadapter.Record, complete bool) string {
	var all []string
	if here := g.options.Here; here != nil {
		all = append(all, "this node "+here.lacks(found, complete))
	}
	for _, r := range g.requests {
		said := "has not answered in time"
		switch {
		case r.answer != nil:
			said = r.answer.lacks(found, complete)
		case r.err != nil:
			said = "has not answered: " + r.err.Error()
		}
		all = append(all, r.peer.String()+" "+said)
	}
	for _, c := range g.waiting {
		all = append(all, c.ID.String()+" was not asked")
	}
	if g.options.Unheard {
		all = append(all, "another member has not said whether it holds the shard")
	}
	if len(all) == 0 {
		return "no host of the shard is known"
	}
	return strings.Join(all, "; ")
}

// lacks is what an answer lacks to be sure of what was found.
func (a *Answer) lacks(found *dbadapter.Record, complete bool) string {
	switch {
	case !a.Host:
		return "is no host of the shard by its list of members"
	case !a.Settled:
		return "has not got all of the shard yet"
	case a.OtherList:
		return "has another list of members"
	case !a.Current && !complete:
		return "was not found equal lately with each other node that may hold the shard"
	case passes(a, found):
		return "holds nothing, and has collected deletions of as late as the record"
	case found != nil && a.Record == nil:
		return "does not hold the record"
	case found != nil && a.Record.Compare(found) != 0:
		return "holds an older record"
	}
	if found != nil {
		return "holds the record, of which another one may have collected the deletion"
	}
	return "holds nothing, and no second host has said so"
}
