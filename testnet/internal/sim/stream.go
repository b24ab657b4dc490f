package sim

import "time"

// Resending: the sender sends an unacknowledged frame again after resendFirst,
// then at intervals twice as long each time, up to resendMost. TCP does so
// (RFC 6298), and measures round trips, too.
const (
	resendFirst = 200 * time.Millisecond
	resendMost  = 3 * time.Second
)

// Stream is one of the two ends of a connection of frames between two nodes, as a
// transport like TCP makes it over a bad link. Frames arrive once and in order, but
// late, or not while the link is cut.
type Stream struct {
	net      *Net
	id       uint64
	from, to int // this end's node, and the other's
	machine  int // which of the machines that from has been
	peer     *Stream

	sent   uint64
	closed bool // nothing is sent from here, and nothing taken, any more
	dead   bool // nor is anything sent again

	// Frames that have arrived: those before due were handed over, later ones wait.
	due  uint64
	wait map[uint64]arrival

	// Receive is called with each frame, and Broken once, after the last. Either
	// may be nil.
	Receive func(frame []byte)
	Broken  func(err error)
}

type arrival struct {
	frame []byte
	end   bool
}

// Dial opens a stream. When the first frame arrives, accept is called with the
// other end; it returns false if the node does not listen.
func (n *Net) Dial(from, to int, accept func(*Stream) bool) *Stream {
	link := [2]int{from, to}
	n.streams[link]++
	id := uint64(from)<<44 | uint64(to)<<28 | n.streams[link]
	here := &Stream{net: n, id: id << 1, from: from, to: to, machine: n.machines[from]}
	there := &Stream{net: n, id: id<<1 | 1, from: to, to: from, machine: n.machines[to], peer: here}
	here.peer = there
	there.Receive = func(frame []byte) {
		there.Receive = nil
		if !accept(there) {
			there.Reset()
			return
		}
		if there.Receive != nil {
			there.Receive(frame)
		}
	}
	return here
}

// Send sends a frame. The frame must not be changed afterwards.
func (s *Stream) Send(frame []byte) { s.send(arrival{frame: frame}) }

// Close ends the stream after the frames sent, which still arrive.
func (s *Stream) Close() {
	if !s.closed {
		s.send(arrival{end: true})
		s.shut()
	}
}

// Reset breaks the stream off. The other end is told, if the link is not cut.
func (s *Stream) Reset() {
	if s.closed {
		return
	}
	s.shut()
	if s.net.loses(s.from, s.to, s.id, s.sent, 1<<32) {
		return
	}
	s.net.later(s.net.takes(s.id, s.sent, 1<<32), func() { s.peer.broken(ErrReset) })
}

// Vanish ends the stream without a word, as a power cut does.
func (s *Stream) Vanish() {
	s.dead = true
	s.shut()
}

// replaced reports whether the end's machine is another one by now.
func (s *Stream) replaced() bool { return s.machine != s.net.machines[s.from] }

// shut ends receiving and sending at this end. Lost frames are still sent again,
// as by a kernel that outlives its process.
func (s *Stream) shut() {
	s.closed = true
	s.Receive, s.Broken, s.wait = nil, nil, nil
}

func (s *Stream) send(a arrival) {
	if s.closed {
		return
	}
	s.net.frames++
	frame := s.sent
	s.sent++
	s.attempt(a, frame, 0)
}

// attempt sends a frame, and again later if the frame is lost, until the other
// end is closed.
func (s *Stream) attempt(a arrival, frame, attempt uint64) {
	if s.peer.closed || s.dead || s.replaced() || attempt > 40 {
		return
	}
	w := s.net.world
	if s.net.loses(s.from, s.to, s.id, frame, attempt) {
		s.net.later(min(resendFirst<<min(attempt, 8), resendMost), func() { s.attempt(a, frame, attempt+1) })
		return
	}
	s.net.later(s.net.takes(s.id, frame, attempt), func() { s.peer.arrive(a, frame) })
	if w.Chance(s.net.usual.Duplicate, ForDuplicate, s.id, frame, attempt) {
		s.net.later(s.net.takes(s.id, frame, attempt|1<<33), func() { s.peer.arrive(a, frame) })
	}
}

// arrive takes a frame from the link: once, and in order.
func (s *Stream) arrive(a arrival, frame uint64) {
	if s.closed || s.peer.replaced() || frame < s.due {
		return
	}
	if frame > s.due {
		if s.wait == nil {
			s.wait = map[uint64]arrival{}
		}
		s.wait[frame] = a
		return
	}
	for ok := true; ok && !s.closed; {
		s.due++
		if a.end {
			s.broken(ErrEnd)
			return
		}
		if s.Receive != nil {
			s.Receive(a.frame)
		}
		a, ok = s.wait[s.due]
		delete(s.wait, s.due)
	}
}

// broken tells this end that no frame follows.
func (s *Stream) broken(err error) {
	if s.closed {
		return
	}
	tell := s.Broken
	s.shut()
	if tell != nil {
		tell(err)
	}
}
