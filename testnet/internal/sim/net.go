package sim

import (
	"errors"
	"time"
)

// Behaviour is how a link treats what is sent over it.
type Behaviour struct {
	// A frame takes Delay and up to Jitter more.
	Delay, Jitter time.Duration
	// Loss, Duplicate and Reorder are probabilities for each frame.
	Loss, Duplicate, Reorder float64
}

// Net carries streams between nodes. Each direction of each link is cut and
// lossy on its own.
type Net struct {
	world   *World
	usual   Behaviour
	cut     map[[2]int]bool
	loss    map[[2]int]float64
	streams map[[2]int]uint64 // opened so far, by the nodes (from, to)
	// machines is how often a node has been given another machine.
	machines map[int]int
	frames   int
	flying   int
}

// NewNet is a net in which all links are up.
func NewNet(w *World, b Behaviour) *Net {
	return &Net{world: w, usual: b, cut: map[[2]int]bool{}, loss: map[[2]int]float64{}, streams: map[[2]int]uint64{}, machines: map[int]int{}}
}

// Cut loses all frames from one node to another, until Heal.
func (n *Net) Cut(from, to int) { n.cut[[2]int{from, to}] = true }

// Lossy loses that share of the frames on one link, in place of the usual share.
func (n *Net) Lossy(from, to int, share float64) { n.loss[[2]int{from, to}] = share }

// Heal ends a cut of a direction, and its loss beyond the usual.
func (n *Net) Heal(from, to int) {
	delete(n.cut, [2]int{from, to})
	delete(n.loss, [2]int{from, to})
}

// HealAll heals all links.
func (n *Net) HealAll() {
	clear(n.cut)
	clear(n.loss)
}

// Calm ends all usual loss as well: frames sent from now on arrive.
func (n *Net) Calm() { n.usual.Loss = 0 }

// Replace gives a node another machine: what the old one has sent, and has not arrived,
// never does.
func (n *Net) Replace(node int) { n.machines[node]++ }

// Frames is how many frames have been sent.
func (n *Net) Frames() int { return n.frames }

// Flying is how many frames, or ends of streams, are under way or will be sent
// again. Frames of an abandoned session may still arrive.
func (n *Net) Flying() int { return n.flying }

// later calls happen in d, and counts a frame under way until then.
func (n *Net) later(d time.Duration, happen func()) {
	n.flying++
	n.world.After(d, func() {
		n.flying--
		happen()
	})
}

// loses reports whether a frame that is sent now is lost.
func (n *Net) loses(from, to int, stream, frame, attempt uint64) bool {
	link := [2]int{from, to}
	if n.cut[link] {
		return true
	}
	share, own := n.loss[link]
	if !own {
		share = n.usual.Loss
	}
	return share > 0 && n.world.Chance(share, ForLoss, stream, frame, attempt)
}

// takes is how long a frame is under way.
func (n *Net) takes(stream, frame, attempt uint64) time.Duration {
	d := n.usual.Delay + n.world.Between(0, n.usual.Jitter, ForDelay, stream, frame, attempt)
	if n.world.Chance(n.usual.Reorder, ForReorder, stream, frame, attempt) {
		d += 2*(n.usual.Delay+n.usual.Jitter) + time.Millisecond // what is sent next overtakes it
	}
	return d
}

// Errors that a stream ends with.
var (
	// ErrReset: the other side, or its machine, has cut the stream off.
	ErrReset = errors.New("the stream was reset")
	// ErrEnd: the other side has closed, after its last frame.
	ErrEnd = errors.New("the stream has ended")
)
