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
// A node is its Ed25519 key. A namespace is known by a hash of its 32-byte
// secret; its name is an alias of this node alone. Each node keeps a list of
// the namespace's members with their roles (read, write, admin), and deals
// with nobody else: a stranger learns not even whether the namespace exists.
// Every record is signed by the node that wrote it, and checked where it
// arrives, so that a member that passes it on cannot alter it.
//
// Versions are readings of a hybrid logical clock. A write gets one that is
// greater than all that its node has seen in the namespace, even if the
// machine's clock was set back; the last writer wins.
//
// A node given no Host makes one that speaks TCP only. libp2p has a log of its
// own, which goes to standard error unless the program sets its handler
// (gologshim.SetDefaultHandler); this package never touches such globals.
//
// What is not promised: a member with the secret can keep what it has read;
// the member lists of two nodes are made equal only by invitations, not by
// syncs; a name or an address says nothing about who is there, only the peer
// id does.
package peer
