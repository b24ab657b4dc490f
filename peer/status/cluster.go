package status

import (
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// ClusterMember is how a member of a namespace is.
type ClusterMember struct {
	ID   ID     `json:"id"`
	Role string `json:"role" enum:"read,write,admin"`
	// Lapsed: the others do not wait for it before they forget what was deleted.
	Lapsed bool `json:"lapsed,omitempty" doc:"the collection of deleted records does not wait for it"`
	// Self: it is this node. What follows up to Equal is its own word then.
	Self bool `json:"self,omitempty" doc:"this node"`
	// Problem is why the member did not answer; nil if it did. Then what follows is zero but
	// for Verified.
	Problem error `json:"-"`
	// Took is how long the answer took, with the dial where there was no connection.
	Took time.Duration `json:"-"`
	// Records and Digest are of the set that it holds; equal sets have equal ones. Where the
	// namespace is cut into shards, Records is the sum of those of its shards, and Digest zero.
	Records int64            `json:"records" doc:"that it holds, deleted ones included"`
	Digest  dbadapter.Digest `json:"-"`
	// Newest is the time of the newest version that it has ever held; zero before the first.
	Newest time.Time `json:"newest,omitzero" doc:"time of its newest version"`
	// Proof is the last sync of everything that has proved it equal to any other member;
	// nil before the first.
	Proof *Proof `json:"proof,omitempty" doc:"the last sync of everything that has proved it equal to any member, by its word; absent if none has"`
	// Damaged: it has met damage to its store.
	Damaged bool `json:"damaged,omitempty" doc:"it has met damage to its store"`
	// Troubles are the states in which it cannot do its work.
	Troubles []TroubleKind `json:"troubles,omitempty" doc:"states in which it cannot do its work, as in the status of a node"`
	// Program is the version of its program; empty if that is not known.
	Program string `json:"program,omitempty" doc:"version of its program"`
	// Taken and Free are what its files take, and what is free on their disk, in bytes.
	// Both are 0 where that is not known.
	Taken int64 `json:"storage_bytes,omitempty" doc:"what its files take on its disk; absent if it does not tell"`
	Free  int64 `json:"storage_free_bytes,omitempty" doc:"what is free on that disk"`
	// SameList: its list of members is that of this node.
	SameList bool `json:"same_list" doc:"its list of members is that of this node"`
	// Equal: it holds what this node holds. Missing is how many records fewer it holds, less
	// than 0 if it holds more. Behind is by how much its newest version is older than this
	// node's, 0 if it is not. In a namespace that is cut into shards they compare it, for
	// each shard that it holds, with the other members that hold the shard.
	Equal   bool          `json:"equal" doc:"it holds what this node holds; where the namespace is cut into shards: of each shard that it holds, what all hosts of the shard do"`
	Missing int64         `json:"missing" doc:"how many records fewer than this node it holds, less than 0 if more; where the namespace is cut into shards: than the other holders of its shards"`
	Behind  time.Duration `json:"-"`
	// Offset is by how much this node's clock is ahead of its, give or take OffsetError.
	Offset      time.Duration `json:"-"`
	OffsetError time.Duration `json:"-"`
	// Verified is the last sync of everything that has proved this node equal to it, as this
	// node has noted. It is nil before the first, and for this node.
	Verified *Proof `json:"verified,omitempty" doc:"the last one that has proved this node equal to it, as this node has noted; absent if none has"`
	// Shards are those that it holds, and those whose host it is, by their numbers. It is nil where the namespace
	// is not cut into shards.
	Shards []MemberShard `json:"-"`
}

// MemberShard is how a member holds a shard, of a namespace that is cut into shards.
type MemberShard struct {
	Number int `json:"number"`
	// Host: the layout names the member; otherwise it holds the shard still.
	Host bool `json:"host" doc:"the layout names the member; else it holds the shard until it has handed over"`
	// Problem is why it is not known what it holds: it has not taken the shard yet, or does
	// not answer. Then what follows is zero.
	Problem error `json:"-"`
	// Records and Digest are of what it holds; equal sets have equal ones.
	Records int64            `json:"records" doc:"that it holds, deleted ones included"`
	Digest  dbadapter.Digest `json:"-"`
	// Unheard: a further member may hold the shard, and has not said yet that it does not.
	Unheard bool `json:"unheard,omitempty" doc:"a further member may hold the shard, and has not said yet that it does not"`
	// Copies is how many members were found to hold what it holds, itself included. Equal says that all that
	// hold the shard, may hold it or are its hosts do so. Missing is how many records fewer it holds than
	// the one that holds most.
	Copies  int   `json:"copies" doc:"how many members were found to hold what it holds, itself included"`
	Equal   bool  `json:"equal" doc:"so do all that hold the shard, may hold it or are its hosts"`
	Missing int64 `json:"missing" doc:"how many records fewer it holds than the one that holds most"`
}
