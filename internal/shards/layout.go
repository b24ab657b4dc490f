package shards

import (
	"context"
	"fmt"
	"slices"

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

// Force has this node, an admin's, state a layout that names what is left of each shard of which no
// majority of the old hosts, whole ones, answers: the whole ones that answer; without any, those
// that answer; where none of them is a member any more, this node. What only others held is
// lost. It changes nothing where all shards have their majorities. ErrTooFew: no host of a shard
// answers. (17)
func (s *Shards) Force(ctx context.Context) ([]status.Left, error) {
	all, left := []status.Left{}, map[placement.Shard][]node.ID{}
	for shard := range placement.Shard(s.NS.Rule().Shards) {
		over := s.Net.Now() + Patience
		one, err := anew(ctx, s, shard, over, func(a *Asker) (status.Left, error) { return s.left(ctx, a) })
		if err != nil {
			return nil, err
		}
		if len(one.Hosts) > 0 {
			all = append(all, one)
		}
		for _, id := range one.Hosts {
			left[shard] = append(left[shard], node.ID(id))
		}
	}
	if len(left) == 0 {
		return all, nil
	}
	return all, s.NS.ForceLayout(ctx, left)
}

// left asks the old hosts of a shard; none: a majority of them is there.
func (s *Shards) left(ctx context.Context, a *Asker) (status.Left, error) {
	var answer, whole []node.ID
	why := map[node.ID]error{}
	old := a.Row().Old
	for _, id := range old {
		h, err := askSoon(ctx, s, a, id, s.Net.Now()+compareWait, a.record([]byte{0}, true))
		switch {
		case !a.Current():
			return status.Left{}, errRow
		case err != nil:
			why[id] = err
			continue
		case h.Whole:
			whole = append(whole, id)
		}
		answer = append(answer, id)
	}
	l := status.Left{Shard: int(a.Shard()), Hosts: peerIDs(whole), Of: len(old), Whole: true}
	switch side := sideOf(old, func(id node.ID) bool { return slices.Contains(whole, id) }); {
	case side.Had >= side.Need:
		return status.Left{}, nil
	case !slices.ContainsFunc(old, s.NS.Admits): // no old host is a member, so none can return
		l.Hosts, l.Whole = peerIDs([]node.ID{s.NS.Self()}), false
	case len(answer) == 0:
		return status.Left{}, fmt.Errorf("%w: no host of shard %d answers, so that nothing is left of it here (%s); if none of its hosts comes back, remove each (syncd member rm NS ID --force), and the shard begins anew without its records", ErrTooFew, a.Shard(), words(why))
	case len(whole) == 0:
		l.Hosts, l.Whole = peerIDs(answer), false
	}
	return l, nil
}
