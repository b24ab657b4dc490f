// Package status has the words in which a node says how it is: plain data, which the methods of
// peer.Node and peer.Namespace return. A program that only keeps records needs none of it; a page
// for those who operate nodes does.
//
//	for _, t := range n.Troubles() {
//		log.Print(t.Kind, t.Cause)
//	}
//	members, err := ns.Cluster(ctx)
//
// A struct with JSON tags is in the HTTP API as it is here. There the tag doc describes a field.
package status

import (
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/syncd-io/syncd/dbadapter"
)

// ID names a node; it is peer.ID of package peer.
type ID = peer.ID

// Trouble is a state in which the node cannot do its work, or a part of it. It is of
// this node alone: no other member can cause or end one, but for Recovering.
type Trouble struct {
	Kind  TroubleKind `json:"kind" enum:"away,disk_full,no_files,store_fails,damaged,recovering"`
	Cause string      `json:"cause" doc:"what was met, and what to do"`
	Since time.Time   `json:"since"`
}

// TroubleKind names a trouble, in metrics, JSON and the answers to other members.
type TroubleKind string

// The troubles.
const (
	// Away: the database of the store cannot be reached.
	Away TroubleKind = "away"
	// DiskFull: the store refuses writes for want of room.
	DiskFull TroubleKind = "disk_full"
	// NoFiles: the system lets the process open no more files and connections.
	NoFiles TroubleKind = "no_files"
	// StoreFails: the store refuses work for another reason.
	StoreFails TroubleKind = "store_fails"
	// Damaged: damage to the store was met, and it was not shown since that it is healed.
	Damaged TroubleKind = "damaged"
	// Recovering: the node may lack what it held once, or what members held when it joined.
	// No sync has found it equal with another member since. A set of shards recovers
	// whenever a host takes it over, and others answer meanwhile. That is no trouble.
	Recovering TroubleKind = "recovering"
)

// Damage is what was met of damage to the store, by whatever has met it: a read, a
// write, a scan, a sync, an audit, a compaction, the reading through of files. It stays,
// also over restarts, until Verify has found the namespace whole, or until a repair.
type Damage struct {
	Found    []string  `json:"found" doc:"the first errors that differ, 8 of them at most"`
	Findings int64     `json:"findings" doc:"how often damage was met"`
	At       time.Time `json:"at" doc:"when it was met first"`
}

// Lost says that the node's store was damaged and made anew, and what that has cost. Members give
// back what they hold by syncs. What only this node had written is lost for good.
type Lost struct {
	Records int64     `json:"records" doc:"how many records were missing from the new store; -1: that is not known"`
	Shards  []uint32  `json:"shards,omitempty" doc:"of which records were missing, in a namespace of shards"`
	At      time.Time `json:"at" doc:"when the store was made anew"`
}

// Unserved is a namespace that could not be opened for damage to its records, or to its
// folder: calls that name it end with that error, syncs of it are denied, and the others
// are served.
type Unserved struct {
	// Name is the id where the name is not known.
	Name   string  `json:"name"`
	ID     string  `json:"id"`
	Damage *Damage `json:"damage,omitempty" doc:"what was met of damage to its records"`
	Why    string  `json:"why,omitempty" doc:"what is wrong with its folder, and what to do; absent where a repair makes it be served"`
}

// Verification is what Verify has read.
type Verification struct {
	// Records is how many records were read, tombstones included.
	Records int64 `json:"records" doc:"how many records were read, tombstones included"`
	// Files: the files of the store were read through, too. A store in memory has no
	// files, and those of a PostgreSQL server are the server's (data checksums,
	// pg_amcheck).
	Files bool `json:"files" doc:"the files of the store were read through, too; false: this kind of store has none that the node could read"`
	// Drift says what the node kept of its records and was not theirs: it was put
	// right. Empty: nothing.
	Drift string `json:"drift,omitempty" doc:"what the node kept of its records and was not theirs; it was put right"`
	// Missing are, by placement writer, values that no host gives, of records that this node holds; nil: none.
	// A repair looks for none.
	Missing *MissingValues `json:"-"`
}

