package api

import (
	"time"

	"github.com/syncd-io/syncd/peer"
)

// Collection is how far the collection of deleted and expired records is.
type Collection struct {
	Waiting    int64     `json:"waiting" doc:"tombstones and records that expire, at most"`
	Counted    bool      `json:"counted" doc:"they were counted since the node was started"`
	Oldest     time.Time `json:"oldest,omitzero" doc:"from when on the first of them may go"`
	Mark       time.Time `json:"mark,omitzero" doc:"up to when all members hold what was written; absent if it is not known yet"`
	Floor      time.Time `json:"floor,omitzero" doc:"up to when this node has collected: what is not later and not held is not let in"`
	Recovering bool      `json:"recovering,omitempty" doc:"the node may lack what it held once, and collects nothing until it was found equal with another member"`
	Holding    []Holding `json:"holding" doc:"the members that hold back what waits"`
	Swept      *Swept    `json:"swept,omitempty" doc:"what a collection just did; absent from a dry run"`
}

// Holding is a member that holds the collection back.
type Holding struct {
	Member string    `json:"member"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero" doc:"up to when its records are known; absent: not since the list of members changed"`
	Heard  time.Time `json:"heard,omitzero" doc:"when this node last synced with it; absent: not since it was started"`
	Silent bool      `json:"silent,omitempty" doc:"it has not been heard for more than 24 hours; an admin can let it lapse"`
}

// Swept is what a collection did.
type Swept struct {
	Collected int64 `json:"collected" doc:"tombstones and expired records that are gone"`
	Adopted   int64 `json:"adopted" doc:"records of a writer that lost its right, written again by this node"`
	SetAside  int64 `json:"set_aside" doc:"such records that this node may not write"`
}

// CollectionOf describes a collection; swept is nil for a dry run.
func CollectionOf(c peer.Collection, swept *peer.Swept) Collection {
	out := Collection{
		Waiting: c.Waiting, Counted: c.Counted, Oldest: c.Oldest, Mark: c.Mark, Floor: c.Floor, Recovering: c.Recovering,
	}
	out.Holding = holdingsOf(c.Holding)
	if swept != nil {
		out.Swept = (*Swept)(swept)
	}
	return out
}

func holdingsOf(list []peer.Holding) []Holding {
	out := []Holding{}
	for _, h := range list {
		out = append(out, Holding{h.Member.String(), h.Reason, h.Since, h.Heard, h.Silent})
	}
	return out
}
