package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/multiformats/go-varint"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// carrier carries a session over a stream, frame by frame, each under a
// deadline. Only one side sends at a time (see package reconcile), so that one
// goroutine reads and writes in turn.
type carrier struct {
	stream network.Stream
	in     *bufio.Reader
	out    *bufio.Writer
	pace   pace
	begun  bool          // a session has run
	over   bool          // the stream is closed or reset
	calls  bool          // this side has begun the sync
	broken bool          // nothing can be read from the peer any more
	told   bool          // this side has said why it ends the session
	gone   chan struct{} // closed when the peer gives up a question; nil unless it waits
}

func newCarrier(stream network.Stream, limits Limits, throttles throttles) *carrier {
	return newCarrierOf(stream, limits, throttles, 64<<10)
}

// newCarrierOf makes a carrier that gathers so many bytes before it writes.
func newCarrierOf(stream network.Stream, limits Limits, throttles throttles, buffer int) *carrier {
	c := &carrier{stream: stream, pace: pace{stream: stream, idle: limits.IdleTimeout, rate: int64(limits.MinRate), throttles: throttles}}
	c.in = bufio.NewReaderSize((*pacedReader)(&c.pace), min(buffer, 32<<10))
	c.out = bufio.NewWriterSize((*pacedWriter)(&c.pace), buffer)
	return c
}

// run drives the session to its end, and closes the stream. It resets the stream
// when the context ends.
func (c *carrier) run(ctx context.Context, s *reconcile.Session, progress func(reconcile.Report)) (err error) {
	c.begun = true
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { c.stream.Reset() })
	defer stop()
	c.pace.done = ctx.Done()
	for {
		switch e := s.Next(); e.Want {
		case reconcile.WantSend:
			_, c.told = e.Message.(*wire.Refuse)
			err := c.write(e.Frame)
			if err == nil && e.Flush {
				err = broken(c.out.Flush())
			}
			if err != nil {
				err = c.lastWord(err)
				c.cut()
				return err
			}
		case reconcile.WantReceive:
			m, size, err := c.receive()
			if err != nil {
				c.broken = !errors.Is(err, wire.ErrFrame)
				s.Fail(err)
			} else {
				s.Deliver(m, size)
			}
		case reconcile.WantNothing:
			return c.end(s.Err())
		}
		progress(s.Report())
	}
}

// cut resets the stream, unless it is closed.
func (c *carrier) cut() {
	if !c.over {
		c.over = true
		c.stream.Reset()
	}
}

// end flushes the session's last message, which may be a refusal, and closes the
// stream. The error of a session that failed goes before one from here.
func (c *carrier) end(failed error) error {
	err := c.out.Flush()
	switch {
	case c.broken || c.calls && errors.Is(failed, reconcile.ErrTurn):
		// The peer may be sending all that it has. Over TCP it would not hear that this
		// side reads no more, and wait for its deadline.
		c.cut()
	case err != nil:
		err = c.lastWord(broken(err))
		c.cut()
	case c.told && !isQUIC(c.stream.Conn().RemoteMultiaddr()):
		c.linger()
	default:
		c.over = true
		// Over QUIC this ends the peer's writes, and what was said is read all the same. It
		// fails if the peer, which has read what it wants, has closed before; what that must
		// have read it has answered.
		_ = c.stream.Close()
	}
	if failed != nil {
		return failed
	}
	return err
}

// linger closes a stream over TCP after a refusal in the middle of a session. The peer may
// be sending: it does not hear that this side reads no more, and reads the refusal when it
// has sent all. What arrives meanwhile is dropped, up to a bound. A peer that has more to
// send, or says nothing, is reset: nothing waits for its deadline.
func (c *carrier) linger() {
	c.over = true
	if c.stream.CloseWrite() == nil && c.stream.SetReadDeadline(time.Now().Add(lingerTimeout)) == nil {
		if _, err := io.CopyN(io.Discard, c.stream, lingerBytes); errors.Is(err, io.EOF) {
			_ = c.stream.Close() // both sides have
			return
		}
	}
	c.stream.Reset()
}

func (c *carrier) write(frame []byte) error {
	_, err := c.out.Write(frame)
	return broken(err)
}

// receive flushes what is written and reads a frame.
func (c *carrier) receive() (wire.Message, int, error) {
	if err := c.out.Flush(); err != nil {
		return nil, 0, c.lastWord(broken(err))
	}
	c.pace.begin()
	m, size, err := wire.Read(c.in)
	return m, size, broken(err)
}

// lastWord is why the peer reads no more, if it has said so. Otherwise it is the error
// of the write that has failed. A peer that refuses closes its side at once. Over QUIC
// that fails the writes of this side, and the refusal is still to be read.
func (c *carrier) lastWord(failed error) error {
	if !errors.Is(failed, network.ErrReset) {
		return failed
	}
	c.pace.begin()
	if m, _, err := wire.Read(c.in); err == nil {
		if r, ok := m.(*wire.Refuse); ok {
			return reconcile.Refused(r)
		}
	}
	return failed
}

