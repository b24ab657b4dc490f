// Package peer is a node that can be embedded in a program: records in a database,
// a libp2p host, and namespaces that nodes keep equal.
//
// A program writes to its own node, at once and also without a network. The nodes
// push what they write to one another. From time to time two of them sync: they find
// what differs, and exchange only that. After a sync both hold the same records.
//
//	n, err := peer.Open(ctx, peer.Config{
//		Dir:          "/var/lib/notes",
//		ListenAddrs:  []string{"/ip4/0.0.0.0/tcp/4111"}, // a fixed port: others find it after a restart
//		SyncInterval: time.Minute,                       // syncs and pushes by itself
//	})
//
//	ns, err := n.Namespace("notes") // there from the second start on
//	if errors.Is(err, peer.ErrNotFound) {
//		ns, err = n.CreateNamespace(ctx, "notes", peer.Policy{})
//	}
//
//	version, err := ns.Put(ctx, []byte("milk"), []byte("2 l"))
//	ticket, err := ns.Invite(ctx, peer.InviteOptions{Role: peer.RoleWrite})
//
// Another node runs the same program with the ticket, and calls
//
//	ns, err = n.Join(ctx, ticket)
//
// in place of CreateNamespace. The program peer/example/notes is a whole one.
//
// Package peer/offline restores, migrates and repairs the folder of a node that does not run.
//
// To begin, read [Open], [Node.CreateNamespace], [Namespace.Put] and [Namespace.Get].
// For a second node, read [Namespace.Invite] and [Node.Join]. Without
// Config.SyncInterval a node syncs only when [Namespace.Sync] is called, and pushes
// nothing. The log is discarded unless Config.Logger is set.
//
// # Terms
//
// A node is its Ed25519 key. Its ID is the libp2p peer id of that key.
//
// A namespace is a set of records with a secret of 32 bytes. Its members know it by a
// hash of the secret and of its creator. Its name is an alias of this node alone.
//
// A member is a node in the namespace's list of members, with a role: read, write or
// admin. The list is made of statements that admins have signed. Where two nodes have
// different lists, they sync these before the records. A node serves members only: a
// stranger does not learn whether the namespace exists.
//
// A ticket is a text that makes a node a member and gives it the secret. An admin
// issues it, and answers when it is redeemed.
//
// The node that writes a record signs it. Each node checks the signature of a record
// that arrives, so a member that passes it on cannot alter it.
//
// A version is a reading of a hybrid logical clock. A write gets one that is greater
// than all that its node has seen in the namespace, even if the machine's clock was set
// back. The greater version wins.
//
// A tombstone is what a deletion leaves under the key. A record put with [TTL] reads as
// absent from its expiry on, on each node by that node's clock. Like a tombstone it is
// still held and synced.
//
// [Namespace.Watch] yields what has changed since a [Cursor], and then what changes, by
// any member. It yields each key's latest record, in the order of the commits.
//
// # Limits
//
// [Limits] bounds what peers may make a node do. The constants from MaxMembers on bound
// what a node keeps. Package dbadapter has the bounds of keys, values and batches.
//
// A node opens a namespace by a scan, at some 10^5 to 10^6 records a second. A node
// without Config.Host makes a host that speaks TCP and QUIC.
//
// libp2p has a log of its own. It goes to standard error unless the program sets its
// handler (gologshim.SetDefaultHandler); this package never touches such globals.
//
// # What is not promised
//
// Where two members write one key at the same time, the later write wins.
// [Namespace.Conflicts] lists the one that lost. A member with the secret can keep what
// it has read. A change of the list of members counts at another node once it has heard
// of it. Only the peer id tells which node is at the other end, not a name or an address.
//
// # The source
//
// Read node.go first: what a node is made of. Records are in namespace.go, write.go
// and read.go, syncs in sync.go and serve.go, members in join.go and members.go.
// This package wires packages below internal together, and decides nothing itself.
// docs/SOURCE.md lists them, and follows a write, a record, a read and a statement
// through the files.
package peer
