// Package mesh carries pushes: what a node has just written travels to the other members at
// once, where a sync at intervals would bring it later.
//
// Package push decides what is pushed and to whom, and package node what becomes of what
// arrives. This package has two ways to carry it:
//
//   - A line is a stream to one member. In a namespace of at most 16 members a push goes from
//     its origin to each of them, once. See direct.go and line.go.
//   - GossipSub carries it over a mesh: each node passes it on to two or three others. That is
//     for larger namespaces, and where a member has no line. See mesh.go.
//
// GossipSub sees a host that has no peers but members (host.go), and remembers few topics that
// are not this node's (topics.go). In links.go the node keeps connections to some members.
//
// A push may be lost: each has a number, so that a gap shows, and a sync brings the rest. What
// waits for a slow member is bounded. Beyond that it learns only that there is more.
//
//	m, err := mesh.Open(ctx, mesh.Config{Host: network, Members: members, Book: book, …})
//	err = m.Follow(ctx, mesh.Source{Set: set, Pushable: pushable, Enter: enter, Sync: sync})
package mesh
