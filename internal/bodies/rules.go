package bodies

import (
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Times of the rules of collection.
const (
	Collectable = time.Hour        // (1) the age from which on a body may be collected
	Acceptable  = 30 * time.Minute // (4) the age up to which a writer's record may name a body

	// Round is the time between two rounds of a host, and FirstRound that before its first one. So what nothing names
	// is gone within three hours, while all answer that may name it.
	Round      = time.Hour
	FirstRound = 5 * time.Minute

	// MaxDenied is how many bodies a round keeps for the next one, so that they take some 20 MiB. Others wait.
	MaxDenied = 1 << 19
)

func age(sent dbadapter.Timestamp, now time.Time) time.Duration { return now.Sub(sent.Time()) }

// MayCollect reports whether a body is old enough to be collected, by its host's clock. (1)
func MayCollect(sent dbadapter.Timestamp, now time.Time) bool { return age(sent, now) > Collectable }

// MayTake reports whether a host takes a record from its writer. held is what the record that it is to
// replace points to; nil: to nothing. (4)
func MayTake(p, held *Pointer, now time.Time) bool {
	return p == nil || held != nil && held.Salt == p.Salt || age(p.Sent, now) <= Acceptable
}

// Rounds are the bodies that nobody named in the round before, and in this one. B names a body, and R the row by which
// members were asked.
type Rounds[B, R comparable] struct{ before, now map[B]R }

// Next begins a round. Between two is more time than a sync takes. (1)
func (r *Rounds[B, R]) Next() { r.before, r.now = r.now, map[B]R{} }

// Denied takes in that all have denied a body that are to answer by a row. gone: they had in the round before. (1, 2)
func (r *Rounds[B, R]) Denied(body B, row R) (gone bool) {
	if at, denied := r.before[body]; denied && at == row {
		return true
	}
	if len(r.now) < MaxDenied {
		r.now[body] = row
	}
	return false
}
