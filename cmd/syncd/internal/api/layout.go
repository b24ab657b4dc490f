package api

import (
	"time"
	"unicode/utf8"

	"github.com/syncd-io/syncd/peer"
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
	for _, one := range p.Prefixes {
		out.Prefixes = append(out.Prefixes, peer.PrefixShard{Prefix: one.Bytes(), Shard: one.Shard})
	}
	return out
}

func placementOf(p *peer.Placement) *Placement {
	if p == nil {
		return nil
	}
	out := &Placement{Kind: p.Kind, Shards: p.Shards, Replicas: p.Replicas, Inline: p.Inline, Locator: p.Locator}
	for _, one := range p.Prefixes {
		out.Prefixes = append(out.Prefixes, PrefixShardOf(one.Prefix, one.Shard))
	}
	return out
}

// Shards is how the shards of a namespace stand.
type Shards struct {
	Epoch    uint64 `json:"epoch" doc:"of the layout that counts here; 0: none is known"`
	Held     int    `json:"held" doc:"shards that this node holds"`
	Whole    int    `json:"whole" doc:"of these, those of which it has all that it must have"`
	Fetching int    `json:"fetching" doc:"shards that this node is a host of, and does not hold, or is not whole of yet"`
	Dropping int    `json:"dropping" doc:"shards that it holds until a majority of their new hosts has them"`
	Moving   int    `json:"moving" doc:"shards, of all, whose old hosts and new ones differ"`
	Short    int    `json:"short" doc:"shards that fewer of their hosts say to hold than there are to be replicas, as far as this node has heard"`
}

// Layout says which members hold each shard, for now.
type Layout struct {
	Epoch uint64     `json:"epoch" doc:"counts the layouts of the namespace, from 1"`
	By    string     `json:"by" doc:"the admin whose node stated it"`
	At    time.Time  `json:"at"`
	Hosts [][]string `json:"hosts" doc:"of each shard, from 0; of one that moves, the old hosts"`
	Moves []Move     `json:"moves" doc:"the shards that move"`
}

// Move is a shard whose old hosts and new ones differ.
type Move struct {
	Shard   int      `json:"shard"`
	Old     []string `json:"old" doc:"its hosts until now"`
	New     []string `json:"new" doc:"its hosts once each of them is ready"`
	Unready []string `json:"unready" doc:"the new hosts that have not said yet, as far as this node has heard, that they are ready"`
}

// MovesOf is the JSON form.
func MovesOf(moves []peer.Move) []Move {
	out := make([]Move, 0, len(moves))
	for _, m := range moves {
		out = append(out, Move{m.Shard, idsOf(m.Old), idsOf(m.New), idsOf(m.Unready)})
	}
	return out
}

func idsOf(ids []peer.ID) []string {
	texts := make([]string, 0, len(ids))
	for _, id := range ids {
		texts = append(texts, id.String())
	}
	return texts
}

// LayoutOf describes a layout.
func LayoutOf(l *peer.Layout) Layout {
	out := Layout{Epoch: l.Epoch, By: l.By.String(), At: l.At, Hosts: make([][]string, 0, len(l.Hosts)), Moves: MovesOf(l.Moves)}
	for _, hosts := range l.Hosts {
		out.Hosts = append(out.Hosts, idsOf(hosts))
	}
	return out
}

// Forced is what a forced layout has named.
type Forced struct {
	Shards []Left `json:"shards" doc:"those that have lost a majority of their old hosts; none: nothing was changed"`
}

// Reindexed is how many records were handed to the hosts of their keys.
type Reindexed struct {
	Records int `json:"records" doc:"those that this node was told as a host of large values; a majority of the hosts of its key has each"`
}

// Left is what is left of a shard.
type Left struct {
	Shard int      `json:"shard"`
	Hosts []string `json:"hosts" doc:"named as the shard's old hosts"`
	Of    int      `json:"of" doc:"how many old hosts the shard had"`
	Whole bool     `json:"whole" doc:"they have all that they must have; otherwise what was acknowledged may be lost"`
}

// ForcedOf describes what is left.
func ForcedOf(all []peer.Left) Forced {
	out := Forced{Shards: []Left{}}
	for _, l := range all {
		one := Left{Shard: l.Shard, Of: l.Of, Whole: l.Whole}
		for _, id := range l.Hosts {
			one.Hosts = append(one.Hosts, id.String())
		}
		out.Shards = append(out.Shards, one)
	}
	return out
}
