// Package stream carries messages over the streams of a libp2p host, and bounds the time
// and the bandwidth that they take.
//
// A [Carrier] drives a session of package reconcile, or a question and its answer, frame by
// frame. Each frame has a deadline: the idle time, and what its bytes take at the least rate.
// So a peer that sends a byte now and then is cut off. A frame allocates no more than what has
// arrived of it. The first frame of a peer has less room and time than later ones: its sender
// has proved only its id.
//
//	talk := stream.New(s, stream.Options{Idle: 30 * time.Second, MinRate: 16 << 10, Bandwidth: bounds})
//	hello, size, err := stream.First[*wire.Hello](talk, 80<<10)
//	if err != nil {
//		talk.Refuse(err)
//		return
//	}
//	err = talk.Run(ctx, session(hello, size), progress)
//
// A [Bandwidth] bounds the bytes a second of all streams, and of each peer's. Streams that share
// a bound take turns. A carrier passes it by itself. [Bandwidth.Meter] holds any other stream to
// it. The time that a bound takes counts for no deadline.
//
// A [Pool] asks peers over streams that it keeps open between two questions, and [Places] bound
// what goes on at once, in all and with each peer.
//
// Errors of a stream are [reconcile.ErrUnreachable] where it broke or was too slow, and
// [reconcile.ErrProtocol] where the peer has sent what is no message.
//
// The package does not open streams, and does not know who is at the other end.
package stream
