package model

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// box hands what arrives to one routine.
type box[T any] struct {
	process *process
	notes   []T
	wake    func() // of the routine that waits; nil: none does
}

// Put adds a note, from wherever the process is.
func (b *box[T]) Put(note T) {
	b.notes = append(b.notes, note)
	b.rouse()
}

func (b *box[T]) rouse() {
	if wake := b.wake; wake != nil {
		b.wake = nil
		b.process.after(0, wake)
	}
}

// take waits for a note; none has come where that is the zero value. The error is ErrDown where
// the process ends meanwhile.
func (b *box[T]) take(ctx context.Context, until time.Duration) (note T, err error) {
	if len(b.notes) == 0 {
		var timer *timer
		err = routineOf(ctx).await(func(done func()) {
			b.wake = done
			timer = b.process.after(max(0, until-b.process.node.world.Now()), b.rouse)
		})
		timer.stop()
	}
	if err == nil && len(b.notes) > 0 {
		note, b.notes = b.notes[0], b.notes[1:]
	}
	return note, err
}

// arrival is a frame, or why no more will come.
type arrival struct {
	frame  []byte
	broken error
}

// conn is one side of a stream, of which a routine takes the frames.
type conn struct {
	box[arrival]
	stream  *sim.Stream
	remote  int
	refused bool // no process at the other side has taken the stream
}

func (p *process) listen(s *sim.Stream, remote int) *conn {
	c := &conn{box: box[arrival]{process: p}, stream: s, remote: remote}
	p.conns = append(p.conns, c)
	s.Receive = func(frame []byte) {
		p.node.world.Note("frame", remote, p.node.number, frame)
		c.Put(arrival{frame: frame})
	}
	s.Broken = func(err error) { c.Put(arrival{broken: fmt.Errorf("%w: %w", ErrUnreachable, err)}) }
	return c
}

// dial opens a stream to another node, which answers it by serve.
func (p *process) dial(to *Node, serve func(ctx context.Context, c *conn)) *conn {
	var c *conn
	c = p.listen(p.node.cluster.Net.Dial(p.node.number, to.number, func(s *sim.Stream) bool {
		c.refused = !to.accept(s, p.node.number, serve)
		return !c.refused
	}), to.number)
	return c
}

// accept starts a routine of the process that answers a stream. It reports whether there is a process.
func (n *Node) accept(s *sim.Stream, from int, serve func(ctx context.Context, c *conn)) bool {
	p := n.process
	if p == nil {
		return false
	}
	c := p.listen(s, from)
	p.now(func() {
		p.routine(func(ctx context.Context) {
			serve(ctx, c)
			c.end()
		})
	})
	return true
}

// end breaks the stream off, unless it was closed.
func (c *conn) end() {
	c.stream.Reset()
	p := c.process
	p.conns = slices.DeleteFunc(p.conns, func(o *conn) bool { return o == c })
}

// say sends the last frame.
func (c *conn) say(frame []byte) {
	c.stream.Send(frame)
	c.stream.Close()
}

// receive waits for a frame. Besides ErrUnreachable its error is ErrDown, where the process ends.
func (c *conn) receive(ctx context.Context, wait time.Duration) ([]byte, error) {
	a, err := c.take(ctx, c.process.node.world.Now()+wait)
	switch {
	case err != nil:
		return nil, err
	case a.broken != nil:
		return nil, a.broken
	case a.frame == nil:
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, ErrTimeout)
	}
	return a.frame, nil
}

// exchange sends a message to another node, and returns the one frame that answers it. sent says
// that the message may have reached the other.
func (p *process) exchange(ctx context.Context, to *Node, wait time.Duration, serve func(ctx context.Context, c *conn), message []byte) (reply []byte, sent bool, err error) {
	c := p.dial(to, serve)
	c.stream.Send(message)
	if reply, err = c.receive(ctx, wait); err == nil {
		c.stream.Close()
	}
	c.end()
	return reply, !c.refused, err
}

// greeting takes the first message of a peer, which may be late. A peer for which there is no place
// is refused, and so is one that says something else.
func greeting[M wire.Message](ctx context.Context, c *conn) (first M, size int, ok bool) {
	n, core := c.process.node, c.process.core
	remote := n.cluster.nodes[c.remote].id
	leave, ok := core.Sessions.Greet(remote, core.IsMember(remote))
	if !ok {
		c.refuse(reconcile.ErrBusy)
		return first, 0, false
	}
	frame, err := c.receive(ctx, helloTimeout)
	leave()
	if err != nil {
		return first, 0, false
	}
	if n.old {
		frame = translated(frame)
	}
	if first, size, err = read[M](frame); err != nil {
		c.refuse(err)
	}
	return first, size, err == nil
}

// read reads a message of one kind.
func read[M wire.Message](frame []byte) (m M, size int, err error) {
	message, size, err := wire.Read(bytes.NewReader(frame))
	if err != nil {
		return m, size, fmt.Errorf("%w: %w", reconcile.ErrProtocol, err)
	}
	m, ok := message.(M)
	if !ok {
		err = fmt.Errorf("%w: a message that is no %T", reconcile.ErrProtocol, m)
	}
	return m, size, err
}

// refuse tells a peer why nothing begins.
func (c *conn) refuse(err error) {
	n := c.process.node
	refusal := reconcile.Refusal(err)
	refusal.Version = n.version()
	n.world.Note("refuse", n.number, c.remote, []byte{byte(refusal.Code)})
	n.cluster.Watch.Refused(n.number, err)
	c.say(wire.Append(nil, refusal))
}
