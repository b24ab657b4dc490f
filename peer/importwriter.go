package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// An import where the placement is writer files the items of a window in passes, each of which
// asks hosts about many keys in a message. What the locator knows to be nowhere is written at
// once: the entries to the directory, and then the records to their shards, as a put does. Of any
// other key the directory is asked for its entry first, and the record is compared at its shard:
// what is there already is not written. A dated item makes a record without a writer, and a key
// that has none goes into its home shard: so two nodes that import the same dated items make the
// same entries, too.

// file imports items. The error is that of the first one which failed.
func (im *shardImport) file(ctx context.Context, items []*imported) error {
	over := time.Now().Add(importPatience)
	heeded, before, atOnce := false, len(items), im.filed()
	var err error
	for tries := 1; ; tries++ {
		for _, i := range items {
			i.why = nil
		}
		if err = im.passes(ctx, items); err != nil || ctx.Err() != nil {
			break
		}
		left := slices.DeleteFunc(slices.Clone(items), (*imported).over)
		if len(left) < before || im.filed() < atOnce { // a machine that is slow goes on as long as it gets on
			before, atOnce, tries, over = len(left), im.filed(), 1, time.Now().Add(importPatience)
		}
		why := refusalsOf(left)
		pause, again := importAgain(tries, why, time.Now().After(over))
		if len(left) == 0 || !again {
			break
		}
		if len(why) > 0 {
			if !heeded && im.ns.heedHosts(ctx, why) {
				heeded = true
			} else if !sleep(ctx, pause) {
				break
			}
		}
	}
	for _, i := range items {
		if !i.done {
			need, _ := im.ns.core.Shard(i.shard).Enough(im.ack)
			switch {
			case i.err != nil || err != nil || len(i.why) > 0 || ctx.Err() != nil:
			case i.slow:
				i.err = fmt.Errorf("%w: more than %s passed between the entry of the directory and the record, at each attempt", ErrBusy, node.EntryPatience)
			default:
				i.err = fmt.Errorf("%w: another version came in between at each attempt", ErrBusy)
			}
			return &itemError{i.number, im.explain(ctx, i, need, err)}
		}
		im.result.count(i)
	}
	return nil
}

// refusalsOf are why hosts have not done what items ask of them.
func refusalsOf(items []*imported) map[ID]error {
	why := map[ID]error{}
	for _, i := range items {
		for id, err := range i.why {
			why[id] = err
		}
	}
	return why
}

// passes takes each item as far as it gets with asking the hosts of each stage once.
func (im *shardImport) passes(ctx context.Context, items []*imported) error {
	for _, i := range items {
		if i.stage == locating && !i.over() {
			im.locate(i)
		}
	}
	if err := im.compare(ctx, items); err != nil {
		return err
	}
	for rest := items; len(rest) > 0; {
		some := rest[:min(len(rest), im.filed())]
		rest = rest[len(some):]
		for _, s := range []due{making, entering, writing, entering} {
			if err := im.pass(ctx, s, some); err != nil {
				return err
			}
		}
		im.writeEachAlone(ctx, some)
		if slices.ContainsFunc(some, func(i *imported) bool { return i.slow && i.stage == making }) {
			im.atOnce = max(leastFiled, len(some)/2)
		}
	}
	return nil
}

// How an import waits until what one host holds has come to the others, in all.
const (
	arriveFirst = 100 * time.Millisecond
	arriveInAll = 5 * time.Second
)

// compare takes each item that may be there as far as it is found, or not. What one host holds, and fewer than are to, a push may
// bring to the others in a moment: to make it anew would give it another date.
func (im *shardImport) compare(ctx context.Context, items []*imported) error {
	for pause := arriveFirst; ; pause *= 2 {
		for _, s := range []due{entryDue, searching, entryDue, comparing} {
			if err := im.pass(ctx, s, items); err != nil {
				return err
			}
		}
		arriving := false
		for _, i := range items {
			arriving, i.arrives = arriving || i.arrives, false
		}
		if !arriving || !sleep(ctx, min(pause, im.waits)) {
			return context.Cause(ctx)
		}
		im.waits -= min(pause, im.waits)
	}
}

// leastFiled items get their entries before their records, at least. All of a window do, until
// records come too late behind their entries (slept): then half as many.
const leastFiled = 64

func (im *shardImport) filed() int {
	if im.atOnce == 0 {
		return importWindow
	}
	return im.atOnce
}

// locate says by the locator where an item goes.
func (im *shardImport) locate(i *imported) {
	switch a := im.ns.whereIs(i.Key); {
	case i.Expired(im.ns.core):
		i.done, i.expired = true, true
	case a.Where == directory.Nowhere && im.own(i) == nil:
		i.unasked = true
		im.absent(i, true)
	case a.Where == directory.Nowhere: // what this node has written may be in another shard
		i.stage = searching
	case a.Where == directory.Unknown:
		i.shard, i.stage = i.own(im.ns), entryDue
	default:
		i.shard, i.stage = a.Shard, entryDue
	}
}

// absent goes on with an item whose key is in no shard, for sure or not.
func (im *shardImport) absent(i *imported, sure bool) {
	switch deletes := i.deletes(); {
	case deletes && !i.bound && sure && im.ns.whereIs(i.Key).Where == directory.OneOf: // this node may have written what the hosts have not heard of
		i.stage = searching
	case deletes && !i.bound && sure:
		i.done = true // there is nothing to delete
	case deletes && !i.bound:
		i.err = ErrUnsure
	default:
		i.shard, i.stage = i.own(im.ns), making
	}
}

