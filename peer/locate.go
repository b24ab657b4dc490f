package peer

import (
	"context"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/peer/status"
)

// Level is how many hosts of a key's shard must hold a write durably, or answer a read: Quorum, All
// or a number. The zero value is Quorum.
type Level int

// The levels. Quorum: a read finds what a write at level quorum has acknowledged before the read began, or
// something later. One of three hosts may fail. One: the nearest host answers; what it gives may be behind. All:
// each host that is neither removed nor lapsed.
const (
	Quorum = Level(quorum.Quorum)
	One    = Level(quorum.One)
	All    = Level(quorum.All)
)

// String is the text that UnmarshalText reads.
func (l Level) String() string { return quorum.Level(l).String() }

// UnmarshalText reads a level: "one", "quorum", "all" or a number; the empty text is Quorum.
func (l *Level) UnmarshalText(b []byte) error {
	read, err := quorum.ParseLevel(string(b))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	*l = Level(read)
	return nil
}

// Locate looks a key up in a namespace that is cut into shards, and tells what was asked. The
// result is meaningful with the error, which is ErrTooFew where too few hosts have answered.
func (ns *Namespace) Locate(ctx context.Context, key []byte, options ...GetOption) (l status.Located, err error) {
	err = ns.within(ctx, fmt.Sprintf("locate %q in", clip(key)), func(ctx context.Context) error {
		o, err := readOptions(options)
		switch {
		case err != nil:
			return err
		case ns.hosts == nil:
			return node.ErrOneShard
		}
		if err := (&dbadapter.Record{Key: key}).Validate(); err != nil {
			return err
		}
		found, err := ns.lookUp(ctx, key, o.GetOptions)
		l = ns.hosts.Located(key, &found)
		return ns.orRemoved(err)
	})
	return l, err
}
