package directory

import "time"

// Bounds, each with its reason.
const (
	// MaxEvents is the most events of one News: with 18 bytes each at most, and the sums of
	// placement.MaxShards sets, it stays below 160 KiB.
	MaxEvents = 4096

	// LogEvents is how many events a Host keeps, of all of its sets: some 3 MiB. A node that
	// was away for as many changes compares sums, and fetches anew what differs.
	LogEvents = 1 << 16

	// MaxMessage is the longest message in bytes. A Block stays below 48 KiB.
	MaxMessage = 256 << 10

	// Fresh is for how long what a host has told counts: a Locator says that a key is
	// nowhere only if it has heard within that time of all hosts that could know better. A
	// driver that wants such answers polls at least twice as often.
	Fresh = 5 * time.Second

	// MaxWait is for how long a poll without news waits at a host. The answer tells of the time at
	// which the poll was sent, and the next one waits as long: what is known is up to twice as old
	// and a round trip, which leaves 2 s of Fresh.
	MaxWait = 1500 * time.Millisecond

	// MaxSteps is how many polls and takes of one host there are in a turn: 12 MiB of blocks at
	// most.
	MaxSteps = 256

	// MaxDiff is how many keys a host may place elsewhere than the copy does, until it
	// counts as one of which nothing is known: some 100 bytes each. Honest hosts differ in
	// what they have not told one another yet.
	MaxDiff = 1 << 12

	// leastOver is how many changes over sorted rows are merged into them at the least, and
	// leastExact how many entries the index has over its base when that is built anew.
	leastOver  = 1 << 10
	leastExact = 1 << 12

	// maxUnsaved is how many sets in one piece of work may fail to be saved until it saves no more.
	maxUnsaved = 4

	// MaxLoads is how many sets are on their way at once: 50 MiB of rows at 10^8 keys in 256
	// sets.
	MaxLoads = 16

	// MaxSet is the most entries of a set that a node takes: 128 MiB of rows. While more than
	// that are on their way, one set at a time is asked for, so that all of them take twice as
	// much at most.
	MaxSet = 1 << 24

	// maxLaid is how many indices of a set may change while it comes, some 50 bytes each: at
	// 1,000 changes a second that takes 17 minutes.
	maxLaid = 1 << 20

	// maxRest is the longest time for which a host that has contradicted itself, or has not sent a set,
	// is not asked for sets. Its failures count no longer once it has had none for forgiven.
	maxRest  = 10 * time.Minute
	forgiven = time.Hour

	// maxRecent is how many writes of this node are kept for twice Fresh, some 10 MiB: with more
	// than 13,000 a second no key is nowhere here meanwhile.
	maxRecent = 1 << 18
)
