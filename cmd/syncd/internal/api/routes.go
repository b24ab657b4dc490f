package api

import (
	"net/url"
	"strings"
	"time"

	"github.com/syncd-io/syncd/peer/status"
)

// Route is a row of the API. The daemon serves it, and clients ask by it. In are its parameters, with the
// tags of package huma, and its Body; Out is the JSON that answers.
type Route[In, Out any] struct {
	ID string
	// Pattern is the method and the path.
	Pattern string
	// Text describes it. Its first line is the summary.
	Text string
}

// None is what a route without parameters, or without an answer, has.
type None struct{}

// WithBody are parameters that are JSON alone.
type WithBody[B any] struct{ Body B }

// The routes of a node.
var (
	GetVersion      = Route[None, Program]{"version", "GET /v1/version", "The daemon's version"}
	GetStatus       = Route[None, Status]{"status", "GET /v1/status", "The node, its namespaces and its peers"}
	ListNamespaces  = Route[None, Namespaces]{"namespaces", "GET /v1/namespaces", "List the namespaces of this node"}
	CreateNamespace = Route[WithBody[NewNamespace], Namespace]{"create-namespace", "POST /v1/namespaces", "Make a namespace, with this node as its first admin"}
	MakeTicket      = Route[WithBody[Invitation], Ticket]{"invite", "POST /v1/invites", "Make a ticket with which nodes can join a namespace"}
	Join            = Route[WithBody[Ticket], Joined]{"join", "POST /v1/join", "Redeem a ticket, and sync with the inviter"}
	ListPeers       = Route[None, Peers]{"peers", "GET /v1/peers", "The address book, and the members of all namespaces"}
	AddPeer         = Route[WithBody[NewPeer], PeerID]{"add-peer", "POST /v1/peers", "Remember a peer's address; this gives it no rights"}
	RemovePeer      = Route[PeerParams, None]{"remove-peer", "DELETE /v1/peers/{id}", "Forget a peer until it is added again; where it is a member, it stays one"}
	PausePeer       = Route[PeerParams, None]{"pause-peer", "POST /v1/peers/{id}/pause", "End the syncs with a peer in all namespaces, also after a restart"}
	ResumePeer      = Route[PeerParams, None]{"resume-peer", "POST /v1/peers/{id}/resume", "Let this node sync with a peer again"}
	RunSync         = Route[WithBody[SyncRequest], Report]{"sync", "POST /v1/sync", "Make this node's records and a peer's equal"}
	ListSyncs       = Route[None, Syncs]{"syncs", "GET /v1/syncs", "The last syncs, the latest first, and those that callers wait for"}
)

// The routes of a namespace.
var (
	DropNamespace = Route[DropParams, None]{"drop-namespace", "DELETE /v1/ns/{ns}", `Delete a namespace from this node; the other members keep theirs
Where this node may alone hold what was written here, or has set records aside, the answer is 409, held_here; where the other members would have no admin left, 403, denied. In a namespace that is cut into shards the other members keep theirs, too, and may lack what is only in shards of this node. So while there are other members the answer is 409, not_handed_over, until this node has handed its shards over: give it the role read, and others take them over.`}
	GetNamespace = Route[StatusParams, NamespaceStatus]{"namespace-status", "GET /v1/ns/{ns}/status", "A namespace, its members and what was refused; with cluster, how all members are"}
	GetLayout    = Route[NSParams, status.Layout]{"layout", "GET /v1/ns/{ns}/layout", "Which members hold each shard of a namespace"}
	ForceLayout  = Route[NSParams, Forced]{"force-layout", "POST /v1/ns/{ns}/layout", `Name what is left of shards that have lost a majority of their hosts
What only the lost hosts held is lost for good. Lapse or remove the members that are gone first.`}
	Reindex = Route[NSParams, Reindexed]{"reindex", "POST /v1/ns/{ns}/reindex", `By placement writer, hand the records that this node was told to the hosts of their keys
For when the hosts of keys have lost their data, and hosts of large values have not. 504 (unconfirmed): a majority of a key's hosts has not taken its record; the others are handed on.`}
	Pause         = Route[NSParams, None]{"pause", "POST /v1/ns/{ns}/pause", "Take a namespace out of all syncs on this node, also after a restart; reads and writes go on"}
	Resume        = Route[NSParams, None]{"resume", "POST /v1/ns/{ns}/resume", "Let a namespace take part in syncs again"}
	GetCollection = Route[NSParams, Collection]{"collection", "GET /v1/ns/{ns}/collection", "How far the collection of deleted and expired records is, and which members hold it back"}
	Collect       = Route[NSParams, Collection]{"collect", "POST /v1/ns/{ns}/collection", "Take out the deleted and expired records that all members are past"}
	GetFuture     = Route[NSParams, Future]{"future", "GET /v1/ns/{ns}/future", "Records whose versions are too far ahead of the node's clock; the other members decline them"}
	Restamp       = Route[NSParams, Restamped]{"restamp", "POST /v1/ns/{ns}/restamp", "Give what this node wrote while its clock was wrong a version of now"}
	Verify        = Route[NSParams, Verification]{"verify", "POST /v1/ns/{ns}/verify", "Read the store's files and all records, and compute anew what the node keeps of them"}
	AcceptLoss    = Route[NSParams, None]{"accept-loss", "DELETE /v1/ns/{ns}/lost", "End what is said of a loss by damage to the store"}
	GetDiff       = Route[DiffParams, Report]{"diff", "GET /v1/ns/{ns}/diff", "What differs from a peer, with a forecast of what a sync would move; changes nothing"}
	Wait          = Route[WaitParams, status.Waited]{"wait", "POST /v1/ns/{ns}/wait", `Wait until members hold what this node holds, or a version of a key
504 (unconfirmed): the time was over first; waited says which members hold it, and what the others said.`}
)

