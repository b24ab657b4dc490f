package status

import (
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// ClusterMember is how a member of a namespace is.
type ClusterMember struct {
	ID   ID
	Role string
	// Lapsed: the others do not wait for it before they forget what was deleted.
	Lapsed bool
	// Self: it is this node. What follows up to Equal is its own word then.
	Self bool
	// Problem is why the member did not answer; nil if it did. Then what follows is zero but
	// for Verified.
	Problem error
	// Took is how long the answer took, with the dial where there was no connection.
	Took time.Duration
	// Records and Digest are of the set that it holds; equal sets have equal ones. Where the
	// namespace is cut into shards, Records is the sum of those of its shards, and Digest zero.
	Records int64
	Digest  dbadapter.Digest
	// Newest is the time of the newest version that it has ever held; zero before the first.
	Newest time.Time
	// Proof is the last sync of everything that has proved it equal to any other member;
	// nil before the first.
	Proof *Proof
	// Damaged: it has met damage to its store.
	Damaged bool
	// Troubles are the states in which it cannot do its work.
	Troubles []TroubleKind
	// Program is the version of its program; empty if that is not known.
	Program string
	// Taken and Free are what its files take, and what is free on their disk, in bytes.
	// Both are 0 where that is not known.
	Taken, Free int64
	// SameList: its list of members is that of this node.
	SameList bool
	// Equal: it holds what this node holds. Missing is how many records fewer it holds, less
	// than 0 if it holds more. Behind is by how much its newest version is older than this
	// node's, 0 if it is not. In a namespace that is cut into shards they compare it, for
	// each shard that it holds, with the other members that hold the shard.
	Equal   bool
	Missing int64
	Behind  time.Duration
	// Offset is by how much this node's clock is ahead of its, give or take OffsetError.
	Offset, OffsetError time.Duration
	// Verified is the last sync of everything that has proved this node equal to it, as this
	// node has noted. It is nil before the first, and for this node.
	Verified *Proof
	// Shards are those that it holds, and those whose host it is, by their numbers. It is nil where the namespace
	// is not cut into shards.
	Shards []MemberShard
}

// MemberShard is how a member holds a shard, of a namespace that is cut into shards.
type MemberShard struct {
	Number int
	// Host: the layout names the member; otherwise it holds the shard still.
	Host bool
	// Problem is why it is not known what it holds: it has not taken the shard yet, or does
	// not answer. Then what follows is zero.
	Problem error
	// Records and Digest are of what it holds; equal sets have equal ones.
	Records int64
	Digest  dbadapter.Digest
	// Unheard: a further member may hold the shard, and has not said yet that it does not.
	Unheard bool
	// Copies is how many members were found to hold what it holds, itself included. Equal says that all that
	// hold the shard, may hold it or are its hosts do so. Missing is how many records fewer it holds than
	// the one that holds most.
	Copies  int
	Equal   bool
	Missing int64
}