// MissingValues are values that no host gives.
type MissingValues struct {
	Count int64    `json:"count"`
	Keys  [][]byte `json:"-"` // of the first 100
	// Lost: of some of them each member that may hold it has answered.
	Lost bool `json:"lost" doc:"of some of them each member that may hold it has answered"`
}

// Clock is how far this machine's clock is ahead of its peers'.
type Clock struct {
	// By is the distance to the median of the peers' clocks; less than 0 if this
	// machine's is behind. The truth lies within Error of it.
	By, Error time.Duration
	// Peers is how many clocks were measured within the last hour.
	Peers int
	// Off: that is more than time servers leave, whatever the network has added.
	Off bool
}

// Peer is an entry of the address book, or a member.
type Peer struct {
	ID         ID       `json:"id"`
	Addrs      []string `json:"addrs"`
	Connected  bool     `json:"connected"`
	Paused     bool     `json:"paused" doc:"this node takes part in no syncs with it"`
	Namespaces []string `json:"namespaces" doc:"local names of those that the peer is a member of"`
}

// Namespace describes a namespace as it is on this node.
type Namespace struct {
	Name    string  `json:"name" doc:"local to this node"`
	ID      string  `json:"id" doc:"what its members know it by: a hash of its secret and its creator"`
	Role    string  `json:"role" doc:"of this node; none: it is not a member any more" enum:"read,write,admin,none"`
	Paused  bool    `json:"paused" doc:"it takes part in no syncs on this node"`
	Shards  *Shards `json:"shards,omitempty" doc:"how the shards stand; absent where the namespace is not cut into them"`
	Records int64   `json:"records" doc:"that this node holds, deleted ones included"`
	// Digest is the sum of the digests of these records; equal sets have equal ones.
	Digest    dbadapter.Digest `json:"-"`
	Members   int              `json:"members"`
	Rejected  int              `json:"rejected" doc:"records that peers offered and this node refused"`
	SetAside  int              `json:"set_aside" doc:"records that this node took out of the set and keeps"`
	Conflicts int              `json:"conflicts" doc:"records kept because one whose writer had not seen them took their place"`
	Clock     time.Time        `json:"clock,omitzero" doc:"time of the newest version; absent if no record was written yet"`
	// Ahead, if not 0, is by how much the next version would be further ahead of this
	// machine's clock than the policy allows. Writes are then refused.
	Ahead time.Duration `json:"-"`
	// Verified is kept over restarts. Of several shards it is that of the one of which this is longest ago.
	Verified time.Time    `json:"verified,omitzero" doc:"when a sync of everything has last proved the records equal to another member's; absent if none has"`
	Silent   []Holding    `json:"silent" doc:"members that hold the collection of deleted records back and were not heard for more than 24 hours"`
	Declined []DeclinedBy `json:"declined" doc:"peers that decline what this node wrote, since its times are ahead of their clocks: is this machine's clock right?"`
	Lost     *Lost        `json:"lost,omitempty" doc:"what damage to the store has cost, until that is accepted; absent if nothing"`
	Damage   *Damage      `json:"damage,omitempty" doc:"what was met of damage to the store, until a verification or a repair shows that it is healed; absent if nothing"`
	Removed  *Removal     `json:"removed,omitempty" doc:"how the membership of this node ended; absent while it is a member"`
	Twins    []Twin       `json:"twins" doc:"members whose identity two nodes run with: this node syncs with neither"`
	Twinned  *Twinned     `json:"twinned,omitempty" doc:"a peer has found that another node runs with this one's identity; absent while there is no such word"`
}

// DeclinedBy says how many of this node's records a peer declines for their time.
type DeclinedBy struct {
	Peer    ID  `json:"peer"`
	Records int `json:"records" doc:"of this node; their times are ahead of the peer's clock"`
}
