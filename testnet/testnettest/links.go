package testnettest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/syncd-io/syncd/peer"
)

// errParted is what a dial across a partition fails with.
var errParted = errors.New("connection refused: a partition")

// links are the ways between the nodes. All dials go through here, so that links
// can break each connection at its dialling side alone.
type links struct {
	nodes map[peer.ID]int // set before the first dial

	mu      sync.Mutex               // guards what follows
	refused map[[2]int]bool          // both ways of a pair
	held    map[[2]int]chan struct{} // one way; closed when it is open again
	open    map[*link]struct{}
}

func newLinks() *links {
	return &links{
		nodes: map[peer.ID]int{}, refused: map[[2]int]bool{},
		held: map[[2]int]chan struct{}{}, open: map[*link]struct{}{},
	}
}

// part refuses these pairs of nodes to one another, and opens all other ways, in one
// step. So no frame passes between one partition and the next. Held bytes pass, in order.
// When part returns it is complete, since enter takes the same lock.
func (l *links) part(pairs [][2]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.refused)
	for _, p := range pairs {
		l.refused[p], l.refused[[2]int{p[1], p[0]}] = true, true
	}
	for way, open := range l.held {
		close(open)
		delete(l.held, way)
	}
	for c := range l.open {
		if l.refused[[2]int{c.from, c.to}] {
			c.abort()
		}
	}
}

// bury breaks all connections of a node.
func (l *links) bury(node int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if c.from == node || c.to == node {
			c.abort()
		}
	}
}

// hold stops all bytes of one way.
func (l *links) hold(from, to int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	way := [2]int{from, to}
	if l.held[way] == nil {
		l.held[way] = make(chan struct{})
	}
}

// passable reports whether two nodes can talk with one another.
func (l *links) passable(a, b int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.refused[[2]int{a, b}] && l.held[[2]int{a, b}] == nil && l.held[[2]int{b, a}] == nil
}

// dialed is called with each connection that a node's host has dialled.
func (l *links) dialed(from int) func(ctx context.Context, to peer.ID, conn net.Conn) (net.Conn, error) {
	return func(ctx context.Context, to peer.ID, conn net.Conn) (net.Conn, error) {
		for {
			c, held, err := l.enter(from, to, conn)
			if held == nil {
				return c, err
			}
			// A network that drops the packets of one way completes no handshake of TCP.
			select {
			case <-held:
			case <-ctx.Done():
				return nil, fmt.Errorf("dial node %d from node %d: no answer: %w", l.nodes[to], from, ctx.Err())
			}
		}
	}
}

// enter adds a connection to its link, or returns the channel to wait for first.
func (l *links) enter(from int, id peer.ID, conn net.Conn) (_ net.Conn, held <-chan struct{}, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to, known := l.nodes[id]
	there, back := [2]int{from, to}, [2]int{to, from}
	switch {
	case !known: // a node that the application has opened itself
		return conn, nil, nil
	case l.refused[there]:
		return nil, nil, fmt.Errorf("dial node %d from node %d: %w", to, from, errParted)
	case l.held[there] != nil:
		return nil, l.held[there], nil
	case l.held[back] != nil:
		return nil, l.held[back], nil
	}
	c := &link{Conn: conn, links: l, from: from, to: to, done: make(chan struct{})}
	l.open[c] = struct{}{}
	return c, nil, nil
}

// gate is the channel to wait for before bytes may pass one way, or nil.
func (l *links) gate(from, to int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[[2]int{from, to}]
}

// link is the dialling side of a connection between two nodes. Writes go from →
// to, reads come to → from; each waits while its way is held. The link loses no
// bytes: TCP would send them again.
type link struct {
	net.Conn
	links    *links
	from, to int
	once     sync.Once
	done     chan struct{} // closed with the connection

	mu          sync.Mutex // guards the deadlines
	read, write time.Time
}

// Read implements net.Conn.
func (c *link) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		if err := c.pass(c.to, c.from, &c.read); err != nil {
			return 0, err
		}
	}
	return n, err
}

// Write implements net.Conn.
func (c *link) Write(b []byte) (int, error) {
	if err := c.pass(c.from, c.to, &c.write); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// pass waits until one way is open. A deadline set during the wait counts from
// the next call on. A read that misses its deadline drops its bytes: TLS and Noise
// do not read on after an error, since their record would be torn.
func (c *link) pass(from, to int, deadline *time.Time) error {
	for {
		open := c.links.gate(from, to)
		if open == nil {
			return nil
		}
		c.mu.Lock()
		at := *deadline
		c.mu.Unlock()
		var late <-chan time.Time
		if !at.IsZero() {
			timer := time.NewTimer(time.Until(at))
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-open:
		case <-late:
			return os.ErrDeadlineExceeded
		case <-c.done:
			return net.ErrClosed
		}
	}
}

// SetDeadline implements net.Conn.
func (c *link) SetDeadline(t time.Time) error {
	c.mu.Lock()
	c.read, c.write = t, t
	c.mu.Unlock()
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *link) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	c.read = t
	c.mu.Unlock()
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *link) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	c.write = t
	c.mu.Unlock()
	return c.Conn.SetWriteDeadline(t)
}

// Close implements net.Conn.
func (c *link) Close() error {
	c.links.mu.Lock()
	delete(c.links.open, c)
	c.links.mu.Unlock()
	return c.shut()
}

// abort breaks the connection. libp2p has set it not to linger, so the other side gets
// a reset, and bytes under way are lost. links.mu is held.
func (c *link) abort() {
	delete(c.links.open, c)
	_ = c.shut() // it is closed already, or is now
}

func (c *link) shut() error {
	c.once.Do(func() { close(c.done) })
	return c.Conn.Close()
}
