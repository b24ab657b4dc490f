package api

import (
	"time"

	"github.com/syncd-io/syncd/peer/status"
)

// ClusterMember is how a member of a namespace is.
type ClusterMember struct {
	ID        string        `json:"id"`
	Role      string        `json:"role" enum:"read,write,admin"`
	Self      bool          `json:"self,omitempty" doc:"this node"`
	Lapsed    bool          `json:"lapsed,omitempty" doc:"the collection of deleted records does not wait for it"`
	Reachable bool          `json:"reachable" doc:"it has answered; else there is a problem, and what is known here: verified"`
	Problem   string        `json:"problem,omitempty" doc:"why it has not answered"`
	TookMS    float64       `json:"took_ms" doc:"how long the answer took, with the dial where there was no connection"`
	Equal     bool          `json:"equal" doc:"it holds what this node holds; where the namespace is cut into shards: of each shard that it holds, what all hosts of the shard do"`
	Records   int64         `json:"records" doc:"that it holds, deleted ones included"`
	Digest    string        `json:"digest,omitempty" doc:"of these; absent where the namespace is cut into shards"`
	Missing   int64         `json:"missing" doc:"how many records fewer than this node it holds, less than 0 if more; where the namespace is cut into shards: than the other holders of its shards"`
	Behind    float64       `json:"behind_seconds" doc:"by how much its newest version is older than this node's; 0 if it is not, or both hold the same"`
	Newest    time.Time     `json:"newest,omitzero" doc:"time of its newest version"`
	SameList  bool          `json:"same_list" doc:"its list of members is that of this node"`
	Proof     *status.Proof `json:"proof,omitempty" doc:"the last sync of everything that has proved it equal to any member, by its word; absent if none has"`
	Verified  *status.Proof `json:"verified,omitempty" doc:"the last one that has proved this node equal to it, as this node has noted; absent if none has"`
	Offset    float64       `json:"clock_offset_seconds" doc:"by how much this node's clock is ahead of its"`
	OffsetErr float64       `json:"clock_error_seconds" doc:"the truth lies within this of the offset"`
	Program   string        `json:"program,omitempty" doc:"version of its program"`
	Taken     int64         `json:"storage_bytes,omitempty" doc:"what its files take on its disk; absent if it does not tell"`
	Free      int64         `json:"storage_free_bytes,omitempty" doc:"what is free on that disk"`
	Damaged   bool          `json:"damaged,omitempty" doc:"it has met damage to its store"`

	Troubles []string `json:"troubles,omitempty" doc:"states in which it cannot do its work, as in the status of a node"`

	Shards []MemberShard `json:"shards,omitempty" doc:"that it holds, or is a host of, where the namespace is cut into shards"`
}

// MemberShard is how a member holds a shard.
type MemberShard struct {
	Number  int    `json:"number"`
	Host    bool   `json:"host" doc:"the layout names the member; else it holds the shard until it has handed over"`
	Problem string `json:"problem,omitempty" doc:"why it is not known what it holds"`
	Unheard bool   `json:"unheard,omitempty" doc:"a further member may hold the shard, and has not said yet that it does not"`
	Records int64  `json:"records" doc:"that it holds, deleted ones included"`
	Digest  string `json:"digest,omitempty" doc:"of these"`
	Copies  int    `json:"copies" doc:"how many members were found to hold what it holds, itself included"`
	Equal   bool   `json:"equal" doc:"so do all that hold the shard, may hold it or are its hosts"`
	Missing int64  `json:"missing" doc:"how many records fewer it holds than the one that holds most"`
}

// ClusterOf is the JSON form of what the members have answered.
func ClusterOf(all []status.ClusterMember) []ClusterMember {
	out := make([]ClusterMember, 0, len(all))
	for i := range all {
		m := &all[i]
		one := ClusterMember{ID: m.ID.String(), Role: m.Role, Self: m.Self, Lapsed: m.Lapsed, Reachable: m.Problem == nil, Verified: m.Verified}
		for _, sh := range m.Shards {
			one.Shards = append(one.Shards, memberShardOf(sh))
		}
		if m.Problem != nil {
			one.Problem = m.Problem.Error()
		} else {
			one.TookMS = float64(m.Took) / float64(time.Millisecond)
			one.Equal, one.Records, one.Missing, one.Behind, one.Newest = m.Equal, m.Records, m.Missing, m.Behind.Seconds(), m.Newest
			if m.Shards == nil {
				one.Digest = m.Digest.String()
			}
			one.SameList, one.Proof, one.Offset, one.OffsetErr = m.SameList, m.Proof, m.Offset.Seconds(), m.OffsetError.Seconds()
			for _, kind := range m.Troubles {
				one.Troubles = append(one.Troubles, string(kind))
			}
			one.Program, one.Taken, one.Free, one.Damaged = m.Program, m.Taken, m.Free, m.Damaged
		}
		out = append(out, one)
	}
	return out
}

func memberShardOf(s status.MemberShard) MemberShard {
	one := MemberShard{Number: s.Number, Host: s.Host, Records: s.Records, Copies: s.Copies, Equal: s.Equal, Missing: s.Missing, Unheard: s.Unheard}
	if s.Problem != nil {
		one.Problem = s.Problem.Error()
	} else {
		one.Digest = s.Digest.String()
	}
	return one
}
