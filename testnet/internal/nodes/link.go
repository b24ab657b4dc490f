package nodes

import (
	"net"
	"os"
	"sync"
	"time"
)

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
