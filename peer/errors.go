package peer

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
)

// Errors that callers branch on, with errors.Is. Some are errors of dbadapter
// and reconcile: errors.Is holds under either name.
var (
	// ErrNotFound: no such key, namespace or peer.
	ErrNotFound = dbadapter.ErrNotFound
	// ErrDeleted: the key holds a tombstone.
	ErrDeleted = dbadapter.ErrDeleted
	// ErrExpired: the key holds a record that has expired.
	ErrExpired = dbadapter.ErrExpired
	// ErrConflict: a conditional write met another version. A dbadapter.ConflictError says which.
	ErrConflict = dbadapter.ErrConflict
	// ErrCorrupt: what was read is not what was written.
	ErrCorrupt = dbadapter.ErrCorrupt
	// ErrFileDamaged: a small file of the node's folder is missing, damaged, or another
	// node's. The text says what to do. It is ErrCorrupt, too.
	ErrFileDamaged = durable.ErrDamaged
	// ErrRepairable: the store of the folder cannot be opened for damage, and offline.Repair is to
	// give the node a new one; it is ErrCorrupt, too.
	ErrRepairable = folder.ErrRepairable
	// ErrLimit: an input or a resource is over a stated bound.
	ErrLimit = dbadapter.ErrLimit
	// ErrNoRoom: the disk has no room for it; it is ErrLimit, too.
	ErrNoRoom = dbadapter.ErrNoRoom
	// ErrAway: the database of the store cannot be reached, and nothing was written;
	// try again.
	ErrAway = dbadapter.ErrAway
	// ErrLocked: the data folder is open already, in this process or another.
	ErrLocked = dbadapter.ErrLocked
	// ErrClosed: the node or namespace has been closed.
	ErrClosed = dbadapter.ErrClosed
	// ErrInvalid: an argument is malformed: a ticket, a name.
	ErrInvalid = node.ErrInvalid
	// ErrExists: a namespace of that name is there already.
	ErrExists = folder.ErrExists
	// ErrHeldHere: this node may alone hold what was written here; what goes on without that
	// has Force in its name or options.
	ErrHeldHere = node.ErrHeldHere
	// ErrNotHandedOver: this node holds shards of which it alone may hold something.
	ErrNotHandedOver = node.ErrNotHandedOver
	// ErrNoMajority: with the member shards would lose the majority of their hosts.
	ErrNoMajority = node.ErrNoMajority
	// ErrDenied: the other side, or this one, is not a member with the role
	// that this takes. A stranger cannot tell "no such namespace" from "not a
	// member".
	ErrDenied = reconcile.ErrDenied
	// ErrRemoved: this node was a member, and has been removed; it is ErrDenied, too.
	ErrRemoved = reconcile.ErrRemoved
	// ErrTwin: two nodes run with one identity, this one's or the peer's: a copy of a
	// data folder. Neither is synced with until one has been stopped.
	ErrTwin = reconcile.ErrTwin
	// ErrUnreachable: no connection to the peer, or it broke; try again.
	ErrUnreachable = reconcile.ErrUnreachable
	// ErrBusy: the peer, or this node, runs as much as it may; try again.
	ErrBusy = reconcile.ErrBusy
	// ErrPaused: a person has paused the namespace, or the syncs with the other side, on
	// this node or on that one. Try again once it was resumed.
	ErrPaused = reconcile.ErrPaused
	// ErrFutureVersion: a version too far in the future, or before 2020. Of a
	// write: this machine's clock is wrong, or was; Restamp mends the latter.
	ErrFutureVersion = hlc.ErrOutOfBounds
	// ErrNotVerified: the sync could not prove that the two sets are equal; run
	// it again.
	ErrNotVerified = reconcile.ErrNotVerified
	// ErrRejected: the sync ran to its end, and one side declined records of the
	// other: the sets are not equal. Rejected, at the side that declined, says
	// which and why.
	ErrRejected = syncing.ErrRejected
	// ErrCursorExpired: the change log reaches no longer back to the cursor, or belongs to a
	// store that was restored or repaired since. Watch FromStart.
	ErrCursorExpired = changes.ErrCursorExpired
	// ErrUnconfirmed: a wait or a write was over before as many members as asked for held what it
	// is about. What is written stays written, and may still win.
	ErrUnconfirmed = shards.ErrUnconfirmed
	// ErrTooFew: fewer hosts have answered than the level takes; try again. It is ErrUnreachable, too.
	ErrTooFew = shards.ErrTooFew
	// ErrLost: the record is there, and by placement writer none of the members that may hold its value
	// has it. All of them have answered.
	ErrLost = bodies.ErrLost
)