// The routes of a namespace's members and tickets.
var (
	ListMembers  = Route[MembersParams, Members]{"members", "GET /v1/ns/{ns}/members", "List the members of a namespace"}
	SetMember    = Route[SetMemberParams, None]{"set-member", "PUT /v1/ns/{ns}/members/{id}", "Give a member another role, or admit a node that has the secret already"}
	RemoveMember = Route[RemoveParams, None]{"remove-member", "DELETE /v1/ns/{ns}/members/{id}", "End a node's membership; it keeps what it has read"}
	Lapse        = Route[LapseParams, None]{"lapse", "POST /v1/ns/{ns}/members/{id}/lapse", "Wait for a silent member no longer: deleted records can go before it has heard of that"}
	ListInvites  = Route[NSParams, Invites]{"invites", "GET /v1/ns/{ns}/invites", "List the tickets that this node has issued; those that are used up or expired for a week"}
	Revoke       = Route[RevokeParams, None]{"revoke-invite", "DELETE /v1/ns/{ns}/invites/{id}", "Make a ticket useless; the nodes that have joined by it stay members"}
)

// The routes of records. Bodies and answers that are not JSON are those of their handlers.
var (
	Get = Route[GetParams, None]{"get", "GET /v1/ns/{ns}/keys/{key}", `Read a value
404: there is no such key. 410: it was deleted, and the ETag is the version of the tombstone; or it has expired by the daemon's clock, and the ETag is its version.`}
	Put = Route[PutParams, Version]{"put", "PUT /v1/ns/{ns}/keys/{key}", `Write a value
Answers once the write is durable at as many as ack says. 412: the record held has another version than If-Match says. 503 (too_few): nothing is written. 504 (unconfirmed): the record is written, or may be, and the ETag is its version, but fewer than ack says were heard to hold it in time.`}
	Delete = Route[DeleteParams, Version]{"delete", "DELETE /v1/ns/{ns}/keys/{key}", `Delete a record
The record becomes a tombstone, which syncs carry on.`}
	ListKeys = Route[ListParams, KeyList]{"list", "GET /v1/ns/{ns}/keys", "List keys, in the order of their bytes"}
	Batch    = Route[BatchParams, Versions]{"batch", "POST /v1/ns/{ns}/batch", `Write records, all or none
Answers once all are durable, with their versions. A batch has at most 4,096 items and 1.5 MiB of values and keys, which count twice. A problem about an item has its number, counted from 0, in the member item; where the condition of that item did not hold (412), version is what its key holds.`}
	Import = Route[ImportParams, ImportResult]{"import", "POST /v1/ns/{ns}/import", `Import records, a JSON object a line
{"key":"a","value":"one","time":"2024-03-01T12:00:00Z"}; key64 and value64 are base64, time and expires are optional. What has expired is left out and counted. A record whose date is not taken is refused and listed, and the others are imported: up to that date members may have collected deleted records; from says from which date on records are taken. A line that is no record ends the import: the problem says which one, and how many records before it were kept. In a namespace that is cut into shards the records go to the hosts of their shards; where too few of them take a record in time (502, 504) the problem says so, too. Records behind that one may be kept as well: sent again, they are unchanged.`}
	Export = Route[ExportParams, None]{"export", "GET /v1/ns/{ns}/export", `Export records, a JSON object a line
Sorted by the bytes of the keys, in canonical form. An error on the way cuts the connection, behind a last line ` + ExportProblem + `…}, which holds the problem: an export after the last key goes on.`}
	Watch = Route[WatchParams, Event]{"watch", "GET /v1/ns/{ns}/watch", `Watch what changes
The daemon sends server-sent events. First it sends the latest change of each key behind the cursor, in the order of the commits. Then it sends each change as it is committed, whoever wrote it. An event's type is its kind, its id is the cursor, and its data is the JSON. The daemon sends the first event at once, and at least an event of the kind at, or a comment, each 15 seconds. 410: the cursor has expired; watch from start. A later failure is an event of the type error, whose data is a problem.`}
	WatchFrom = Route[WatchFromParams, Event]{"watch-from", "POST /v1/ns/{ns}/watch", `Watch what changes behind a long cursor
As the GET; the cursor is in the body, since that of a namespace of many shards is longer than an address may be. Its events have no id.`}
	DiffKeys = Route[DiffKeysParams, KeyDifference]{"diff-keys", "GET /v1/ns/{ns}/diff/keys", `List the keys that differ from a peer, a JSON object a line; changes nothing
In no order, as they are found. The last line is of the kind end, or of the kind error where something goes wrong after the first one; a list without it was cut.`}
	Explain = Route[WhyParams, Whys]{"why", "GET /v1/ns/{ns}/why/{key}", `Why a key is, or is not, the same at the peers
Asks them at once. A peer that does not answer within 15 s is unknown, and the cause says why.`}
	Locate = Route[LocateParams, Located]{"locate", "GET /v1/ns/{ns}/locate/{key}", `Which members hold a key of a namespace that is cut into shards
Looks the key up as a read does, and tells what was asked and what each has said. 503: too few hosts have answered, and the body says which.`}
	MakeBackup = Route[WithBody[NewBackup], None]{"backup", "POST /v1/backups", `Back the node up into a folder of the daemon's machine, while it runs
A JSON object a line: {"bytes":N} tells the progress, {"backup":{…}} ends the answer. A backup that fails on the way ends it with {"problem":{…}}, one that is refused is a problem of its own. Closing the connection ends a backup, and leaves those before it.`}
)

