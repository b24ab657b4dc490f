package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The feed of a locator: what this node, as a whole host, says of the keys of its sets, and how it asks
// others (package locator). It is the change log of the set's store, and nothing is kept beside that: news
// are read from the log, pages from a snapshot.
//
// An index is that of a key also where its record is a tombstone: so a key that is nowhere reads as it would
// at the host, also to a writer that asks for the version of a deletion.

// What a question takes at most, in some 50 ms: changes of the log or indices, and bytes of records; what is
// more follows at the next one. Records are read feedGroup indices at a time, as they may be bodies.
const (
	maxFeedRead  = 1 << 14
	maxFeedBytes = 16 << 20
	feedGroup    = 32
)

// feedRoom is what the answer to a poll may yet take: changes that it says, changes of logs, and bytes of records.
type feedRoom struct{ changes, log, bytes int }

// IndexOf is the shard of a key, and the key's index in it.
func (ns *Namespace) IndexOf(key []byte) (home placement.Shard, index dbadapter.Index) {
	home = ns.Home(key)
	return home, ns.view(home).Keys.Hasher.Index(key)
}

// EntryOf is the shard of a record, and what a whole host says of it; Gone: nothing.
func (ns *Namespace) EntryOf(r *dbadapter.Record) (home placement.Shard, e locator.Entry) {
	home, index := ns.IndexOf(r.Key)
	code := locator.Code(home)
	if ns.Bodied() {
		code = ns.view(home).code([]dbadapter.Hashed{{Record: *r}})
	}
	return home, locator.NewEntry(index, code)
}

// Leads are the hosts at which this node may follow a set: the old ones, unless it is a whole one itself.
func (ns *Namespace) Leads(shard placement.Shard) locator.Row {
	row := ns.Row(shard)
	if row == nil || ns.WholeHere(shard) != nil {
		return locator.Row{}
	}
	r := locator.Row{Name: row.Name()}
	for _, id := range row.Old {
		if id != ns.node.ID && ns.Admits(id) {
			r.Hosts = append(r.Hosts, id)
		}
	}
	return r
}

// RowMark stands for the rows of shards by which this node goes, and the removals and lapses of which it knows.
func (ns *Namespace) RowMark(shards ...placement.Shard) locator.Mark {
	h := sha256.New()
	gone := ns.Gone()
	h.Write(gone[:])
	for _, s := range shards {
		if row := ns.Row(s); row != nil {
			name := row.Name()
			h.Write(name[:])
		}
	}
	return locator.Mark(h.Sum(nil)[:8])
}

// AskFeed is a question of the feed.
func (ns *Namespace) AskFeed(m locator.Message) (*wire.AskFeed, error) {
	data, err := locator.Append(nil, m, ns.rule.Shards)
	return &wire.AskFeed{Message: data}, err
}

// Feed is what a message of the peer answers to AskFeed. apart: it goes by another row, or knows of other
// removals or lapses.
func (a *Asker) Feed(remote ID, ask *wire.Ask, m wire.Message) (answer locator.Message, apart bool, err error) {
	reply, err := a.reply(remote, ask, m)
	if err != nil {
		return nil, false, err
	}
	if answer, err = locator.Parse(reply.Answer.(*wire.FeedAnswer).Message, a.ns.rule.Shards); err != nil { // CheckReply has compared the subjects
		return nil, false, fmt.Errorf("%w: %w", reconcile.ErrProtocol, err)
	}
	switch m := answer.(type) {
	case *locator.News:
		apart = m.Apart
	case *locator.Page:
		apart = m.Apart
	}
	return answer, apart, nil
}

// answerFeed answers a question of the feed.
func (ns *Namespace) answerFeed(ctx context.Context, q *wire.AskFeed) (*wire.FeedAnswer, error) {
	if !ns.Located() {
		return nil, fmt.Errorf("%w: the namespace has no locator", reconcile.ErrProtocol)
	}
	m, err := locator.Parse(q.Message, ns.rule.Shards)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", reconcile.ErrProtocol, err)
	}
	var answer locator.Message
	switch m := m.(type) {
	case *locator.Poll:
		answer, err = ns.news(ctx, m)
	case *locator.Take:
		answer, err = ns.page(ctx, m)
	default:
		err = fmt.Errorf("%w: a message of the feed that asks nothing", reconcile.ErrProtocol)
	}
	if err != nil {
		return nil, err
	}
	data, err := locator.Append(nil, answer, ns.rule.Shards)
	return &wire.FeedAnswer{Message: data}, err
}

