package node

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// ByWriter reads and writes the keys of a namespace whose placement is writer: the locator says
// which shard a key is in, and where it is not sure, the key's entry of the directory does. It also
// decides what becomes of first writes that met (Meet). What takes requests or time its driver
// does; its methods may wait for that, and any number of goroutines may call them.
type ByWriter struct {
	ns       *Namespace
	do       WriterDriver
	meetings meetings
	came     came
	dangling dangling
}

// WriterDriver is what a ByWriter has its driver do.
type WriterDriver interface {
	// LookUpIn looks a key up in one of the namespace's sets, at its hosts, or at all that may
	// hold the set.
	LookUpIn(ctx context.Context, in placement.Shard, key []byte, all bool) (LookedUp, error)
	// Hand drives the write of a record to the hosts of its set, until need of them hold it. here
	// is this node, if it holds it already, settled or not; else it is asked as the others are (Remote.HoldHere).
	Hand(ctx context.Context, remote *Remote, record *dbadapter.Record, here ID, settled bool, need int, how route.Manner) (route.Written, error)
	// Heed makes the lists of members equal with hosts that disagree in what they have done with a record,
	// and reports whether this node has learnt something, so that they may take it now.
	Heed(ctx context.Context, written *route.Written) bool
	// Each calls do with each of the sets, some at once, until the context is over.
	Each(ctx context.Context, sets []placement.Shard, do func(placement.Shard))
	// Connected reports whether there is a connection to a member.
	Connected(id ID) bool
	// Locator is that of this node. Now is its clock, which goes on while the machine sleeps;
	// Steady one that never runs fast.
	Locator() *directory.Locator
	Now() time.Duration
	Steady() time.Duration
	// Met is told what has become of a record of a shard that the directory places elsewhere.
	Met(what Meeting, shard placement.Shard, err error)
}

// Meeting is what has become of a record that the directory places elsewhere.
type Meeting uint8

// What becomes of such records.
const (
	// Receded: another first write of the key stands, and the record is a listed conflict.
	Receded Meeting = iota + 1
	// RestoredLost: the record was written anew, since no entry led to it. RestoredHidden: since
	// the entry that hid it leads to none.
	RestoredLost
	RestoredHidden
	// Undecided: that failed, and is tried again. Unlooked: the shard's records could not be
	// looked through.
	Undecided
	Unlooked
)

// NewByWriter returns that of a namespace, which is looked through first after a while.
func (ns *Namespace) NewByWriter(do WriterDriver) *ByWriter {
	w := &ByWriter{ns: ns, do: do, meetings: meetings{every: do.Steady() + meetingsEvery}}
	ns.byWriter.Store(w)
	return w
}

// mayAdopt reports whether a host may write a former member's record that is there anew in its own name. By
// placement writer it may not unless the directory places the key in its shard: the new version may
// be later than a write that has seen the record, and hides it from another shard, or than a deletion
// of that. What becomes of such a record Meet decides, which looks soon; tombstones, at which it
// does not look, a host may take.
func (ns *Namespace) mayAdopt(set *Set, key []byte) bool {
	if !ns.Writers() || set.Directory() {
		return true
	}
	w := ns.byWriter.Load()
	if w == nil {
		return false
	}
	switch a := w.told(key); {
	case a.Where == directory.Unknown:
		return a.Shared // no feed will tell
	case a.Where != directory.Nowhere && a.Shard == set.shard && len(a.Others) == 0:
		return true
	}
	w.HeardOf(set.shard)
	return false
}

// HeardOf is told of a shard out of which a host of the directory says that a key has gone into
// another one, or shares its index now (directory.Config.Met).
func (w *ByWriter) HeardOf(shard placement.Shard) { w.meetings.met(shard) }

// LookedUp is what a look-up has found of a key.
type LookedUp struct {
	route.Found
	// Here: this node is a host, and its own answer was enough, or is among what was found.
	Here bool
	// Shard is the set in which the key was looked for last.
	Shard placement.Shard
	// Void: it is not sure for this alone that the key's entry leads to no record.
	Void bool
}

// Add adds what another look-up of the key took.
func (f *LookedUp) Add(o *LookedUp) {
	f.Requests, f.Hedges = f.Requests+o.Requests, f.Hedges+o.Hedges
	f.Heard = append(f.Heard, o.Heard...)
}

