package wire

import (
	"encoding/binary"

	"github.com/syncd-io/syncd/dbadapter"
)

// GreetingSize is the length of a Greeting on the wire.
const GreetingSize = 48

// Greeting is what a side says of itself besides what it holds. This package and the
// sync carry it; a node acts upon it.
type Greeting struct {
	// List is the digest of the side's list of members.
	List [16]byte
	// Tau promises that the set of this sync holds every version of the side's
	// own up to here. 0 promises nothing.
	Tau dbadapter.Timestamp
	// Floor is up to where the side has collected tombstones and expired
	// records.
	Floor dbadapter.Timestamp
	// Incarnation is drawn at random each time the side's node starts.
	Incarnation uint64
	// Time is the side's wall clock, in milliseconds since 1970.
	Time uint64
}

func (g *Greeting) appendTo(b []byte) []byte {
	b = append(b, g.List[:]...)
	for _, n := range [...]uint64{uint64(g.Tau), uint64(g.Floor), g.Incarnation, g.Time} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func (p *parser) greeting() (g Greeting) {
	b := p.take(GreetingSize)
	if b == nil {
		return g
	}
	copy(g.List[:], b)
	number := func(n int) uint64 { return binary.BigEndian.Uint64(b[len(g.List)+8*n:]) }
	g.Tau, g.Floor, g.Incarnation, g.Time = dbadapter.Timestamp(number(0)), dbadapter.Timestamp(number(1)), number(2), number(3)
	return g
}
