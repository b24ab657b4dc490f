package shards

import (
	"context"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/peer/status"
)

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
	case !slices.ContainsFunc(old, s.NS.Admits): // nobody can come back with anything
		l.Hosts, l.Whole = peerIDs([]node.ID{s.NS.Self()}), false
	case len(answer) == 0:
		return status.Left{}, fmt.Errorf("%w: no host of shard %d answers, so that nothing is left of it here (%s); if none of its hosts comes back, remove each (syncd member rm NS ID --force), and the shard begins anew without its records", ErrTooFew, a.Shard(), words(why))
	case len(whole) == 0:
		l.Hosts, l.Whole = peerIDs(answer), false
	}
	return l, nil
}