// doubt notes why it is not sure.
func (f *LookedUp) doubt(why string) { f.Sure, f.Doubt = false, why }

// Unsure is ErrUnsure with what the look-up says of why.
func (f *LookedUp) Unsure() error {
	if f.Doubt == "" {
		return ErrUnsure
	}
	return fmt.Errorf("%w: %s", ErrUnsure, f.Doubt)
}

// undecided says why another first write of a key may win.
func (w *ByWriter) undecided(key []byte) string {
	if why := w.do.Locator().Doubt(w.ns.Home(key), w.do.Now()); why != "" {
		return why
	}
	return "the hosts of the directory do not name the same shard for the key"
}

func there(r *dbadapter.Record) bool { return r != nil && !r.Deleted }

// LookUp finds the record under a key. A key that is nowhere for sure takes
// no request; one that the locator places takes one, if it is there; any other, one to
// the directory first.
func (w *ByWriter) LookUp(ctx context.Context, key []byte, all bool) (LookedUp, error) {
	return w.lookUpFrom(ctx, key, w.WhereIs(key), all)
}

// lookUpFrom is LookUp where the locator has said so much.
func (w *ByWriter) lookUpFrom(ctx context.Context, key []byte, a directory.Answer, all bool) (LookedUp, error) {
	ns := w.ns
	if a.Where == directory.Nowhere && !all {
		return LookedUp{Found: route.Found{Sure: true}, Shard: ns.Entries(key)}, nil
	}
	found, err := w.lookUpBy(ctx, key, a, all)
	if placed := (a.Where == directory.In || a.Where == directory.Here) && a.Shard == found.Shard; err == nil && there(found.Record) && !placed {
		home, index := ns.ToldAs(key)
		w.do.Locator().Found(home, index, found.Shard, w.do.Now())
	}
	return found, err
}

// lookUpBy is LookUp of a key of which the locator has said so much.
func (w *ByWriter) lookUpBy(ctx context.Context, key []byte, a directory.Answer, all bool) (LookedUp, error) {
	ns := w.ns
	var hinted LookedUp
	var err error
	asked := false
	if a.Where == directory.In || a.Where == directory.Here {
		asked = true
		if hinted, err = w.do.LookUpIn(ctx, a.Shard, key, all); err == nil && hinted.Sure && a.Decided() && !a.Moved && !all && there(hinted.Record) {
			return hinted, nil
		}
	}
	entry, err := w.do.LookUpIn(ctx, ns.Entries(key), key, all)
	if a.Where == directory.OneOf && err == nil && !there(entry.Record) { // this node may have written what that host has not heard of
		for _, shard := range append([]placement.Shard{a.Shard}, a.Others...) {
			in, failed := w.do.LookUpIn(ctx, shard, key, all)
			if hinted.Add(&in); failed != nil {
				entry.doubt("a shard that may have the key: " + failed.Error())
			} else if there(in.Record) && rather(in.Record, hinted.Record) {
				hinted.Record, hinted.Shard = in.Record, in.Shard
			}
		}
	}
	switch {
	case err != nil && there(hinted.Record):
		hinted.Add(&entry)
		hinted.doubt("the key's entry in the directory: " + err.Error())
		return hinted, nil
	case err != nil:
		entry.Add(&hinted)
		return entry, err
	case entry.Record == nil && hinted.Record != nil:
		hinted.Add(&entry)
		hinted.doubt("the directory has no entry that leads to the record")
		return hinted, nil
	case entry.Record != nil && entry.Record.Deleted && there(hinted.Record) && beyond(hinted.Record, entry.Record):
		hinted.Add(&entry)
		hinted.doubt("the directory has an entry of before the record")
		return hinted, nil
	case entry.Record == nil, entry.Record.Deleted:
		entry.Add(&hinted)
		if h := hinted.Record; h != nil && h.Deleted && entry.Record != nil && beyond(h, entry.Record) { // the entry's own tombstone is about to come
			entry.Record, entry.Shard = h, hinted.Shard
		}
		return entry, nil
	}
	shard, err := directory.ShardOf(entry.Record, ns.rule.Shards)
	if err != nil {
		return entry, fmt.Errorf("%w: %w", dbadapter.ErrCorrupt, err) // it was examined when it came
	}
	found := hinted
	if asked && shard == a.Shard && hinted.Sure && there(hinted.Record) {
		found.Add(&entry)
	} else {
		found, err = w.do.LookUpIn(ctx, shard, key, all)
		found.Add(&entry)
		found.Add(&hinted)
	}
	// While the hosts of the directory are not heard to agree, another first write may win.
	switch {
	case !found.Sure:
	case !entry.Sure:
		found.doubt("the key's entry in the directory: " + entry.Doubt)
	default: // a host that is current knows what each member holds that may hold the entry
		if a := w.told(key); !a.Decided() && !(a.Answering && w.entriesName(ctx, key, shard, &found)) {
			found.doubt(w.undecided(key))
		}
	}
	if err != nil || !found.Sure {
		return found, err
	}
	// Where the key has moved, an earlier record may be of a first write that has lost; mostly the later one is about to come.
	earlier := func() bool { return a.Moved && there(found.Record) && beyond(entry.Record, found.Record) }
	if earlier() {
		if again, failed := w.do.LookUpIn(ctx, shard, key, true); failed == nil {
			again.Add(&found)
			found = again
		}
	}
	switch {
	case !found.Sure:
	case dangles(entry.Record, found.Record):
		found.doubt("the directory has an entry that leads to no record")
		w.lookBehind(ctx, shard, entry.Record, &found)
		found.Void = !found.Sure
	case earlier():
		found.doubt("the directory has an entry that is later than the record: a write is on its way, or has ended in between, and another shard may hold what was acknowledged since")
		w.lookBehind(ctx, shard, entry.Record, &found)
	}
	return found, nil
}

