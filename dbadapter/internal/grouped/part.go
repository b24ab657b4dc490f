package grouped

import (
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
	"github.com/syncd-io/syncd/dbadapter/internal/queue"
)

// Part is what a group does to one namespace.
type Part[N Own] struct {
	Namespace N
	Group     *commit.Group
	// Count sets what follows.
	Meta    layout.Meta // after the group; the store brings the kept log up to date
	Changes []dbadapter.Change
}

// Decide runs the batches one after another, those of a namespace in a group that start
// makes, and sets each caller's outcomes. It returns what changes something.
func Decide[N Own](requests []*queue.Request[*Batch[N]], start func(N) *commit.Group) []*Part[N] {
	var parts []*Part[N]
	of := make(map[N]*commit.Group)
	for _, r := range requests {
		b := r.Batch
		if of[b.Namespace] == nil {
			of[b.Namespace] = start(b.Namespace)
			parts = append(parts, &Part[N]{Namespace: b.Namespace, Group: of[b.Namespace]})
		}
		b.Outcomes, r.Err = of[b.Namespace].Batch(b.Items)
	}
	return slices.DeleteFunc(parts, func(p *Part[N]) bool { return len(p.Group.Touched()) == 0 })
}

// Fail ends each request that has no error yet with err.
func Fail[N Own](requests []*queue.Request[*Batch[N]], err error) {
	for _, r := range requests {
		if r.Err == nil {
			r.Batch.Outcomes, r.Err = nil, err
		}
	}
}

// Count adds the group to the head that was before it.
func (p *Part[N]) Count(before layout.Meta) {
	p.Meta, p.Changes = before, p.Group.Changes(before.Seq)
	for i := range p.Changes {
		p.Meta.Records += uint64(p.Changes[i].Records)
		p.Meta.Digest = p.Meta.Digest.Add(p.Changes[i].Delta)
	}
	p.Meta.Seq += uint64(len(p.Changes))
	p.Meta.Latest = max(p.Meta.Latest, p.Group.Latest())
}
