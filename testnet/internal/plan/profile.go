package plan

import "slices"

// Profile is a mixture of faults.
type Profile string

// The profiles.
const (
	// Calm has no faults.
	Calm Profile = "calm"
	// Rough has losses, cuts, partitions, crashes and freezes.
	Rough Profile = "rough"
	// Clocks has jumps, clocks that stand still, and restarts.
	Clocks Profile = "clocks"
	// Disks has crashes, copies, restores, flipped bits and full disks.
	Disks Profile = "disks"
	// Members has changes of the list of members by several admins, with partitions,
	// crashes, restores, and clocks that are hours wrong.
	Members Profile = "members"
	// Ranges has damage of what nodes keep of their records for syncs, and of the cells of
	// single syncs. It has crashes, restores, cuts, losses and partitions, too. In a third
	// of the plans checksums collide; in a fourth members grind keys to one index.
	Ranges Profile = "ranges"
	// Live has pushes, with losses, cuts, partitions, crashes, restores, freezes and clocks
	// that jump. Members ask one another, and wait for one another, as in half of the plans
	// of Members and Mixed.
	Live Profile = "live"
	// Shards has a namespace that is cut into shards, which is read and written at any node at
	// all levels. It has losses, cuts, partitions, crashes, restores, freezes and clocks that
	// jump. Members are removed, come, lapse and return, and admins change them apart from one
	// another.
	Shards Profile = "shards"
	// Writer is Shards by placement writer, with values in their records and with bodies. In
	// most plans hours pass between its parts, so that bodies are collected.
	Writer Profile = "writer"
	// Mixed is, by the seed, one of the others but Ranges, Live, Shards and Writer, or all of
	// them at once. In every third plan admins change the list of members, too.
	Mixed Profile = "mixed"
)

// Profiles lists all of them.
func Profiles() []Profile {
	return []Profile{Calm, Rough, Clocks, Disks, Members, Ranges, Live, Shards, Writer, Mixed}
}

// eventsPerFault is the most events of one fault: the fault, and its end.
const eventsPerFault = 3

// faults are the verbs that a profile draws from, each as often as it stands
// here.
var faults = map[Profile][]Verb{
	Rough:  {Cut, Cut, Loss, Loss, Partition, Crash, Crash, CrashAt, CrashAt, Freeze, Replay, Old},
	Clocks: {Skew, Skew, Skew, StopClock, StopClock, Freeze, Crash, Restore},
	Disks:  {Crash, Crash, CrashAt, CrashAt, Restore, Restore, RestoreBackup, Flip, Full},
	Ranges: {
		FlipCell, FlipCell, FlipCell, FlipSum, FlipSum, FlipSum, FlipSum, Phantom, Phantom, FalsePeel, FalsePeel, ShortCheck, ShortCheck,
		Crash, CrashAt, CrashAt, Restore, Partition, Cut, Loss,
	},
	Live:    {Partition, Partition, Cut, Loss, Loss, Crash, CrashAt, Restore, RestoreBackup, Freeze, Skew, StopClock},
	Shards:  {Partition, Partition, Cut, Loss, Crash, Crash, CrashAt, CrashAnswering, RestoreBackup, Freeze, Skew, StopClock},
	Members: {Partition, Partition, Partition, Cut, Loss, Crash, CrashAt, Restore, Restore, Skew, Skew, Freeze},
}

// drawn are the verbs of the profile, or for mixed those that the seed chooses.
func (p Profile) drawn(d *draw) []Verb {
	if p == "" || p == Mixed {
		all := []Profile{Calm, Rough, Clocks, Disks, Members}
		n := d.IntN(len(all) + 2)
		if n >= len(all) { // two times of seven
			return slices.Concat(faults[Rough], faults[Clocks], faults[Disks])
		}
		p = all[n]
	}
	if p == Writer {
		p = Shards
	}
	if p == Shards && d.IntN(8) == 0 { // what was put back by hand no node knows of: little is promised then
		return append(slices.Clone(faults[p]), Restore)
	}
	return faults[p]
}
