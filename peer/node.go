package peer

import (
	"context"
	"time"
)

// Node is one participant: an identity, a host, a store, and namespaces. All
// its methods may be called from several goroutines.
type Node struct {
}

// Open starts a node. The context bounds the opening only; Close ends the node.
func Open(ctx context.Context, cfg Config) (*Node, error) { return nil, errNotYet }

// ID is the node's peer id.
func (n *Node) ID() ID { return "" }

// Addrs are the multiaddrs under which the node can be dialled from other
// machines (if it listens there), each ending in /p2p/ and the node's id.
func (n *Node) Addrs() []string { return nil }

// Close ends the node: running syncs are cut, what was acknowledged is
// durable. It waits until all is stopped, or the context is over; the node
// then still closes. It may be called again. A host or store given in Config
// stays open.
func (n *Node) Close(ctx context.Context) error { return errNotYet }

// Connect dials a multiaddr that ends in /p2p/ and the peer's id, and
// remembers it in the address book.
func (n *Node) Connect(ctx context.Context, addr string) (ID, error) { return "", errNotYet }

// PeerInfo is an entry of the address book.
type PeerInfo struct {
	ID        ID       `json:"id"`
	Addrs     []string `json:"addrs"`
	Connected bool     `json:"connected"`
	// Namespaces are the local names of those that the peer is a member of.
	Namespaces []string `json:"namespaces"`
}

// AddPeer remembers a multiaddr that ends in /p2p/ and the peer's id, without
// dialling it. To know an address gives no rights.
func (n *Node) AddPeer(ctx context.Context, addr string) (ID, error) { return "", errNotYet }

// RemovePeer forgets a peer's addresses; where it is a member, it stays one.
func (n *Node) RemovePeer(ctx context.Context, id ID) error { return errNotYet }

// Peers lists the address book and the members of all namespaces, by id.
func (n *Node) Peers() []PeerInfo { return nil }

// CreateNamespace makes a namespace with a fresh secret; this node is its
// first admin. The name is local: 1 to 64 letters, digits, '.', '_' or '-',
// the first a letter or digit. ErrExists: the name is taken.
func (n *Node) CreateNamespace(ctx context.Context, name string, p Policy) (*Namespace, error) {
	return nil, errNotYet
}

// Namespace returns the namespace of that name, or ErrNotFound.
func (n *Node) Namespace(name string) (*Namespace, error) { return nil, errNotYet }

// Namespaces lists the namespaces by name.
func (n *Node) Namespaces() []*Namespace { return nil }

// DropNamespace deletes a namespace from this node: its records, its secret
// and its member list. The other members keep theirs.
func (n *Node) DropNamespace(ctx context.Context, name string) error { return errNotYet }

// Join redeems a ticket: it connects to who made it, becomes a member, and
// opens the namespace here, still empty. If the ticket's name is taken here by
// another namespace, a part of the id is appended. Joining again with a ticket
// that this node has redeemed is no error until it expires.
func (n *Node) Join(ctx context.Context, ticket string) (*Namespace, error) { return nil, errNotYet }

// SyncRecord is a sync that has ended, as RecentSyncs remembers it.
type SyncRecord struct {
	Time time.Time `json:"time"`
	// Incoming: the peer began it.
	Incoming bool   `json:"incoming"`
	Report   Report `json:"report"`
	// Error is empty if it succeeded.
	Error string `json:"error,omitempty"`
}

// RecentSyncs returns the last syncs that ended, the latest first.
func (n *Node) RecentSyncs() []SyncRecord { return nil }

// Status describes a node.
type Status struct {
	ID         ID         `json:"id"`
	Addrs      []string   `json:"addrs"`
	Started    time.Time  `json:"started"`
	Namespaces []Info     `json:"namespaces"`
	Peers      []PeerInfo `json:"peers"`
	// Syncs is how many are running.
	Syncs int `json:"syncs"`
}

// Status describes the node as it is now.
func (n *Node) Status() Status { return Status{} }
