package roster

// Bounds of what a set of statements costs, and what each comes from.
const (
	// MaxValue is the longest statement in bytes: 64 heads take 2,176, two ids 80.
	MaxValue = 4 << 10
	// MaxPlacement bounds what a founding says of shards, in bytes; MaxValue has room for it
	// and a policy.
	MaxPlacement = 2 << 10
	// MaxHeads is how many heads a statement may name. Honest nodes make one head
	// out of all that they see, so that more come only from forks.
	MaxHeads = 64
	// MaxMembers keeps a list, and what is computed from it with each sync, small.
	// Only Make heeds it: two admins apart may pass it together.
	MaxMembers = 1000
	// MaxStatements bounds a set, without what is void: 64 changes of each of 1,000
	// members. What is beyond founderReserve is left to the founder, so that a set
	// that an admin has filled can still lose that admin.
	MaxStatements  = 65_536
	founderReserve = 4_096
	// MaxBytes bounds the same statements in bytes, of which the founder alone has the
	// last sixteenth: MaxStatements that name one head each take 13 MiB.
	MaxBytes = 16 << 20
	// MaxPerAuthor bounds what an admin can add to the set, without what is void.
	MaxPerAuthor = 16_384
	// MaxVoid is how many statements are kept that neither stand nor are reached
	// by one that does. They are shown, and change nothing. Twice as many are there
	// between two Sheds, and more while members' statements wait that name them.
	MaxVoid = 1_024
	// MaxWaiting and MaxWaitingPerAuthor bound the statements that wait for others
	// which they name. These are of authors that are no admins as far as the set tells:
	// 16 MiB at most. MaxWaitingBytes bounds those of admins: some 60,000 ordinary
	// ones, so that nearly a whole set can come in any order.
	MaxWaiting          = 4_096
	MaxWaitingPerAuthor = 64
	MaxWaitingBytes     = 16 << 20
	// maxOwn is how many removals of itself and returns of a member count, the
	// lowest hashes. They take no admin's grant, so that a former member could
	// make any number of them.
	maxOwn = 256
	// maxSeats is how many seats of a member count, the lowest hashes. It bounds the
	// work for a member that many admins have made an admin.
	maxSeats = 16
)

// bounds are those of a set; tests have sets with lower ones.
type bounds struct{ statements, bytes, reserve, perAuthor, void int }

var standardBounds = bounds{MaxStatements, MaxBytes, founderReserve, MaxPerAuthor, MaxVoid}

// most is how many statements a set ever has, void ones included. It drops void ones
// when it has taken the next.
func (b bounds) most() int { return b.statements + b.perAuthor }
