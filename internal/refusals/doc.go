// Package refusals remembers which records were refused in syncs. [Rejections] are
// those that this node refused, for a person to see. [Declined] are those that its
// peers did, so that they do not travel to a peer again with every sync.
//
//	declined.Under(peer, greeting.List)            // by another list it may take them
//	options.Declined = declined.By(peer, now, skew) // what a sync leaves out, and adds to
//
// Both are in memory: after a restart the records are offered, examined and refused
// once more. They are bounded. The zero value of each is ready, and its methods may be
// called from several goroutines. A [Refusal] says why a record is not admitted.
package refusals

import "time"

const (
	// MaxRejections is how many refused records a set remembers; the
	// oldest gives way, and would be fetched and refused once more.
	MaxRejections = 10_000
	// DeclinedLife is for how long a peer's refusal of a record is taken for
	// final. Then the record is offered again: the peer may know its writer by
	// now, or have set its clock. A longer life would hide such a change, a
	// shorter one would send refused records with every sync.
	DeclinedLife = 5 * time.Minute
	// clockSlack is by how much two clocks that are set by the same time servers
	// may differ. A peer may still decline what by this node's clock it would take.
	// A clock may be set back so far without having been wrong.
	clockSlack = 5 * time.Second
)