// news are the news of sets since the places of a poll.
func (ns *Namespace) news(ctx context.Context, p *locator.Poll) (*locator.News, error) {
	var shards []placement.Shard
	for _, s := range p.Sets {
		shards = append(shards, s.Set)
	}
	n := &locator.News{Sets: make([]locator.SetNews, len(p.Sets))}
	room := feedRoom{locator.MaxChanges, maxFeedRead, maxFeedBytes}
	for i, since := range p.Sets {
		if room.changes <= 0 || room.log <= 0 || room.bytes <= 0 {
			n.Sets = n.Sets[:i] // those that are left out are asked for again
			break
		}
		n.Sets[i].Said = locator.NotWhole
		set := ns.WholeHere(since.Set)
		if set == nil {
			continue
		}
		said, err := set.news(ctx, since, &room)
		if ctx.Err() != nil {
			return nil, err
		}
		if err == nil && ns.WholeHere(since.Set) == set { // else another host is to be asked
			n.Sets[i] = said
		}
	}
	if ns.RowMark(shards...) != p.Mark { // behind what was read, as at each routed question
		return &locator.News{Apart: true}, nil
	}
	return n, nil
}

// news are those of the set since a place of its log, as far as there is room: what the changed indices say now.
func (set *Set) news(ctx context.Context, since locator.Since, room *feedRoom) (n locator.SetNews, err error) {
	log := set.Store.Log()
	snap, err := set.Store.Snapshot()
	if err != nil {
		return n, err
	}
	defer snap.Close()
	end := snap.Seq()
	if uint64(log) != since.Log || since.Seq > end {
		return locator.SetNews{Said: locator.OtherLog}, nil
	}
	if since.Seq == end {
		return n, nil
	}
	n = locator.SetNews{Said: locator.Changed, To: end}
	var changed []dbadapter.Change // the first of each index
	seen, last := map[dbadapter.Index]bool{}, since.Seq
	for c, err := range set.Store.Changes(ctx, since.Seq) {
		if errors.Is(err, dbadapter.ErrTrimmed) {
			return locator.SetNews{Said: locator.OtherLog}, nil
		}
		if err != nil {
			return n, err
		}
		if c.Seq > end {
			break
		}
		if len(changed) >= room.changes || room.log <= 0 {
			n.To, n.More = last, true
			break
		}
		last = c.Seq
		room.log--
		if (set.ns.Bodied() || (c.Old == 0) != (c.New == 0)) && !seen[c.Index] { // 0 is that of no record
			seen[c.Index] = true
			changed = append(changed, c)
		}
	}
	for group := range slices.Chunk(changed, feedGroup) {
		if room.bytes <= 0 {
			n.To, n.More = group[0].Seq-1, true
			break
		}
		var indices []dbadapter.Index
		for _, c := range group {
			indices = append(indices, c.Index)
		}
		slices.Sort(indices)
		entries, bytes, err := set.entries(snap, indices, true)
		if err != nil {
			return n, err
		}
		n.Changes = append(n.Changes, entries...)
		room.bytes -= bytes
	}
	slices.Sort(n.Changes)
	room.changes -= len(n.Changes)
	if set.Store.Log() != log { // the snapshot can be of either
		return locator.SetNews{Said: locator.OtherLog}, nil
	}
	return n, nil
}

// page is a page of the entries of a set.
func (ns *Namespace) page(ctx context.Context, t *locator.Take) (*locator.Page, error) {
	set := ns.WholeHere(t.Set)
	if set == nil {
		return &locator.Page{NotWhole: true}, nil
	}
	p, err := set.page(ctx, t)
	switch {
	case err != nil:
		return nil, err
	case ns.RowMark(t.Set) != t.Mark:
		return &locator.Page{Apart: true}, nil
	case ns.WholeHere(t.Set) != set: // any more
		return &locator.Page{NotWhole: true}, nil
	}
	return p, nil
}