// pass asks the hosts of a stage about the items that wait for them.
func (im *shardImport) pass(ctx context.Context, s due, items []*imported) error {
	sets := map[placement.Shard][]*imported{}
	for _, i := range items {
		if i.stage != s || i.alone || i.over() || s == writing && im.slept(i) {
			continue
		}
		set := i.shard
		if s == entryDue || s == entering {
			set = im.ns.core.Entries(i.Key)
		}
		sets[set] = append(sets[set], i)
	}
	places := make(chan struct{}, importShardsAtOnce)
	var running sync.WaitGroup
	var mu sync.Mutex // guards failed
	var failed error
	do := func(work func() error) {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			if err := work(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				if failed == nil || !strings.Contains(failed.Error(), err.Error()) { // most often all have the same reason
					failed = errors.Join(failed, err)
				}
			}
		})
	}
	type message struct {
		set   placement.Shard
		items []*imported
	}
	var messages []message // all, before the first one goes: what is heard changes its items
	for set, of := range sets {
		if s == searching { // each by itself
			var unsure atomic.Pointer[error] // of a deletion: others would wait as long for the same hosts
			for _, i := range of {
				do(func() error {
					if err := unsure.Load(); err != nil && i.deletes() && !i.bound {
						i.err = *err
						return nil
					}
					im.search(ctx, i)
					if err := i.err; err != nil && i.deletes() {
						unsure.Store(&err)
					}
					return nil
				})
			}
			continue
		}
		for _, as := range []question{undated, dated} {
			for rest := of; len(rest) > 0; {
				var some []*imported
				if some, rest = cut(rest, as); len(some) > 0 {
					messages = append(messages, message{set, some})
				}
			}
		}
	}
	for _, m := range messages {
		do(func() error { return im.step(ctx, s, m.set, m.items) })
	}
	running.Wait()
	return failed
}

// step asks the hosts of one set about some items of one stage, in a message to each.
func (im *shardImport) step(ctx context.Context, s due, set placement.Shard, items []*imported) error {
	remote := im.ns.core.Shard(set)
	need, err := remote.Enough(im.ack)
	if err != nil {
		return err
	}
	if s == making {
		items = im.asksNone(items)
		if err := im.make(remote, items); err != nil {
			return err
		}
		for _, i := range slices.DeleteFunc(items, (*imported).over) {
			i.versions = append(i.versions, i.record.Version)
			i.stage, _ = i.order()
		}
		return nil
	}
	records, err := im.asked(s, remote, items)
	if err != nil {
		return err
	}
	named, err := remote.Hosts()
	if err != nil {
		return err
	}
	for _, i := range items { // one that a new layout does not name counts no longer
		i.held = slices.DeleteFunc(i.held, func(id ID) bool { return !slices.Contains(named, node.ID(id)) })
	}
	looks := s == entryDue || s == comparing
	if looks {
		for _, i := range items {
			i.held, i.took, i.unlike, i.none, i.sure, i.doubt = nil, false, false, false, false, doubt{}
		}
	}
	heard := func(id ID, outcomes []route.Outcome, sent bool, err error) {
		for at, i := range items {
			switch {
			case err != nil:
				i.failed(id, err, sent && !looks)
			case looks:
				i.looked(id, &outcomes[at])
			default:
				i.heard(id, &outcomes[at])
			}
		}
	}
	if here := remote.Here(); here != nil {
		current := here.Current() // before what it holds is read
		outcomes, err := remote.OutcomesHere(ctx, looks, records)
		if err == nil && outcomes[0].Elsewhere {
			err = errNoHost
		}
		heard(im.ns.node.self.id, outcomes, false, err)
		if err == nil && s == comparing {
			if err := im.doubtOwn(here, current, items); err != nil {
				return err
			}
		}
	}
	about := func(id node.ID) (*wire.Ask, error) {
		if looks {
			return remote.AskLook(id, records)
		}
		return remote.AskHoldAll(id, records)
	}
	if slices.ContainsFunc(items, func(i *imported) bool { return i.lacks(need) || i.doubted != nil }) { // otherwise a push brings it to the others
		q := &inquiry{weight: weigh(records), oneList: looks, about: about, heard: heard, lacks: func() bool {
			return slices.ContainsFunc(items, func(i *imported) bool { return i.lacks(need) && !(looks && (i.unlike || i.none)) })
		}}
		if s == writing {
			q.remembered = records
		}
		im.inquire(ctx, remote, named, q)
	}
	switch {
	case s == comparing:
		im.overDoubt(ctx, remote, named, items)
	case looks && slices.ContainsFunc(items, func(i *imported) bool { return i.sure }):
		agreed := im.agreed(remote)
		for _, i := range items {
			i.sure = i.sure && agreed(i)
		}
	}
	for _, i := range items {
		if im.next(i, need); i.over() {
			im.landed(i)
		}
	}
	return nil
}

// lacks reports whether hosts have to be asked about an item until so many hold it.
func (i *imported) lacks(need int) bool {
	return !i.full && len(i.held) < need && (i.record != nil || i.stage == entryDue || i.stage == comparing)
}

// asked are the records that hosts are asked about.
func (im *shardImport) asked(s due, remote *node.Remote, items []*imported) ([]dbadapter.Record, error) {
	records := make([]dbadapter.Record, len(items))
	made := make([]*dbadapter.Record, len(items))
	shards := make([]placement.Shard, len(items))
	for at, i := range items {
		switch made[at], shards[at] = i.record, i.shard; s {
		case entryDue:
			records[at] = i.SketchEntry(im.ns.core, i.shard)
		case comparing:
			records[at] = i.Sketch(im.ns.core)
		case entering:
			i.began = im.ns.follows.now()
		default:
			records[at] = *i.record
		}
	}
	if s == entering {
		return remote.EntriesFor(made, shards)
	}
	return records, nil
}
