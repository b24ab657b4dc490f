package sim

import "time"

// Resending: a frame that is not heard of is sent again after resendFirst,
// then at intervals twice as long each time, up to resendMost. It is TCP's
// habit (RFC 6298) without its measuring of round trips.
const (
	resendFirst = 200 * time.Millisecond
	resendMost  = 3 * time.Second
)

// Stream is one of the two ends of a connection of frames between two nodes,
// as a transport like TCP makes it of a bad link: what arrives does so once
// and in order, but late, or not at all while the link is cut.
type Stream struct {
	net      *Net
	id       uint64
	from, to int // this end's node, and the other's
	peer     *Stream

	sent   uint64
	closed bool // nothing is sent from here, and nothing taken, any more
	dead   bool // nor is anything sent again

	// What has come: frames before due were handed over, those after it wait.
	due  uint64
	wait map[uint64]arrival

	// Receive is called with each frame that comes, and Broken once, when no
	// more will. Either may be nil.
	Receive func(frame []byte)
	Broken  func(err error)
}

type arrival struct {
	frame []byte
	end   bool
}

// Dial opens a stream. The other end comes alive with the first frame that
// arrives; accept is then called with it, and gives false if nobody listens.
func (n *Net) Dial(from, to int, accept func(*Stream) bool) *Stream {
	link := [2]int{from, to}
	n.streams[link]++
	id := uint64(from)<<44 | uint64(to)<<28 | n.streams[link]
	here := &Stream{net: n, id: id << 1, from: from, to: to}
	there := &Stream{net: n, id: id<<1 | 1, from: to, to: from, peer: here}
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

// Close ends the stream after what has been sent: it arrives still.
func (s *Stream) Close() {
	if !s.closed {
		s.send(arrival{end: true})
		s.shut()
	}
}

// Reset cuts the stream off. The other end hears of it, if the link lets that
// through.
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

// shut makes this end deaf and dumb. What it has sent is sent again where it
// gets lost: a kernel outlives its process.
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

// attempt sends a frame, and again later if it gets lost, until the other end
// is closed.
func (s *Stream) attempt(a arrival, frame, attempt uint64) {
	if s.peer.closed || s.dead || attempt > 40 {
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

// arrive takes in a frame that has come over the link: once, and in order.
func (s *Stream) arrive(a arrival, frame uint64) {
	if s.closed || frame < s.due {
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

// broken tells this end that nothing more will come.
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
