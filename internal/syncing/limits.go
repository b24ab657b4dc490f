package syncing

import "time"

// Bounds of what a node remembers and decides about syncs, and what each comes from.
const (
	// maxRounds is how many times a sync begins with the data. The last goes on
	// although the lists of members differ: they change meanwhile.
	maxRounds = 3
	// maxSplits is how often a sync goes in parts, one time after the other. What
	// is written meanwhile is less each time, unless the sync is slower than the
	// writes.
	maxSplits = 8
	// partsAtOnce is how many parts are on their way at a time. While the records
	// of one are applied, the cells of the next travel.
	partsAtOnce = 2

	// turnFrom is the default of Bulk.Turn.
	turnFrom = 256
	// TurnFor is for how long a turn is kept in which less than Bulk.Turn records
	// and less than turnBytes of records are applied. A peer that gives 64 KiB a
	// second keeps it.
	TurnFor   = 30 * time.Second
	turnBytes = 1 << 20
	// turnAsked is for how long a peer that was put off counts as one that waits.
	// It is two of the longest pauses between two tries.
	turnAsked = 15 * time.Second
	// TurnRest is how long a peer keeps the turn between two conversations: a part that
	// is dialled anew begins within it. A turn that this node's own call took for less is no
	// reason to rank the peer behind others.
	TurnRest = 2 * time.Second
	// TurnDoubt is for how long a peer is refused that would give many records as
	// far as an estimate tells. Then 2 MiB of cells a minute at the most tell
	// whether it would.
	TurnDoubt = time.Minute
	// TurnPatience is for how long a sync waits for its turn: some gigabytes from
	// another peer. Between two tries it pauses for turnPause at the longest.
	TurnPatience = 10 * time.Minute
	turnPause    = 5 * time.Second

	// BusyPatience is for how long a sync is tried again with a busy peer.
	BusyPatience = 15 * time.Second
	// firstPause is how long a sync waits before it asks a busy peer again: some
	// round trips. Each further pause is half as long again.
	firstPause = 50 * time.Millisecond

	// Remembered is how many syncs the choice of the first cells looks back at. The
	// largest of them decides. So one quiet sync between busy ones costs nothing,
	// and one busy sync ends a quiet time.
	Remembered = 4
	// EqualRest is for how many intervals a pair that was proved equal is not synced, at most.
	EqualRest = 5
	// maxRest is the longest pause after failures, in sync intervals. A set that
	// has to be found equal under its row rests for MovePause at most, also between
	// two rounds: its move waits for it.
	maxRest   = 8
	MovePause = 5 * time.Second
)
