package api

import (
	"iter"
	"time"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// Peers are the address book, and the members of all namespaces.
type Peers struct {
	Peers []status.Peer `json:"peers"`
}

// list makes nil an empty list, which is what JSON readers expect.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// NewPeer is an address to remember.
type NewPeer struct {
	Addr string `json:"addr" doc:"a multiaddr that ends in /p2p/ and the peer's id"`
}

// PeerID names a peer.
type PeerID struct {
	ID string `json:"id"`
}

// Status describes the node.
type Status struct {
	ID         string            `json:"id"`
	Addrs      []string          `json:"addrs" doc:"under which it can be dialled"`
	Started    time.Time         `json:"started"`
	Syncs      int               `json:"syncs" doc:"running now"`
	Namespaces []Namespace       `json:"namespaces"`
	Peers      []status.Peer     `json:"peers"`
	Unserved   []status.Unserved `json:"unserved" doc:"namespaces that could not be opened for damage to their records, which a repair makes be served again, or to their folders"`
	Damage     *status.Damage    `json:"damage,omitempty" doc:"what was met of damage to the store's files that is no namespace's alone, until all namespaces were verified since, or a repair; absent if nothing"`
	Troubles   []status.Trouble  `json:"troubles" doc:"states in which the node cannot do its work, some seconds old at most; /readyz answers 503 while there is one"`
	Clock      *Clock            `json:"clock,omitempty" doc:"how this machine's clock compares with its peers'; absent if no clock was measured in the last hour"`
}

// Clock compares this machine's clock with those of its peers.
type Clock struct {
	Offset float64 `json:"offset_seconds" doc:"how far it is ahead of the median of the peers' clocks; less than 0 if it is behind"`
	Error  float64 `json:"error_seconds" doc:"the truth lies within this of the offset"`
	Peers  int     `json:"peers" doc:"that were measured"`
	Off    bool    `json:"off" doc:"the clocks differ by more than a second, whatever the network has added"`
}

// StatusOf describes a node as it is now.
func StatusOf(n *peer.Node) Status {
	out := Status{
		ID: n.ID().String(), Addrs: list(n.Addrs()), Started: n.Started(), Syncs: n.Syncing(),
		Namespaces: []Namespace{}, Peers: n.Peers(),
		Damage: n.Damage(), Unserved: n.Unserved(), Troubles: n.Troubles(),
	}
	if o, ok := n.ClockOffset(); ok {
		out.Clock = &Clock{o.By.Seconds(), o.Error.Seconds(), o.Peers, o.Off}
	}
	for _, ns := range n.Namespaces() {
		out.Namespaces = append(out.Namespaces, NamespaceOf(ns))
	}
	return out
}

// Program describes a program's build.
type Program struct {
	Version  string `json:"version" doc:"of the module"`
	Revision string `json:"revision,omitempty" doc:"of the source"`
	Modified bool   `json:"modified,omitempty" doc:"the source had been changed since the revision"`
	Go       string `json:"go" doc:"version of the compiler"`
	Platform string `json:"platform" doc:"operating system and architecture"`
}

// NewBackup asks for a backup.
type NewBackup struct {
	Dir  string `json:"dir" minLength:"1" doc:"absolute path of a folder on the daemon's machine: empty, absent, or with this node's backups"`
	Full bool   `json:"full,omitempty" doc:"make one that needs no backup before it"`
}

// Verification is what a verification has read.
type Verification struct {
	status.Verification
	Lost    *status.Lost `json:"lost,omitempty" doc:"what damage to the store has cost, until that is accepted; absent if nothing"`
	Missing *Missing     `json:"missing,omitempty" doc:"values that no host gives, of records that the node holds, by placement writer; absent if there are none"`
}

// Missing are values that no host gives.
type Missing struct {
	status.MissingValues
	Keys []Key `json:"keys" doc:"of 100 of them at most"`
}

// VerificationOf describes a verification.
func VerificationOf(v status.Verification, lost *status.Lost) Verification {
	out := Verification{Verification: v, Lost: lost}
	if m := v.Missing; m != nil {
		out.Missing = &Missing{MissingValues: *m}
		for _, key := range m.Keys {
			out.Missing.Keys = append(out.Missing.Keys, KeyOf(key))
		}
	}
	return out
}

// FutureRecord is a record whose version is further ahead of the node's clock
// than the namespace allows.
type FutureRecord struct {
	Key
	Version string    `json:"version"`
	Time    time.Time `json:"time" doc:"of the version"`
	Own     bool      `json:"own" doc:"this node wrote it, or imported it with its date: a restamp gives it a version of now"`
}

// MaxFuture is how many records from the future are listed; all are counted.
const MaxFuture = 1000

// Future is what a namespace holds that is from the future.
type Future struct {
	Now     time.Time      `json:"now" doc:"what the node's clock says"`
	Own     int            `json:"own" doc:"records of this node"`
	Others  int            `json:"others" doc:"records of other members: these have to restamp them"`
	Records []FutureRecord `json:"records" doc:"the first 1,000 of them, by key"`
}

// Restamped is what a restamp did, and what it left.
type Restamped struct {
	Restamped int    `json:"restamped" doc:"records that have a version of now"`
	Left      Future `json:"left" doc:"what is from the future still"`
}

// FutureOf lists and counts records from the future.
func FutureOf(now time.Time, all iter.Seq2[status.FutureRecord, error]) (Future, error) {
	f := Future{Now: now.UTC(), Records: []FutureRecord{}}
	for r, err := range all {
		if err != nil {
			return f, err
		}
		if r.Own {
			f.Own++
		} else {
			f.Others++
		}
		if len(f.Records) < MaxFuture {
			f.Records = append(f.Records, FutureRecord{KeyOf(r.Key), r.Version.String(), r.Version.Clock.Time(), r.Own})
		}
	}
	return f, nil
}

// Collection is how far the collection of deleted and expired records is.
type Collection struct {
	status.Collection
	Swept *status.Swept `json:"swept,omitempty" doc:"what a collection just did; absent from a dry run"`
}