// The lists of kept records.
const (
	Conflicts = "conflicts"
	Rejected  = "rejected"
)

// keptTitles say what the lists hold.
var keptTitles = map[string]string{
	Conflicts: "Records that lost against a record whose writer had not seen them",
	Rejected:  "Records that were set aside, and those that were refused",
}

// ListKept is the route of a page of a list of kept records, those below take out of it.
func ListKept(list string) Route[KeptListParams, KeptList] {
	return Route[KeptListParams, KeptList]{list, "GET /v1/ns/{ns}/" + list, keptTitles[list] + `
Each node keeps its own; the oldest come first. In a namespace that is cut into shards each page names the other members that say that they keep some.`}
}

// ShowKept gives an entry of a list.
func ShowKept(list string) Route[KeptParams, KeptValue] {
	return Route[KeptParams, KeptValue]{"show-" + list, "GET /v1/ns/{ns}/" + list + "/{seq}", "One of them, with its value"}
}

// RestoreKept writes an entry of a list again.
func RestoreKept(list string) Route[KeptParams, Restored] {
	return Route[KeptParams, Restored]{"restore-" + list, "POST /v1/ns/{ns}/" + list + "/{seq}/restore", "Write it again, as a write of now, and forget the entry"}
}

// ForgetKept forgets an entry of a list.
func ForgetKept(list string) Route[KeptParams, None] {
	return Route[KeptParams, None]{"forget-" + list, "DELETE /v1/ns/{ns}/" + list + "/{seq}", "Forget one of them, for good"}
}

// ForgetAllKept forgets the entries of a list up to one.
func ForgetAllKept(list string) Route[ForgetParams, Forgotten] {
	return Route[ForgetParams, Forgotten]{"forget-all-" + list, "DELETE /v1/ns/{ns}/" + list, "Forget them up to one, for good"}
}

