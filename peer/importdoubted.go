package peer

import (
	"context"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// doubt is whether what is held of an item is the latest.
type doubt struct {
	// doubted is what this node holds, and says what the item says, where its copy is not current; nil: there is
	// no such doubt.
	doubted *dbadapter.Record
	agree   []ID // nodes that hold nothing later, or what the item says, and are settled
}

// compare notes whether a host holds something later, and reports it.
func (d *doubt) compare(id ID, o *route.Outcome) (later bool) {
	if later = o.Other != nil && (d.doubted == nil || o.Other.Version.Compare(d.doubted.Version) > 0); !later && o.Settled {
		d.agree = append(d.agree, id)
	}
	return later
}

// onWord reports of an item that hosts hold whether that is what they held already.
func (i *imported) onWord() bool {
	return len(i.held) > 0 && !i.took && !i.full && i.here == nil && i.Time.IsZero()
}

// agreed reports of an item whether each node that may hold its record has said that it holds nothing later, and
// this one holds nothing else. A host of before that holds the shard still cannot say so, as it answers as no host;
// nor can a member that has not said whether it holds the shard.
func (im *shardImport) agreed(remote *node.Remote) func(*imported) bool {
	unheard := remote.Unheard()
	candidates := remote.Candidates(func(node.ID) bool { return false })
	own, _ := im.ns.numbered(remote.Shard())
	return func(i *imported) bool {
		if own != nil {
			if r, err := own.set.Held(i.Key); err != nil || r != nil && !i.made(r) {
				return false
			}
		}
		return !unheard && !slices.ContainsFunc(candidates, func(c route.Candidate) bool { return !slices.Contains(i.agree, ID(c.ID)) })
	}
}

// doubted are the items of a part that are to be written, or looked up, although this node holds what they
// say: its copy is not current, or behind what this node has written elsewhere, and another node holds something
// later by now, or has not said that it does not. A record that is later stands against dated items in any case, but for those
// whose date is taken no more: they are written by themselves.
func (im *shardImport) doubted(ctx context.Context, remote *node.Remote, sh *shard, part []*imported) (anew, others []*imported) {
	named, err := remote.Hosts()
	if err != nil {
		return nil, part // what fails here fails when the part is imported, too
	}
	var alike []*imported
	current := sh.set.Current()
	for _, item := range part {
		recalled := im.ns.core.Recall(item.Key, im.ns.steady())
		if current && !recalled.Reads() || !item.Time.IsZero() || item.Expired(im.ns.core) {
			others = append(others, item)
			continue
		}
		r, err := sh.set.Held(item.Key)
		switch {
		case err != nil:
			others = append(others, item)
		case recalled.Own != nil && recalled.Reads() && !recalled.Tells(&lookedUp{Found: route.Found{Record: r}}, false):
			item.landing = landing{here: sh}
			anew = append(anew, item)
		case r != nil && item.made(r):
			item.doubt, alike = doubt{doubted: r}, append(alike, item)
		case r == nil && item.Deleted:
			anew = append(anew, item) // the hosts are asked whether there is something to delete
		default:
			others = append(others, item)
		}
	}
	im.look(ctx, remote, named, alike, func(id ID, item *imported, o *route.Outcome) {
		if item.compare(id, o) {
			item.seen = append(item.seen, o.Other)
		}
	})
	agreed := im.agreed(remote)
	for _, item := range alike {
		if agreed(item) {
			others = append(others, item)
			continue
		}
		item.landing = landing{seen: append(item.seen, item.doubted), here: sh}
		anew = append(anew, item)
	}
	if len(anew) == 0 {
		return nil, part
	}
	order := func(a, b *imported) int { return int(a.number - b.number) }
	slices.SortFunc(anew, order)
	slices.SortFunc(others, order)
	return anew, others
}

// look asks the other hosts what they hold under the keys of undated items.
func (im *shardImport) look(ctx context.Context, remote *node.Remote, named []node.ID, items []*imported, heard func(ID, *imported, *route.Outcome)) {
	for rest := items; len(rest) > 0; {
		var some []*imported
		if some, rest = cut(rest, undated); len(some) == 0 {
			return
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
					if err == nil {
						heard(id, item, &outcomes[at])
					}
				}
			},
			lacks: func() bool { return false },
		})
	}
}
