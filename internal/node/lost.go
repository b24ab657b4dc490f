package node

import (
	"errors"
	"slices"
	"time"

	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/peer/status"
)

// Lost says that the store of this node was damaged and made anew, and what that has cost.
// Members give back what they hold by syncs. What this node alone had written is lost for
// good, and nothing tells whether there was any: so it is kept in the state until a person
// accepts it.
type Lost struct {
	// Records is how many records were missing from the new store; -1: that is not known.
	Records int64 `cbor:"2,keyasint"`
	// At is when it was made, in Unix milliseconds.
	At int64 `cbor:"7,keyasint"`
	// Shards are those of which records were missing, ascending, in a namespace of shards.
	Shards []placement.Shard `cbor:"8,keyasint,omitempty"`
}

// Status is what users read of it; nil of nothing.
func (l *Lost) Status() *status.Lost {
	if l == nil {
		return nil
	}
	out := &status.Lost{Records: l.Records, At: time.UnixMilli(l.At).UTC()}
	for _, shard := range l.Shards {
		out.Shards = append(out.Shards, uint32(shard))
	}
	return out
}

func (l *Lost) clone() *Lost {
	if l == nil {
		return nil
	}
	c := *l
	c.Shards = slices.Clone(l.Shards)
	return &c
}

func (l *Lost) validate() error {
	if l != nil && (l.Records < -1 || len(l.Shards) > placement.MaxShards) {
		return errors.New("what is lost is over its bounds")
	}
	return nil
}

// Lose notes that the store was made anew. missing is how many records each of the parts
// lacks, of which the control namespace is the last; -1: that is not known.
func (s *State) Lose(missing []int64, now time.Time) {
	l := &Lost{At: now.UnixMilli()}
	if s.Lost != nil {
		l = s.Lost.clone()
	}
	for i, n := range missing {
		if n < 0 || l.Records < 0 {
			l.Records = -1
		} else {
			l.Records += n
		}
		if n != 0 && i < len(s.Shards) && !slices.Contains(l.Shards, s.Shards[i].Shard) {
			l.Shards = append(l.Shards, s.Shards[i].Shard)
		}
	}
	slices.Sort(l.Shards)
	s.Lost = l
}

// Lost is what damage to the store has cost; nil if nothing, or if that was accepted.
func (ns *Namespace) Lost() *Lost { return ns.state.Load().Lost.clone() }

// AcceptLoss ends what is said of a loss.
func (ns *Namespace) AcceptLoss() error {
	if ns.Lost() == nil {
		return nil
	}
	return ns.update(func(s *State) error {
		s.Lost = nil
		return nil
	})
}

// recovers reports whether one of the sets recovers.
func (ns *Namespace) recovers() bool {
	return slices.ContainsFunc(ns.Sets(), (*Set).Recovers)
}
