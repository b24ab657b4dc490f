// Package netio is the network of a node: a libp2p host over TCP and QUIC, and where other
// nodes are.
//
// [NewHost] makes a host that does nothing by itself: it maps no port, and looks for nobody.
// All its bounds are in limits.go. [Serve] lets a host serve a node, which tells it who is a
// member:
//
//	h, err := netio.NewHost(netio.Config{Identity: key, Limits: limits})
//	network, err := netio.Serve(ctx, h, netio.Node{Members: members, Book: book, DialTimeout: 10 * time.Second, Log: log})
//	err = network.Dial(ctx, id, nil) // at the addresses in the book
//	s, err := network.Open(ctx, id, "/example/1.0.0")
//
// # Strangers
//
// Anyone can connect. Handshakes and strangers take places, of which there is a number in all
// and a number for each address (connections.go). The oldest gives way to a newcomer. So an
// address that holds many connections keeps no other address out. Members take no places.
//
// libp2p's own bounds for each address are lifted. They count a member as they count a silent
// socket, and they refuse the newcomer.
//
// # Addresses
//
// A [Book] remembers where peers were found. A person gives addresses, and members tell theirs
// when they connect. What arrives over multicast DNS buys a member one dial, and enters no book.
// A node behind a router keeps places at relays, and announces those.
//
// # What is not here
//
// Package netio/stream carries messages over the streams. Package peer says which streams there
// are. An address gives its peer no rights. The connection proves the id, and the node's list of
// members says what that id may do.
package netio