// receiveHello reads the first frame of a sync.
func (c *carrier) receiveHello() (*wire.Hello, int, error) {
	m, size, err := c.receiveFirst(maxHello)
	if err != nil {
		return nil, 0, err
	}
	hello, ok := m.(*wire.Hello)
	if !ok {
		return nil, 0, fmt.Errorf("%w: a first message of kind %d", wire.ErrFrame, m.Kind())
	}
	return hello, size, nil
}

// receiveFirst reads the first frame of a peer that has proved no more than its id. It
// has less time than later frames, and less room.
func (c *carrier) receiveFirst(most uint64) (wire.Message, int, error) {
	idle := c.pace.idle
	c.pace.idle = min(idle, helloTimeout)
	defer func() { c.pace.idle = idle }()
	c.pace.begin()
	length, err := c.peekLength()
	if err != nil {
		return nil, 0, broken(err)
	}
	if length > most {
		return nil, 0, fmt.Errorf("%w: a first message of more than %d bytes", wire.ErrFrame, most)
	}
	m, size, err := wire.Read(c.in)
	return m, size, broken(err)
}

// peekLength reads the length of a frame and leaves it unread. It waits for no
// byte behind the length: a frame may be shorter than the longest length.
func (c *carrier) peekLength() (uint64, error) {
	for n := 1; ; n++ {
		head, err := c.in.Peek(n)
		if err != nil {
			return 0, err
		}
		length, _, err := varint.FromUvarint(head)
		switch {
		case err == nil:
			return length, nil
		case !errors.Is(err, varint.ErrUnderflow): // the length is malformed, not cut short
			return 0, fmt.Errorf("%w: length: %w", wire.ErrFrame, err)
		}
	}
}

// refuse sends the reason why there will be no session.
func (c *carrier) refuse(err error) { c.tell(reconcile.Refusal(err)) }

// refuseMalformed answers a first message that did not arrive. A peer that broke the
// protocol gets a refusal, and any other a reset.
func (c *carrier) refuseMalformed(err error) {
	if errors.Is(err, reconcile.ErrProtocol) || errors.Is(err, wire.ErrFrame) {
		c.refuse(broken(err))
		return
	}
	c.stream.Reset()
}

// tell sends a refusal.
func (c *carrier) tell(refusal wire.Message) {
	if c.write(wire.Append(nil, refusal)) != nil {
		c.cut()
		return
	}
	_ = c.end(nil) // the refusal is a courtesy: the peer may be gone
}

// broken wraps the error of a read or write in the one that callers test for.
func broken(err error) error {
	switch {
	case err == nil, errors.Is(err, reconcile.ErrProtocol):
		return err
	case errors.Is(err, wire.ErrFrame):
		return fmt.Errorf("%w: %w", reconcile.ErrProtocol, err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: the peer was silent, or too slow, for too long", ErrUnreachable)
	case errors.Is(err, io.EOF), errors.Is(err, network.ErrReset):
		return fmt.Errorf("%w: the connection broke: %w", ErrUnreachable, err)
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// pace sets the deadlines of a stream. A frame may take the idle time-out plus the time
// that its bytes so far take at the least rate. A peer that sends a byte now and then
// prolongs its frame by next to nothing. What this node's own bounds of the bandwidth
// take counts for neither.
type pace struct {
	stream    network.Stream
	idle      time.Duration
	rate      int64 // bytes a second
	throttles throttles
	done      <-chan struct{} // closed when the bytes are of no use any more; nil: never
	part      func()          // called when bytes have come, unless nil

	start time.Time // of the frame being read
	bytes int64     // of it
}

func (p *pace) begin() { p.start, p.bytes = time.Now(), 0 }

func (p *pace) allowance(bytes int64) time.Duration {
	return p.idle + time.Duration(bytes)*time.Second/time.Duration(p.rate)
}

type pacedReader pace

func (r *pacedReader) Read(b []byte) (int, error) {
	p := (*pace)(r)
	if err := p.stream.SetReadDeadline(p.start.Add(p.allowance(p.bytes))); err != nil {
		return 0, err
	}
	if len(p.throttles.receive.limiters) > 0 {
		b = b[:min(len(b), meteredBytes)]
	}
	n, err := p.stream.Read(b)
	p.bytes += int64(n)
	if n > 0 && p.part != nil {
		p.part()
	}
	p.start = p.start.Add(p.throttles.receive.wait(n, p.done))
	return n, err
}

type pacedWriter pace

func (w *pacedWriter) Write(b []byte) (written int, err error) {
	p := (*pace)(w)
	for part := range slices.Chunk(b, p.most(len(b))) {
		p.throttles.send.wait(len(part), p.done)
		if err := p.stream.SetWriteDeadline(time.Now().Add(p.allowance(int64(len(part))))); err != nil {
			return written, err
		}
		n, err := p.stream.Write(part)
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}

// most is how many of n bytes are written at once.
func (p *pace) most(n int) int {
	if len(p.throttles.send.limiters) > 0 {
		n = min(n, meteredBytes)
	}
	return max(1, n)
}
