package peer

import (
	"context"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// doubted are the items of a part that are to be written, or looked up, although this node holds what they
// say: its copy is not current, and another host holds something later by now, or was not heard. Dated ones
// are none of them, as what is later than they are stands.
func (im *shardImport) doubted(ctx context.Context, remote *node.Remote, sh *shard, part []*imported) (anew, others []*imported) {
	self := im.ns.node.self.id
	named, err := remote.Hosts()
	if err != nil {
		return nil, part // what fails here fails when the part is imported, too
	}
	hosts := slices.DeleteFunc(slices.Clone(named), func(id node.ID) bool { return id == node.ID(self) })
	held := map[*imported]*dbadapter.Record{}
	var alike []*imported
	for _, item := range part {
		r, err := sh.set.Held(item.Key)
		switch {
		case err != nil, !item.Time.IsZero(), item.Expired(im.ns.core):
			others = append(others, item)
		case r != nil && item.made(r):
			held[item], alike = r, append(alike, item)
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
		im.inquire(ctx, remote, hosts, &inquiry{
			weight: weigh(records),
			about:  func(id node.ID) (*wire.Ask, error) { return remote.AskLook(id, records) },
			heard: func(id ID, outcomes []route.Outcome, _ bool, err error) {
				for at, item := range some {
					switch {
					case err != nil:
					case outcomes[at].Other != nil && outcomes[at].Other.Version.Compare(held[item].Version) > 0:
						item.seen = append(item.seen, outcomes[at].Other)
					default:
						item.held = append(item.held, id)
					}
				}
			},
			lacks: func() bool { return false },
		})
	}
	for _, item := range alike {
		if len(item.held) == len(hosts) {
			item.landing = landing{}
			others = append(others, item)
			continue
		}
		item.landing = landing{seen: append(item.seen, held[item]), here: sh}
		anew = append(anew, item)
	}
	order := func(a, b *imported) int { return int(a.number - b.number) }
	slices.SortFunc(anew, order)
	slices.SortFunc(others, order)
	return anew, others
}
