package node

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/reconcile"
)

// A namespace that is cut into shards has a set for each of them, with keys of its
// own (reconcile.DeriveShardKeys). What a node keeps of a set apart from its
// records, and what a member pledges of it, is there once for each shard. The list
// of members, the clock and the tickets are there once. A node has the sets of the
// shards that it holds.

// ShardState is what a node keeps of one shard.
type ShardState struct {
	Shard     placement.Shard `cbor:"1,keyasint"`
	Watermark watermark.State `cbor:"2,keyasint"`           // as State.Watermark
	Log       []byte          `cbor:"4,keyasint,omitempty"` // the id of its change log, as in State.Logs
	// Dropped: the node holds the shard no longer. Its records are being deleted, and its kept
	// log stays.
	Dropped bool `cbor:"5,keyasint,omitempty"`
}

// Sharded reports whether the namespace is cut into shards.
func (s *State) Sharded() bool { return len(s.Placement) > 0 }

// rule is how the namespace is cut into shards; nil: it is not.
func (s *State) rule() (*placement.Rule, error) {
	if !s.Sharded() {
		return nil, nil
	}
	return placement.ParseRule(s.Placement)
}

// validateShards checks what a state has of shards, and what depends on whether there are
// any.
func (s *State) validateShards() error {
	rule, err := s.rule()
	if err != nil {
		return err
	}
	logs := logSize
	switch {
	case rule == nil && (len(s.Shards) > 0 || s.Layout != nil):
		return errors.New("shards of a namespace that is not cut into any")
	case rule == nil:
		logs = 2 * logSize
	}
	if len(s.Logs) > 0 && len(s.Logs) != logs {
		return errors.New("malformed ids of change logs")
	}
	for i := range s.Shards {
		one := &s.Shards[i]
		switch {
		case int(one.Shard) >= rule.Shards || i > 0 && one.Shard <= s.Shards[i-1].Shard:
			return errors.New("shards out of order")
		case len(one.Log) > 0 && len(one.Log) != logSize:
			return errors.New("a malformed id of a change log")
		}
		if err := one.Watermark.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Parts are the keys of all that the node has of the namespace. They are those of
// its sets, by shard, also of those that are being deleted, and last that of the
// control namespace.
func (s *State) Parts(secret dbadapter.Secret) (all []reconcile.Keys) {
	if !s.Sharded() {
		all = append(all, reconcile.DeriveKeys(secret, s.Creator))
	}
	for i := range s.Shards {
		all = append(all, reconcile.DeriveShardKeys(secret, s.Root(), uint32(s.Shards[i].Shard)))
	}
	return append(all, reconcile.DeriveControlKeys(secret, s.Root()))
}

// Parts are State.Parts of the namespace: also of shards whose stores could not be opened.
func (ns *Namespace) Parts() []reconcile.Keys { return ns.state.Load().Parts(ns.secret) }

// find is where a shard is among those that are held, or would be.
func (s *State) find(shard placement.Shard) (at int, held bool) {
	return slices.BinarySearchFunc(s.Shards, shard, func(one ShardState, shard placement.Shard) int { return int(one.Shard) - int(shard) })
}

// addShard makes the node one that holds a shard. It may lack what the members held of it. Only where it
// has become a founder of a shard that it had dropped it lacks nothing.
func (s *State) addShard(shard placement.Shard) {
	at, had := s.find(shard)
	if had && !s.Shards[at].Dropped {
		return
	}
	one := ShardState{Shard: shard, Watermark: s.Watermark.Clone()}
	one.Watermark.Recovering, one.Watermark.Lost = true, false
	if had {
		one.Watermark.Recovering = s.Shards[at].Watermark.Recovering
		s.forget(shard)
	}
	s.Shards = slices.Insert(s.Shards, at, one)
}

// found makes the node a founder of a shard that it holds, or of which it is the
// author of the row. The shard is whole, since what the node holds is all that
// counts.
func (s *State) found(shard placement.Shard, author bool) {
	if _, held := s.find(shard); author && !held {
		s.addShard(shard)
	}
	if at, held := s.find(shard); held {
		s.Shards[at].Watermark.Recovering, s.Shards[at].Watermark.Lost = false, false
	}
}

// forget ends what is kept of a shard.
func (s *State) forget(shard placement.Shard) {
	if at, held := s.find(shard); held {
		s.Shards = slices.Delete(s.Shards, at, at+1)
	}
}

// Recover makes all sets of the state ones that recover: they may lack what this node held
// once.
func (s *State) Recover() {
	s.Watermark.Recovering = true
	for i := range s.Shards {
		s.Shards[i].Watermark.Recovering, s.Shards[i].Watermark.Lost = true, true
	}
}

// in is where a state has what it keeps of the set; nil in a namespace without shards.
func (set *Set) in(s *State) *ShardState {
	if set.ns.rule == nil {
		return nil
	}
	at, held := s.find(set.shard)
	if !held {
		return &ShardState{Shard: set.shard} // the set was discarded, and a sync of it ends
	}
	return &s.Shards[at]
}

// markState is where a state has that of the set's watermark.
func (set *Set) markState(s *State) *watermark.State {
	if one := set.in(s); one != nil {
		return &one.Watermark
	}
	return &s.Watermark
}

// shardSize is the length of a shard's number in the key of a pledge.
const shardSize = 2

// pledgeKey is the key of this node's pledge of the set: it ends with the shard, if there
// are shards.
func (set *Set) pledgeKey() []byte {
	key := membership.Key(kindPledge, set.ns.node.ID)
	if set.ns.rule != nil {
		key = binary.BigEndian.AppendUint16(key, uint16(set.shard))
	}
	return key
}

// about is what a key of what a member says of itself names. It is the member, and
// the shard of its pledge; 0 for all else.
func (ns *Namespace) about(key []byte) (by ID, shard placement.Shard) {
	end := len(key) - shardSize
	if ns.rule == nil || key[0] != kindPledge || end < 1 {
		return ID(key[1:]), 0
	}
	return ID(key[1:end]), placement.Shard(binary.BigEndian.Uint16(key[end:]))
}
