package locator

import "fmt"

// Shard is the number of a shard, from 0.
type Shard uint16

// Answer is what a look-up knows, and how surely.
type Answer uint8

const (
	// Nowhere: no layer knows the key. It is never said of a key that was fed
	// and not removed.
	Nowhere Answer = iota
	// Removed: the exact map says that the key was removed.
	Removed
	// Exact: the exact map says that the key is in this shard.
	Exact
	// Likely: the key is in this shard if it was ever fed. Of a key that was not,
	// it is said at the rate that Stats tells.
	Likely
	// OneOf: the key is in one of the shards that Candidates lists, or was never
	// fed.
	OneOf
)

func (a Answer) String() string {
	switch a {
	case Nowhere:
		return "nowhere"
	case Removed:
		return "removed"
	case Exact:
		return "exact"
	case Likely:
		return "likely"
	case OneOf:
		return "one of several"
	}
	return fmt.Sprintf("Answer(%d)", uint8(a))
}
