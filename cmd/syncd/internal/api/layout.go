package api

import (
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// Placement says how a namespace is cut into shards.
type Placement struct {
	Kind     string        `json:"kind" doc:"what says which shard a key belongs to: hash, a hash of it; prefix, the longest of its prefixes that the table has, and the hash of a key without one; or writer, a hash of it, while large values stay in shards of the nodes that write them"`
	Shards   int           `json:"shards" doc:"a power of two from 2 to 4096"`
	Replicas int           `json:"replicas" doc:"how many members are to hold each shard, 1 to 16"`
	Prefixes []PrefixShard `json:"prefixes,omitempty" doc:"of the kind prefix: keys that begin so belong to the shard"`
	Inline   *int          `json:"inline,omitempty" minimum:"0" maximum:"65536" doc:"of the kind writer: up to how many bytes a value is in its record; absent: 1024"`
	Locator  bool          `json:"locator,omitempty" doc:"hosts tell all members which keys their shards hold, so that a read at level one of a key that there is not takes no request"`
}

// PrefixShard is a line of the table of the kind prefix.
type PrefixShard struct {
	Prefix   string `json:"prefix,omitempty" doc:"keys that begin so, if it is UTF-8"`
	Prefix64 []byte `json:"prefix64,omitempty" doc:"the prefix, if it is not"`
	Shard    int    `json:"shard"`
}

// PrefixShardOf is the JSON form of a line.
func PrefixShardOf(prefix []byte, shard int) PrefixShard {
	if utf8.Valid(prefix) {
		return PrefixShard{Prefix: string(prefix), Shard: shard}
	}
	return PrefixShard{Prefix64: prefix, Shard: shard}
}

// Bytes are the prefix's bytes.
func (p *PrefixShard) Bytes() []byte {
	if p.Prefix != "" {
		return []byte(p.Prefix)
	}
	return p.Prefix64
}

// Peer is the placement as the library takes it.
func (p *Placement) Peer() *peer.Placement {
	if p == nil {
		return nil
	}
	out := &peer.Placement{Kind: p.Kind, Shards: p.Shards, Replicas: p.Replicas, Inline: p.Inline, Locator: p.Locator}
	if len(p.Prefixes) > 0 {
		out.Prefixes = map[string]int{}
	}
	for _, one := range p.Prefixes {
		out.Prefixes[string(one.Bytes())] = one.Shard
	}
	return out
}

func placementOf(p *peer.Placement) *Placement {
	if p == nil {
		return nil
	}
	out := &Placement{Kind: p.Kind, Shards: p.Shards, Replicas: p.Replicas, Inline: p.Inline, Locator: p.Locator}
	for _, prefix := range slices.Sorted(maps.Keys(p.Prefixes)) {
		out.Prefixes = append(out.Prefixes, PrefixShardOf([]byte(prefix), p.Prefixes[prefix]))
	}
	return out
}

// Forced is what a forced layout has named.
type Forced struct {
	Shards []status.Left `json:"shards" doc:"those that have lost a majority of their old hosts; none: nothing was changed"`
}

// Reindexed is how many records were handed to the hosts of their keys.
type Reindexed struct {
	Records int `json:"records" doc:"those that this node was told as a host of large values; a majority of the hosts of its key has each"`
}
