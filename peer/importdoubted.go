package peer

import (
	"context"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// doubt is whether what this node holds of an item is the latest, where its copy is not current.
type doubt struct {
	doubted *dbadapter.Record // says what the item says; nil: there is no doubt
	agree   []ID              // nodes that hold nothing later, and are settled
}

// compare notes whether a host holds something later, and reports it.
func (d *doubt) compare(id ID, o *route.Outcome) (later bool) {
	if later = o.Other != nil && o.Other.Version.Compare(d.doubted.Version) > 0; !later && o.Settled {
		d.agree = append(d.agree, id)
	}
	return later
}

// agreed reports of an item whether each other node that may hold its record has said that it holds nothing
// later. A host of before that holds the shard still cannot say so, as it answers as no host; nor can a
// member that has not said whether it holds the shard.
func (im *shardImport) agreed(remote *node.Remote) func(*imported) bool {
	unheard := remote.Unheard()
	candidates := remote.Candidates(func(node.ID) bool { return false })
	return func(i *imported) bool {
		return !unheard && !slices.ContainsFunc(candidates, func(c route.Candidate) bool { return c.Former || !slices.Contains(i.agree, ID(c.ID)) })
	}
}

// doubted are the items of a part that are to be written, or looked up, although this node holds what they
// say: its copy is not current, and another node holds something later by now, or has not said that it does
// not. Dated items stay as they are: a record that is later stands against them in any case.
func (im *shardImport) doubted(ctx context.Context, remote *node.Remote, sh *shard, part []*imported) (anew, others []*imported) {
	named, err := remote.Hosts()
	if err != nil {
		return nil, part // what fails here fails when the part is imported, too
	}
	var alike []*imported
	for _, item := range part {
		r, err := sh.set.Held(item.Key)
		switch {
		case err != nil, !item.Time.IsZero(), item.Expired(im.ns.core):
			others = append(others, item)
		case r != nil && item.made(r):
			item.doubt, alike = doubt{doubted: r}, append(alike, item)
		case r == nil && item.Deleted:
			anew = append(anew, item) // the hosts are asked whether there is something to delete
		default:
			others = append(others, item)
		}
	}
	for rest := alike; len(rest) > 0; {
		var some []*imported
		if some, rest = cut(rest, true); len(some) == 0 {
			break
		}
		records := make([]dbadapter.Record, len(some))
		for at, item := range some {
			records[at] = item.Sketch(im.ns.core)
		}
		im.inquire(ctx, remote, named, &inquiry{
			weight: weigh(records), oneList: true,
			about: func(id node.ID) (*wire.Ask, error) { return remote.AskLook(id, records) },
			heard: func(id ID, outcomes []route.Outcome, _ bool, err error) {
				for at, item := range some {
					if err == nil && item.compare(id, &outcomes[at]) {
						item.seen = append(item.seen, outcomes[at].Other)
					}
				}
			},
			lacks: func() bool { return false },
		})
	}
	agreed := im.agreed(remote)
	for _, item := range alike {
		if agreed(item) {
			others = append(others, item)
			continue
		}
		item.landing = landing{seen: append(item.seen, item.doubted), here: sh}
		anew = append(anew, item)
	}
	order := func(a, b *imported) int { return int(a.number - b.number) }
	slices.SortFunc(anew, order)
	slices.SortFunc(others, order)
	return anew, others
}

// doubtOwn doubts what a copy that is not current was found to hold of items: those that are not dated, as above.
func doubtOwn(here *node.Set, items []*imported) error {
	for _, i := range items {
		if len(i.held) == 0 || !i.Time.IsZero() || !i.dated.IsZero() {
			continue
		}
		var err error
		if i.doubted, err = here.Held(i.Key); err != nil {
			return err
		}
		i.unlike = i.doubted == nil // it was collected since
	}
	return nil
}
