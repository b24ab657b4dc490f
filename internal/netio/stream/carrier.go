package stream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/multiformats/go-varint"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

const (
	// firstTimeout is how long a stream may wait for its first message.
	firstTimeout = 10 * time.Second
	// lingerBytes is what a peer may still send to a side that has broken off the sync, before it is cut off.
	// It is a list of marks, or a record of the greatest size, and what follows. The constant lingerTimeout is
	// for how long: several round trips.
	lingerBytes   = 2 << 20
	lingerTimeout = 2 * time.Second
)

// Options say how a stream is carried.
type Options struct {
	// Idle is how long the peer may stay silent, or accept no byte.
	Idle time.Duration
	// MinRate is the rate, in bytes a second, that a frame may not fall below after Idle.
	MinRate int
	// Bandwidth bounds the bytes a second; nil: nothing does.
	Bandwidth *Bandwidth
	// Done, once closed, ends the waits for the bandwidth; nil: nothing does.
	Done <-chan struct{}
	// Calls: this side has begun the sync.
	Calls bool
	// Buffer is how many bytes are gathered before they are written. Default: 64 KiB.
	Buffer int
}

// Carrier carries a session over a stream, frame by frame, each under a
// deadline. Only one side sends at a time (see package reconcile), so that one
// goroutine reads and writes in turn.
type Carrier struct {
	stream  network.Stream
	in      *bufio.Reader
	out     *bufio.Writer
	pace    pace
	begun   bool          // a session has run
	over    bool          // the stream is closed or reset
	calls   bool          // this side has begun the sync
	broken  bool          // nothing can be read from the peer any more
	refused bool          // this side has said why it ends the session
	gone    chan struct{} // closed when the peer gives up a question; nil unless it waits
}

// New makes the carrier of a stream, which it ends in any case: Run does, and of the others
// the last call must be Close, Cut, Refuse or Reply.
func New(s network.Stream, o Options) *Carrier {
	if o.Buffer == 0 {
		o.Buffer = 64 << 10
	}
	metered := o.Bandwidth.Meter(s, o.Done)
	c := &Carrier{stream: metered, calls: o.Calls, pace: pace{stream: metered, idle: o.Idle, rate: int64(o.MinRate)}}
	c.in = bufio.NewReaderSize((*pacedReader)(&c.pace), min(o.Buffer, 32<<10))
	c.out = bufio.NewWriterSize((*pacedWriter)(&c.pace), o.Buffer)
	return c
}

// Begun reports whether a session has run: the peer knows how it ended.
func (c *Carrier) Begun() bool { return c.begun }

// Over reports whether the stream is closed or reset.
func (c *Carrier) Over() bool { return c.over }

