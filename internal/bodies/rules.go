package bodies

import (
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Times of the rules of collection.
const (
	Collectable = time.Hour        // (1) the age from which on a body may be collected
	Acceptable  = 30 * time.Minute // (4) the age up to which a writer's record may name a body

	// Round is the time between two passes of a host over its bodies, and FirstRound that before its first one.
	// So what nothing names is gone within three hours, while all answer that may name it.
	Round      = time.Hour
	FirstRound = 5 * time.Minute
)

func age(sent dbadapter.Timestamp, now time.Time) time.Duration { return now.Sub(sent.Time()) }

// MayCollect reports whether a body is old enough to be collected, by its host's clock. (1)
func MayCollect(sent dbadapter.Timestamp, now time.Time) bool { return age(sent, now) > Collectable }

// MayTake reports whether a host takes a record from its writer. held is what the record that it is to
// replace points to; nil: to nothing. (4)
func MayTake(p, held *Pointer, now time.Time) bool {
	return p == nil || held != nil && held.Salt == p.Salt || age(p.Sent, now) <= Acceptable
}

// Collection asks about one body. M names a member.
type Collection[M comparable] struct {
	again bool
	said  map[M]bool
}

// Says takes a member's answer in. kept: the body stays, and the collection is over. asked are the
// members that are to answer; gone: all of them have said no in two rounds. (1, 2)
func (c *Collection[M]) Says(member M, names bool, asked []M) (kept, gone bool) {
	if names {
		return true, false
	}
	if c.said == nil {
		c.said = map[M]bool{}
	}
	c.said[member] = true
	for _, m := range asked {
		if !c.said[m] {
			return false, false
		}
	}
	gone, c.again, c.said = c.again, true, nil
	return false, gone
}
