// Package routing carries questions about shards from node to node: what package shards asks of the hosts
// of a shard, it sends over libp2p, and it serves what others ask. [Net] is the [shards.Net] of the daemon.
//
// Questions to a peer go one after the other on a stream. Streams stay open for a while, for the next ones
// ([stream.Pool]). A question takes a place, of which there are so many at a peer and in all. It waits for one.
// But of writes only so many wait at a peer: a host that does not answer would otherwise hold all that is
// written meanwhile.
package routing

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/syncd-io/syncd/internal/netio/stream"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Protocol is the libp2p protocol of routed questions: one after the other on a stream.
const Protocol protocol.ID = "/syncd/route/1.0.0"

// Buffer is that of each direction of a stream: most questions fit in.
const Buffer = 4 << 10

// Bounds of the streams of routed questions.
const (
	// silence is for how long an asker's stream may be silent. The asker closes it before:
	// see stream.Pool.
	silence = 60 * time.Second
	// maxLarge questions of more than small bytes are read at once, maxLargePeer of
	// one peer. They take 34 MiB, and each other question 64 KiB.
	small        = 64 << 10
	maxLarge     = 32
	maxLargePeer = 4
	// maxWaiting writes of maxWaitingBytes wait for a place at one peer: what a host takes in a
	// second or so.
	maxWaiting      = 256
	maxWaitingBytes = 8 << 20
	// maxPages of scans are on their way at once. They share the link, and
	// leave half of the places that the node has at a peer to its look-ups and writes.
	maxPages = syncing.MaxRouted / 2
)

// Routes are a node's own questions on their way, and those of peers that it serves.
type Routes struct {
	life   context.Context
	places *stream.Places // of this node's own
	paging chan struct{}  // a place for each page that is fetched
	large  *stream.Places // of peers' that are large
	pool   *stream.Pool
	// waiting are writes that wait for a place.
	waiting stream.Waiting
}

// New makes routes for a node until life is over. open opens a stream to a peer, with Buffer.
func New(life context.Context, open func(ctx context.Context, id peer.ID) (*stream.Carrier, error)) *Routes {
	return &Routes{
		life: life, places: stream.NewPlaces(syncing.MaxRoutedInAll, syncing.MaxRouted), paging: make(chan struct{}, maxPages),
		large: stream.NewPlaces(maxLarge, maxLargePeer), pool: stream.NewPool(life, syncing.MaxRouted, open),
		waiting: stream.Waiting{Most: maxWaiting, MostBytes: maxWaitingBytes},
	}
}

// CloseIdle closes the streams that are idle.
func (r *Routes) CloseIdle() { r.pool.CloseIdle() }

// Page waits for a place among the pages of scans that are on their way.
func (r *Routes) Page(ctx context.Context) (leave func(), err error) {
	select {
	case r.paging <- struct{}{}:
		return func() { <-r.paging }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// place waits for a place for a question to a peer.
func (r *Routes) place(ctx context.Context, to node.ID, q wire.Question) (leave func(), err error) {
	if hold, ok := q.(*wire.AskHold); ok {
		bytes := 0
		for i := range hold.Records {
			bytes += len(hold.Records[i].Key) + len(hold.Records[i].Value)
		}
		stop, ok := r.waiting.Enter(peer.ID(to), bytes)
		if !ok {
			return nil, reconcile.ErrBusy
		}
		defer stop()
	}
	return r.places.Take(ctx, peer.ID(to))
}

// Serve answers the questions of a peer, one after the other, until it has asked all that it wants, or one
// cannot be answered. It has then refused that, and asked says that it was read. answer gives the frame of an answer.
func (r *Routes) Serve(talk *stream.Carrier, remote peer.ID, answer func(*wire.Ask) ([]byte, error)) (asked bool, err error) {
	for err == nil {
		asked, err = r.serve(talk, remote, answer)
	}
	switch {
	case errors.Is(err, io.EOF):
		_ = talk.Close()
		return false, nil
	case talk.Over():
		return false, nil
	}
	talk.Refuse(err)
	return asked, err
}

// serve reads the next question, and answers it; io.EOF: there is none.
func (r *Routes) serve(talk *stream.Carrier, remote peer.ID, answer func(*wire.Ask) ([]byte, error)) (asked bool, err error) {
	length, err := talk.Await(silence)
	if err != nil {
		return false, err
	}
	if length > small {
		leave, err := r.large.Take(r.life, remote)
		if err != nil {
			return false, err
		}
		defer leave()
	}
	question, _, err := stream.Next[*wire.Ask](talk)
	if err != nil {
		return false, err
	}
	frame, err := answer(question)
	if err != nil {
		return true, err
	}
	return true, talk.Write(frame)
}
