package peer

import (
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
)

// make makes the records that are missing. The node remembers those that have a writer before they go to hosts, as
// those of puts; one beside which the node has written the key is made anew, as one that has seen that.
func (im *shardImport) make(remote *node.Remote, items []*imported) error {
	here := remote.Here() != nil
	for tries := 1; ; tries++ {
		var missing []*imported
		var of []*node.Item
		var seen [][]*dbadapter.Record
		var own []*dbadapter.Record
		for _, i := range items {
			if i.record == nil && !i.over() {
				im.withdraw(remote, i)
				saw := im.own(i)
				missing, of, seen, own = append(missing, i), append(of, &i.Item), append(seen, i.after(saw)), append(own, saw)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		if tries > node.OfferTries {
			return fmt.Errorf("%w: this node has written a key meanwhile at each attempt", ErrBusy)
		}
		records, err := remote.MakeAll(of, seen)
		if err != nil {
			return err
		}
		for at, i := range missing {
			i.record = &records[at]
			if !i.remembered() {
				continue
			}
			if !i.awaited {
				i.awaited = true
				im.ns.core.Await(i.Key) // before it is noted: another call may recall it at once
			}
			if im.ns.core.Note(remote, i.record, own[at], im.ns.steady()) != nil {
				i.record = nil
				continue
			}
			i.noted = i.record
			if here {
				im.ns.core.HeldBy(i.record, node.ID(im.ns.node.self.id)) // it hears of it before it is a host that is sure
			}
		}
	}
}

// landed ends that the item counts among the writes that are under way.
func (im *shardImport) landed(i *imported) {
	if i.awaited {
		i.awaited = false
		im.ns.core.Landed(i.Key)
	}
}

// remembered reports whether the item makes a record of which the node's next one of the key must know: not one
// with a date.
func (i *imported) remembered() bool { return i.Time.IsZero() }

// own is what this node has lately had hosts hold under the item's key, of which the one that takes the item may not
// have heard; nil: nothing, or nothing that the item may take the place of.
func (im *shardImport) own(i *imported) *dbadapter.Record {
	if !i.remembered() {
		return nil
	}
	return im.ns.core.Recall(i.Key, im.ns.steady()).Own
}

// after is what the record of an item replaces.
func (i *imported) after(own *dbadapter.Record) []*dbadapter.Record {
	seen := slices.Clip(i.seen)
	if own != nil {
		seen = append(seen, own)
	}
	return seen
}

// withdraw forgets the last record of an item that was noted, where no host has taken what was made of the item, or may have.
func (im *shardImport) withdraw(remote *node.Remote, i *imported) {
	if i.noted != nil && !i.fresh && !i.sent {
		im.ns.core.Withdraw(remote, i.noted, im.ns.steady())
		i.noted = nil
	}
}

// unwritten forgets the record of an item that is done and that no host has taken: they hold what it says, or are full.
func (im *shardImport) unwritten(remote *node.Remote, i *imported) {
	if i.record != nil && !i.took && i.here == nil && i.remembered() {
		im.ns.core.Withdraw(remote, i.record, im.ns.steady())
	}
}
