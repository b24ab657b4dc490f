package shards

import (
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/peer/status"
)

// Where shards and keys are, for a person.

func peerIDs(ids []node.ID) []status.ID {
	out := []status.ID{}
	for _, id := range ids {
		out = append(out, status.ID(id))
	}
	return out
}

// Layout is the layout that counts at this node. ErrInvalid: the namespace is one shard. ErrNotFound: no
// layout is stated yet, or this node lacks its table.
func Layout(ns *node.Namespace) (status.Layout, error) {
	l, stated, err := ns.Layout()
	if err != nil {
		return status.Layout{}, err
	}
	out := status.Layout{Hosts: [][]status.ID{}, Moves: []status.Move{}, Epoch: stated.Epoch, By: status.ID(stated.By), At: stated.At.Time()}
	for s := range placement.Shard(l.Shards()) {
		row := l.Row(s)
		out.Hosts = append(out.Hosts, peerIDs(row.Old))
		if !row.AtRest() {
			out.Moves = append(out.Moves, status.Move{Shard: int(s), Old: peerIDs(row.Old), New: peerIDs(row.New), Unready: peerIDs(ns.Unready(row))})
		}
	}
	return out, nil
}

// Located tells what a read of a key has found, and where.
func (s *Shards) Located(key []byte, found *Found) status.Located {
	home := s.NS.Home(key)
	l := status.Located{Shard: int(home), Record: found.Record, Locator: s.says(key, home)}
	if row := s.NS.Row(home); row != nil {
		l.Hosts, l.Moving = peerIDs(row.Hosts()), !row.AtRest()
	}
	for _, h := range found.Hosts {
		at := status.LocatedAt{Peer: status.ID(h.Peer), Old: h.Old, New: h.New, Took: h.Took, Err: h.Err}
		if h.Answer != nil {
			at.Whole, at.Version = h.Answer.Whole, h.Answer.Version
		}
		l.Asked = append(l.Asked, at)
	}
	return l
}

// says is what the locator says of a key; nil: there is none.
func (s *Shards) says(key []byte, home placement.Shard) *status.LocatorSays {
	if s.Locator == nil {
		return nil
	}
	if s.NS.WholeHere(home) != nil {
		return &status.LocatorSays{Where: "here"}
	}
	where, shard := s.Locate(key)
	now := s.Net.Now()
	of := s.Locator.Status(home, now)
	says := &status.LocatorSays{Where: where.String(), Shard: int(shard), Host: status.ID(of.From), Fresh: of.Fresh}
	if of.Heard > 0 {
		says.Age = now - of.Heard
	}
	return says
}