// entriesName reports whether all hosts of a key's entry, each of which is asked, hold one that names a
// shard, or none. So what a feed leaves open of a host that tells otherwise than others is
// decided by the records: those it cannot make. What it takes is added to found.
func (w *ByWriter) entriesName(ctx context.Context, key []byte, shard placement.Shard, found *LookedUp) bool {
	ns := w.ns
	in := ns.Entries(key)
	entry, err := w.do.LookUpIn(ctx, in, key, true)
	found.Add(&entry)
	tellers := ns.Tellers().Of[ns.Home(key)] // by a list that came meanwhile, others may be among them, which were not asked
	if err != nil || len(tellers) == 0 {
		return false
	}
	said, err := w.said(key, &entry)
	if err != nil {
		return false
	}
	for _, id := range tellers {
		a := said[id]
		if a == nil || (!a.Host || !a.Settled || a.OtherList) && id != ns.node.ID {
			return false // what this node holds it knows, also as a host of before
		}
		if !there(a.Record) {
			continue
		}
		if named, err := directory.ShardOf(a.Record, ns.rule.Shards); err != nil || named != shard {
			return false
		}
	}
	return true
}

// said is what hosts of a key's entry have said of it in a look-up, this node among them if it is one.
func (w *ByWriter) said(key []byte, entry *LookedUp) (map[ID]*route.Answer, error) {
	said := map[ID]*route.Answer{}
	for _, h := range entry.Heard {
		said[h.Peer] = h.Answer
	}
	if w.ns.held(w.ns.Entries(key)) != nil {
		own, err := w.ns.RemoteIn(key, w.ns.Entries(key)).own()
		if err != nil {
			return nil, err
		}
		said[w.ns.node.ID] = cmp.Or(own, &route.Answer{}) // as a host of before it may hold nothing
	}
	return said, nil
}

// WhereIs is what the locator says of a key, and nothing for sure where a further member may hold entries,
// and tells nothing of them.
func (w *ByWriter) WhereIs(key []byte) directory.Answer {
	a := w.told(key)
	if w.ns.Tellers().Open[w.ns.Home(key)] {
		a = a.Unheard()
	}
	return a
}

// told is what the locator says of a key by the feeds that it follows.
func (w *ByWriter) told(key []byte) directory.Answer {
	home, index := w.ns.ToldAs(key)
	return w.do.Locator().Locate(home, index, w.do.Now())
}