// The parameters of the routes.
type (
	NSParams struct {
		NS string `path:"ns" doc:"the namespace's local name"`
	}
	DropParams struct {
		NSParams
		Force bool `query:"force" doc:"delete also what this node may hold alone, shards that it has not handed over among it, and as the last admin"`
	}
	StatusParams struct {
		NSParams
		Cluster bool   `query:"cluster" doc:"ask all members, at once, how they are"`
		Within  string `query:"within" default:"5s" doc:"how long the answers may take, at most 5m"`
	}
	PeerParams struct {
		ID string `path:"id" doc:"the peer's id"`
	}
	MembersParams struct {
		NSParams
		All bool `query:"all" doc:"former members, and changes that do not count, too"`
	}
	SetMemberParams struct {
		NSParams
		ID   string `path:"id" doc:"the node's id"`
		Body NewRole
	}
	RemoveParams struct {
		NSParams
		ID    string `path:"id" doc:"the member's id"`
		Force bool   `query:"force" doc:"also where this node leaves with writes that no sync has proved another member to hold, or as the last admin; and where shards have no majority of their hosts left then"`
	}
	LapseParams struct {
		NSParams
		ID    string `path:"id" doc:"the member's id"`
		Force bool   `query:"force" doc:"also where shards have no majority of their hosts left then"`
	}
	RevokeParams struct {
		NSParams
		ID string `path:"id" doc:"the ticket's id, or the ticket itself"`
	}
	KeptListParams struct {
		NSParams
		Key    string `query:"key" doc:"only entries of the key of these bytes, percent-encoded"`
		Cursor uint64 `query:"cursor" doc:"the cursor of the page before"`
		Member string `query:"member" doc:"list what this member keeps, instead of what this node does: it is asked; only where the namespace is cut into shards"`
		Limit  int    `query:"limit" default:"1000" minimum:"1" maximum:"10000" doc:"how many entries at most"`
	}
	KeptParams struct {
		NSParams
		Seq uint64 `path:"seq" doc:"the entry's number"`
	}
	ForgetParams struct {
		NSParams
		Through uint64 `query:"through" required:"true" minimum:"1" doc:"the number of the last entry to forget: what has come since it was listed stays"`
	}
	// PrefixParams choose keys.
	PrefixParams struct {
		Prefix string `query:"prefix" doc:"only keys that begin with these bytes, percent-encoded"`
	}
	// RecordParams name a record. The daemon has the key in base64: see flattenKeys.
	RecordParams struct {
		NSParams
		Key string `path:"key" doc:"the key's bytes, percent-encoded"`
	}
	// ReadParams say how a key is read.
	ReadParams struct {
		Read    string `query:"read" doc:"of a namespace that is cut into shards: how many hosts of the key's shard must answer: one, quorum, or all; without it, quorum"`
		AtLeast string `query:"at_least" doc:"a version: further hosts are asked until one has it, or a later one"`
		Timeout string `query:"timeout" doc:"in a namespace that is cut into shards, for how long to wait for hosts, such as 5s; 10s at most"`
	}
	GetParams struct {
		RecordParams
		ReadParams
		IfNoneMatch string `header:"If-None-Match" doc:"ETags that the client holds: a value that has one of them is not sent again (304)"`
	}
	PutParams struct {
		RecordParams
		IfMatch     string `header:"If-Match" doc:"the ETag that the record held must have; * demands that there is a record"`
		IfNoneMatch string `header:"If-None-Match" doc:"* demands that there is no record, not even a deleted or expired one"`
		TTL         string `query:"ttl" doc:"after which time the record expires, such as 90s or 720h; at most 100 years; without it, never"`
		Timeout     string `query:"timeout" doc:"for how long to wait for ack, such as 5s; in a namespace that is cut into shards 10s at most; in another one, without it, as long as the request lasts"`
		Ack         string `query:"ack" doc:"how many hosts of the key's shard must hold the record durably: one, quorum, all or a number; without it, quorum. In a namespace that is not cut into shards a number of members, this node among them; without it, 1. Status 504, unconfirmed, where fewer do in time: what is written stays"`
	}
	DeleteParams struct {
		RecordParams
		IfMatch string `header:"If-Match" doc:"the ETag that the record held must have; * demands that there is a record"`
		Ack     string `query:"ack" doc:"as in a put"`
		Timeout string `query:"timeout" doc:"as in a put"`
	}
	ListParams struct {
		NSParams
		PrefixParams
		Cursor string `query:"cursor" doc:"the cursor of the page before"`
		Limit  int    `query:"limit" default:"1000" minimum:"1" maximum:"10000" doc:"how many keys at most"`
	}
	// BatchParams come with a list of BatchItem.
	BatchParams struct {
		NSParams
		Timeout string `query:"timeout" doc:"in a namespace that is cut into shards, for how long to wait for hosts, such as 5s; 10s at most"`
	}
	ImportParams struct {
		NSParams
		Line     int       `query:"line" default:"1" minimum:"1" doc:"the number of the first line, for messages"`
		Ack      string    `query:"ack" doc:"of a namespace that is cut into shards: how many hosts of a key's shard must have each record durably before it counts: one, quorum, all or a number; without it, quorum"`
		AsNew    bool      `query:"as_new" doc:"write a record whose date is not taken as of now, unless its key holds something that is later than the date"`
		Rejects  int       `query:"rejects" default:"100" minimum:"0" maximum:"10000" doc:"how many of the records that are refused the answer lists"`
		Earliest time.Time `query:"earliest" doc:"of an import of several requests: what the last one has answered as earliest"`
	}
	ExportParams struct {
		NSParams
		PrefixParams
		After    string `query:"after" doc:"only keys behind this one, percent-encoded; it need not exist"`
		Versions bool   `query:"versions" doc:"with versions, and with deleted and expired records"`
	}
	WatchParams struct {
		NSParams
		Since string `query:"since" doc:"the cursor of an event, behind which the watch goes on; start: what is held comes first, and an event at; absent: from now on"`
		PrefixParams
		Last string `header:"Last-Event-ID" doc:"as since, which it takes the place of: the cursor of the last event, as browsers send it when they connect again"`
	}
	WatchFromParams struct {
		NSParams
		PrefixParams
		Body WatchRequest
	}
	DiffParams struct {
		NSParams
		Peer string `query:"peer" required:"true" doc:"a peer id, or a multiaddr that ends in /p2p/ and one"`
		PrefixParams
		Dir    string `query:"dir" enum:"both,pull,push" default:"both" doc:"which way the forecast lets records go"`
		Method string `query:"method" enum:"auto,sketch,all" default:"auto" doc:"how the differences are found"`
	}
	DiffKeysParams struct {
		NSParams
		Peer string `query:"peer" required:"true" doc:"a peer id, or a multiaddr that ends in /p2p/ and one"`
		PrefixParams
		Limit int `query:"limit" minimum:"0" doc:"list at most so many keys; 0: all"`
	}
	WhyParams struct {
		RecordParams
		Peer string `query:"peer" doc:"a peer id, or a multiaddr that ends in /p2p/ and one; without it, each other member is asked"`
	}
	LocateParams struct {
		RecordParams
		ReadParams
		All bool `query:"all" doc:"the same as read=all"`
	}
	WaitParams struct {
		NSParams
		Body WaitRequest
	}
)

// OfNS names a namespace.
func OfNS(name string) NSParams { return NSParams{name} }

// Under chooses the keys that begin with a prefix.
func Under(prefix string) PrefixParams { return PrefixParams{prefix} }

// Record names a record.
func Record(ns string, key []byte) RecordParams { return RecordParams{NSParams{ns}, string(key)} }

// Escape is a parameter as a path has it. A dot is escaped, too: a client or
// proxy that cleans paths would take "." and ".." for folders.
func Escape(s string) string { return strings.ReplaceAll(url.PathEscape(s), ".", "%2E") }

// Namespace is the name of the namespace that a request is about.
func (p NSParams) Namespace() string { return p.NS }

// Base64 is the key as the daemon has it.
func (p RecordParams) Base64() string { return p.Key }

// Patience is for how long a request waits for others.
func (p ReadParams) Patience() string { return p.Timeout }

// Patience is for how long a request waits for others.
func (p DeleteParams) Patience() string { return p.Timeout }

// Patience is for how long a request waits for others.
func (p BatchParams) Patience() string { return p.Timeout }

// Patience is for how long a request waits for others.
func (p WaitParams) Patience() string { return p.Body.Timeout }