func (set *Set) page(ctx context.Context, t *locator.Take) (*locator.Page, error) {
	log := set.Store.Log()
	snap, err := set.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	p := &locator.Page{Log: uint64(log), Seq: snap.Seq(), Next: t.From}
	read := 0
	for range maxFeedRead / locator.MaxPage { // reserved keys give no entries
		indices, next, err := pairs(ctx, snap, p.Next)
		if err != nil {
			return nil, err
		}
		p.Next = next
		for group := range slices.Chunk(indices, feedGroup) {
			if len(p.Entries) > locator.MaxPage || read >= maxFeedBytes {
				p.Next = group[0]
				break
			}
			entries, bytes, err := set.entries(snap, group, false)
			if err != nil {
				return nil, err
			}
			p.Entries = append(p.Entries, entries...)
			read += bytes
		}
		if p.Next == 0 || len(p.Entries) >= locator.MaxPage || read >= maxFeedBytes {
			break
		}
	}
	if set.Store.Log() != log {
		return nil, reconcile.ErrBusy // to be asked again
	}
	if upto, _ := slices.BinarySearch(p.Entries, locator.NewEntry(t.Upto, 0)); t.Upto != 0 && (p.Next == 0 || t.Upto <= p.Next) && locator.HashOf(p.Entries[:upto]) == t.Hash {
		return &locator.Page{Log: p.Log, Seq: p.Seq, Equal: true}, nil
	}
	if len(p.Entries) > locator.MaxPage {
		p.Next = p.Entries[locator.MaxPage].Index()
		p.Entries = p.Entries[:locator.MaxPage]
	}
	return p, nil
}

// pairs reads indices from one on, locator.MaxPage at most, and where to go on; 0: there are no more.
func pairs(ctx context.Context, snap dbadapter.Snapshot, from dbadapter.Index) (indices []dbadapter.Index, next dbadapter.Index, err error) {
	for pair, err := range snap.Pairs(ctx, from, 0) {
		if err != nil {
			return nil, 0, err
		}
		if len(indices) == locator.MaxPage {
			return indices, pair.Index, nil
		}
		indices = append(indices, pair.Index)
	}
	return indices, 0, nil
}

// entries say of ascending indices of the set where their values are, and how many bytes of records were read for
// that; of one without a record Gone, where gone is to be said. Reserved keys give none.
func (set *Set) entries(snap dbadapter.Snapshot, indices []dbadapter.Index, gone bool) (entries []locator.Entry, bytes int, err error) {
	if !set.ns.Bodied() {
		sums := make([]dbadapter.Checksum, len(indices))
		if gone { // else there is a record
			if err := snap.Lookup(indices, sums); err != nil {
				return nil, 0, err
			}
		}
		for i, index := range indices {
			code := locator.Code(set.shard)
			if gone && sums[i] == 0 {
				code = locator.Gone
			}
			entries = append(entries, locator.NewEntry(index, code))
		}
		return entries, 0, nil
	}
	buckets, err := snap.Buckets(indices)
	if err != nil {
		return nil, 0, err
	}
	for i, index := range indices {
		for k := range buckets[i] {
			bytes += buckets[i][k].Record.Weight()
		}
		if code := set.code(buckets[i]); code != locator.Gone || gone && len(buckets[i]) == 0 {
			entries = append(entries, locator.NewEntry(index, code))
		}
	}
	return entries, bytes, nil
}

// code says where the values of the records under one index are; those under reserved keys count for nothing.
func (set *Set) code(records []dbadapter.Hashed) locator.Code {
	code := locator.Gone
	for i := range records {
		r := &records[i].Record
		if bodies.Reserved(r.Key) {
			continue
		}
		of := locator.Code(set.shard)
		if p := pointerOf(r); p != nil && int(p.Shard) < set.ns.rule.Shards {
			of = locator.Code(p.Shard)
		}
		if code != locator.Gone && code != of {
			return locator.Shared
		}
		code = of
	}
	return code
}
