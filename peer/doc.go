// Package peer is a node that can be embedded: records in a database, a
// libp2p host, and namespaces that are kept equal with other nodes.
//
//	n, err := peer.Open(ctx, peer.Config{Dir: "/var/lib/notes"})
//	ns, err := n.CreateNamespace(ctx, "notes", peer.Policy{})
//	version, err := ns.Put(ctx, []byte("k"), []byte("v"))
//	ticket, err := ns.Invite(ctx, peer.InviteOptions{Role: peer.RoleWrite})
//
//	// elsewhere
//	ns, err := n.Join(ctx, ticket)
//	report, err := ns.Sync(ctx, inviter, peer.SyncOptions{})
//
// To begin, read [Open], [Node.CreateNamespace], [Namespace.Put] and
// [Namespace.Get]; for a second node, [Namespace.Invite], [Node.Join] and
// [Namespace.Sync]. With Config.SyncInterval, nodes sync by themselves.
//
// # Terms
//
// A node is its Ed25519 key, and its ID is the libp2p peer id of that key. A
// namespace is a set of records with a secret of 32 bytes; its members know it by
// a hash of the secret and of its creator, and its name is an alias of this node
// alone. A member is a node in the namespace's list of members, with a role: read,
// write or admin. The list is made of statements that admins have signed, and is
// synced before the records where two nodes have different ones. A node serves
// members only: a stranger does not learn whether the namespace exists. A ticket is
// a text that makes a node a member and gives it the secret; an admin issues it, and
// answers when it is redeemed.
//
// The node that writes a record signs it, and each node checks the signature of a
// record that arrives, so that a member that passes it on cannot alter it. A
// version is a reading of a hybrid logical clock: a write gets one that is greater
// than all that its node has seen in the namespace, even if the machine's clock
// was set back; the greater version wins.
//
// A record put with [TTL] reads as absent from its expiry on, on each node by that
// node's clock. It is held, and synced as what it is, like a tombstone.
//
// [Namespace.Watch] tells of what has changed since a [Cursor], and of what changes from
// then on, by any member: each key's latest record, in the order of the commits.
//
// # Limits
//
// [Limits] bounds what peers may make a node do, and the constants from MaxMembers
// on bound what a node keeps; keys, values and batches have the bounds of package
// dbadapter. A node opens a namespace by a scan, at some 10^5 to 10^6 records a
// second. A node given no Host makes one that speaks TCP only. libp2p has a log of
// its own, which goes to standard error unless the program sets its handler
// (gologshim.SetDefaultHandler); this package never touches such globals.
//
// What is not promised: a member with the secret can keep what it has read; a change
// of the list of members counts at another node once it has heard of it; only the
// peer id tells which node is at the other end, not a name or an address.
//
// # The source
//
// Read node.go (what a node is made of), namespace.go, write.go and read.go, then
// sync.go and serve.go (the two sides of a sync), carrier.go (frames on a stream)
// and background.go; join.go and members.go; host.go, connections.go and limits.go
// (what strangers may take). Package internal/node decides; this package drives it,
// and its documentation follows a record from Put on one node to Get on another.
package peer
