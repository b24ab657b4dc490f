package quorum

import (
	"errors"
	"fmt"
	"strconv"
)

// Level says how many hosts of a shard must answer a read, or hold a write durably: Quorum,
// All, or a number. The zero value is Quorum.
type Level int

// The levels. A number above One is for writes alone.
const (
	// Quorum is a majority of the old hosts, whole ones, and a majority of the new hosts. (5, 7)
	Quorum Level = 0
	// One is any host for a write, and the nearest whole old host for a read.
	One Level = 1
	// All is each host of both sets that is neither removed nor lapsed.
	All Level = -1
)

// ErrLevel is returned for a text that is no level.
var ErrLevel = errors.New("not a level")

// ParseLevel reads a level: one, quorum, all or a number; the empty text is Quorum.
func ParseLevel(s string) (Level, error) {
	switch s {
	case "", "quorum":
		return Quorum, nil
	case "one":
		return One, nil
	case "all":
		return All, nil
	case "majority":
		return 0, fmt.Errorf("%w: %q: say quorum", ErrLevel, s)
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%w: %q: want one, quorum, all or a number from 1 on", ErrLevel, s)
	}
	return Level(n), nil
}

// String is the text that ParseLevel reads.
func (l Level) String() string {
	switch l {
	case Quorum:
		return "quorum"
	case One:
		return "one"
	case All:
		return "all"
	}
	return strconv.Itoa(int(l))
}