// Run drives the session to its end, and closes the stream. It resets the stream
// when the context ends.
func (c *Carrier) Run(ctx context.Context, s *reconcile.Session, progress func(reconcile.Report)) (err error) {
	c.begun = true
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { c.stream.Reset() })
	defer stop()
	c.pace.stream.done = ctx.Done()
	for {
		switch e := s.Next(); e.Want {
		case reconcile.WantSend:
			_, c.refused = e.Message.(*wire.Refuse)
			err := c.write(e.Frame)
			if err == nil && e.Flush {
				err = broken(c.out.Flush())
			}
			if err != nil {
				err = c.lastWord(err)
				c.Cut()
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

// Cut resets the stream, unless it is closed.
func (c *Carrier) Cut() {
	if !c.over {
		c.over = true
		c.stream.Reset()
	}
}

// Close flushes what is written, and closes the stream.
func (c *Carrier) Close() error { return c.end(nil) }

// end flushes the session's last message, which may be a refusal, and closes the
// stream. The error of a session that failed goes before one from here.
func (c *Carrier) end(failed error) error {
	err := c.out.Flush()
	switch {
	case c.broken || c.calls && errors.Is(failed, reconcile.ErrTurn):
		// The peer may be sending all that it has. Over TCP it would not hear that this
		// side reads no more, and wait for its deadline.
		c.Cut()
	case err != nil:
		err = c.lastWord(broken(err))
		c.Cut()
	case c.refused && c.stream.Conn().ConnState().Transport != "quic-v1":
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
// send, or says nothing, is reset: nothing waits for its deadline, nor for the bandwidth.
func (c *Carrier) linger() {
	c.over = true
	if c.stream.CloseWrite() == nil && c.stream.SetReadDeadline(time.Now().Add(lingerTimeout)) == nil {
		if _, err := io.CopyN(io.Discard, c.pace.stream.Stream, lingerBytes); errors.Is(err, io.EOF) {
			_ = c.stream.Close() // both sides have
			return
		}
	}
	c.stream.Reset()
}

func (c *Carrier) write(frame []byte) error {
	_, err := c.out.Write(frame)
	return broken(err)
}

// receive flushes what is written and reads a frame.
func (c *Carrier) receive() (wire.Message, int, error) {
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
func (c *Carrier) lastWord(failed error) error {
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

// First reads the first frame of a peer that has proved no more than its id, a message of
// type M. It has less time than later frames, and less room: at most so many bytes.
func First[M wire.Message](c *Carrier, most uint64) (m M, size int, err error) {
	idle := c.pace.idle
	c.pace.idle = min(idle, firstTimeout)
	defer func() { c.pace.idle = idle }()
	c.pace.begin()
	length, err := c.peekLength()
	if err == nil && length > most {
		err = fmt.Errorf("%w: a first message of more than %d bytes", wire.ErrFrame, most)
	}
	if err != nil {
		return m, 0, broken(err)
	}
	return Next[M](c)
}

// Next reads a frame, a message of type M.
func Next[M wire.Message](c *Carrier) (m M, size int, err error) {
	c.pace.begin()
	any, size, err := wire.Read(c.in)
	if err == nil {
		var ok bool
		if m, ok = any.(M); !ok {
			err = fmt.Errorf("%w: a message of kind %d, where a %T is due", wire.ErrFrame, any.Kind(), m)
		}
	}
	return m, size, broken(err)
}

// Await flushes what is written, and waits for the next frame for as long as the silence
// lasts. It returns the frame's length, and leaves the frame unread. io.EOF says that the
// peer has closed its side.
func (c *Carrier) Await(silence time.Duration) (length uint64, err error) {
	if err := c.out.Flush(); err != nil {
		return 0, broken(err)
	}
	c.pace.start, c.pace.bytes = time.Now().Add(silence-c.pace.idle), 0
	if _, err := c.in.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		return 0, broken(err)
	}
	c.pace.begin()
	length, err = c.peekLength()
	return length, broken(err)
}

// peekLength reads the length of a frame and leaves it unread. It waits for no
// byte behind the length: a frame may be shorter than the longest length.
func (c *Carrier) peekLength() (uint64, error) {
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

// Write gathers a frame to be sent. Where that fails, it cuts the stream.
func (c *Carrier) Write(frame []byte) error {
	err := c.write(frame)
	if err != nil {
		c.Cut()
	}
	return err
}

// Exchange sends a frame and receives one. It cuts the stream where that fails, and when the
// context ends; then the error is the context's cause.
func (c *Carrier) Exchange(ctx context.Context, frame []byte) (m wire.Message, err error) {
	stop := context.AfterFunc(ctx, func() { c.stream.Reset() })
	done := c.pace.stream.done
	c.pace.stream.done = ctx.Done()
	if err = c.write(frame); err != nil {
		err = c.lastWord(err)
	} else {
		m, _, err = c.receive()
	}
	c.pace.stream.done = done
	if !stop() || err != nil {
		c.Cut()
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return m, err
}

// Reply sends a message, and closes the stream.
func (c *Carrier) Reply(m wire.Message) {
	if c.Write(wire.Append(nil, m)) == nil {
		_ = c.end(nil) // the peer has what it asked for, or is gone
	}
}

// Refuse sends the reason why a peer does not get what it asks for, and closes the stream. If
// the reason is that the stream has broken, it resets the stream.
func (c *Carrier) Refuse(reason error) {
	if errors.Is(reason, reconcile.ErrUnreachable) {
		c.Cut()
		return
	}
	c.Reply(reconcile.Refusal(reason))
}

// Watch returns what is closed when the peer gives up, while this side has nothing to read
// or to write. Unwatch must follow once the stream is over.
func (c *Carrier) Watch() (gone <-chan struct{}) {
	if c.gone == nil {
		c.gone = make(chan struct{})
		_ = c.stream.SetReadDeadline(time.Time{})
		go func() {
			defer close(c.gone)
			_, _ = io.CopyN(io.Discard, c.pace.stream.Stream, 1)
		}()
	}
	return c.gone
}

// Unwatch ends a watch, if there is one.
func (c *Carrier) Unwatch() {
	if c.gone != nil {
		<-c.gone
	}
}

// broken wraps the error of a read or write in the one that callers test for.
func broken(err error) error {
	switch {
	case err == nil, errors.Is(err, reconcile.ErrProtocol):
		return err
	case errors.Is(err, wire.ErrFrame):
		return fmt.Errorf("%w: %w", reconcile.ErrProtocol, err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: the peer was silent, or too slow, for too long", reconcile.ErrUnreachable)
	case errors.Is(err, io.EOF), errors.Is(err, network.ErrReset):
		return fmt.Errorf("%w: the connection broke: %w", reconcile.ErrUnreachable, err)
	}
	return fmt.Errorf("%w: %w", reconcile.ErrUnreachable, err)
}

// pace sets the deadlines of a stream. A frame may take the idle time-out plus the time
// that its bytes so far take at the least rate. A peer that sends a byte now and then
// prolongs its frame by next to nothing. What this node's own bounds of the bandwidth
// take counts for neither.
type pace struct {
	stream *Metered
	idle   time.Duration
	rate   int64 // bytes a second

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
	before := p.stream.waited
	n, err := p.stream.Read(b)
	p.bytes += int64(n)
	p.start = p.start.Add(p.stream.waited - before)
	return n, err
}

type pacedWriter pace

func (w *pacedWriter) Write(b []byte) (written int, err error) {
	p := (*pace)(w)
	if err := p.stream.SetWriteDeadline(time.Now().Add(p.allowance(int64(len(b))))); err != nil {
		return 0, err
	}
	return p.stream.Write(b)
}
