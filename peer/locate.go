package peer

import (
	"context"
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/shards"
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

// Ack has a write acknowledged once so many hosts of the key's shard hold it durably; without it,
// a quorum. When the time is over first, the error is ErrUnconfirmed. It says how many hosts hold
// the record, and the version is returned with it. What is written stays, and may still win. In a
// namespace without shards a number counts the members that are to hold it, this node among them.
func Ack(l Level) PutOption { return func(o *putOptions) { o.ack = (*quorum.Level)(&l) } }

// level is what a write asks for.
func level(ack *quorum.Level) quorum.Level {
	if ack == nil {
		return quorum.Quorum
	}
	return *ack
}

// GetOption says how a key is read.
type GetOption func(*getOptions)

type getOptions struct {
	shards.GetOptions
	set bool // a level is named
}

// Read reads at a level: One, Quorum or All.
func Read(l Level) GetOption {
	return func(o *getOptions) { o.Level, o.set = quorum.Level(l), true }
}

// AtLeast has further hosts asked until one has a version or a later one, or has collected up to
// it. What is written is read again so, whatever the level of the write.
func AtLeast(v dbadapter.Version) GetOption {
	return func(o *getOptions) { o.GetOptions.AtLeast = v }
}

func readOptions(options []GetOption) (o getOptions, err error) {
	for _, option := range options {
		option(&o)
	}
	if o.Level > quorum.One {
		return o, fmt.Errorf("%w: a read is at level one, quorum or all", ErrInvalid)
	}
	return o, nil
}

// lookUp finds the record under a key of a namespace that is cut into shards, at its hosts.
func (ns *Namespace) lookUp(ctx context.Context, key []byte, o shards.GetOptions) (shards.Found, error) {
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	found, err := ns.hosts.Get(ctx, key, o)
	ns.node.metrics.LookedUp(found.Requests, err)
	return found, err
}

// getRouted is Get in a namespace that is cut into shards.
func (ns *Namespace) getRouted(ctx context.Context, key []byte, o shards.GetOptions) (rec dbadapter.Record, err error) {
	found, err := ns.lookUp(ctx, key, o)
	if found.Record != nil {
		rec = *found.Record
	}
	switch {
	case err != nil:
		return rec, err
	case found.Record == nil:
		return rec, ErrNotFound
	}
	return rec, ns.core.Absent(found.Record)
}

// write writes drafts to a namespace that is cut into shards, whose keys are of one shard.
func (ns *Namespace) write(ctx context.Context, drafts []node.Draft, l quorum.Level) (shards.Written, error) {
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	w, err := ns.hosts.Put(ctx, drafts, shards.PutOptions{Level: l})
	if err != nil && !errors.Is(err, ErrUnconfirmed) {
		w.Versions = nil
	}
	return w, err
}

// writeShard is a write of one key in a namespace that is cut into shards.
func (ns *Namespace) writeShard(ctx context.Context, what string, d node.Draft) (v dbadapter.Version, err error) {
	if err := ns.enter(what); err != nil {
		return v, err
	}
	defer ns.gate.leave()
	w, err := ns.write(ctx, []node.Draft{d}, level(d.Ack))
	if len(w.Versions) > 0 {
		v = w.Versions[0]
	}
	if item, ok := errors.AsType[*node.ItemError](err); ok {
		err = item.Err
	}
	if err != nil {
		err = fmt.Errorf("%s %q in %s: %w", what, clip(d.Record.Key), ns.Name(), ns.orRemoved(err))
	}
	return v, err
}

// Locate looks a key up in a namespace that is cut into shards, and tells what was asked. The
// result is meaningful with the error, which is ErrTooFew where too few hosts have answered.
func (ns *Namespace) Locate(ctx context.Context, key []byte, options ...GetOption) (l status.Located, err error) {
	if err := ns.enter("locate"); err != nil {
		return status.Located{}, err
	}
	defer ns.gate.leave()
	o, err := readOptions(options)
	if err == nil {
		l, err = ns.locate(ctx, key, o.GetOptions)
	}
	if err = ns.orRemoved(err); err != nil {
		return l, fmt.Errorf("locate %q in %s: %w", clip(key), ns.Name(), err)
	}
	return l, nil
}

func (ns *Namespace) locate(ctx context.Context, key []byte, o shards.GetOptions) (l status.Located, err error) {
	if ns.hosts == nil {
		return l, node.ErrOneShard
	}
	if err := (&dbadapter.Record{Key: key}).Validate(); err != nil {
		return l, err
	}
	found, err := ns.lookUp(ctx, key, o)
	return ns.hosts.Located(key, &found), err
}
