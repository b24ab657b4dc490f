package check

import (
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Written judges a namespace whose placement is writer. A key may be in several shards for a
// while there, so that the rules about what a node holds under a key do not apply; these do:
//
//	answer    a read that is sure is not older than what was acknowledged AnswerAge before it was asked,
//	          by however few hosts, also one that takes no request; what is read was asked for;
//	          and in the end each node reads the same of each key, surely
//	durable   what was acknowledged stands in the end, or what came after it
//	lost      of two first writes that met, or two writes that had not seen one another, the one
//	          that does not stand is listed as a conflict
//	placed    in the end a key's record is in the one shard that its entry names
//	resurrect no host writes anew what an acknowledged write of the key had seen
//
// Files are not put back in such a run, and no member lapses. What members that were removed alone held
// may be lost (gone.go). It is for one goroutine at a time.
type Written struct {
	found verdict
	ops   []writtenOp
	// over are versions that records were seen to supersede, with these; listed are those in a kept log.
	over   map[dbadapter.Version]map[dbadapter.Version]bool
	listed map[dbadapter.Version]bool
	// conflicts are those of listed that are there as conflicts.
	conflicts map[dbadapter.Version]bool
	// made are the versions of all tries of all writes.
	made map[dbadapter.Version]bool
	// anew are records that a host has written, for which no program asked.
	anew map[dbadapter.Version]restored
	gone map[int]bool // nodes that were ever removed
}

// restored is what a host has written anew.
type restored struct {
	key     string
	content [32]byte
}

// writtenOp is a write that a program asked for.
type writtenOp struct {
	key          string
	deletes      bool
	content      [32]byte
	asked, acked time.Duration
	refused, ack bool
	version      dbadapter.Version // that was made last, or is acknowledged; zero: none
	hosts        map[int]bool      // that hold what is acknowledged, or were given it by one that did
	counted      int               // hosts, when it was acknowledged
}

// AnswerAge is how old what a sure read misses may be: what a host or the locator is sure of may
// be so old.
const AnswerAge = 5 * time.Second

// NewWritten returns one without a history.
func NewWritten() *Written {
	return &Written{
		over: map[dbadapter.Version]map[dbadapter.Version]bool{}, listed: map[dbadapter.Version]bool{}, conflicts: map[dbadapter.Version]bool{},
		made: map[dbadapter.Version]bool{}, anew: map[dbadapter.Version]restored{}, gone: map[int]bool{},
	}
}

// Asked notes that a write begins, and returns its number.
func (w *Written) Asked(key string, deletes bool, value []byte, now time.Duration) int {
	w.ops = append(w.ops, writtenOp{key: key, deletes: deletes, content: contentOf(deletes, value), asked: now})
	return len(w.ops) - 1
}

// Made notes the version of a write before a host holds it: another write may have seen it before
// its own acknowledgement comes.
func (w *Written) Made(op int, v dbadapter.Version) {
	w.ops[op].version = v
	w.made[v] = true
}

// Acknowledged notes that a write is, as a version, and which nodes hold it durably.
func (w *Written) Acknowledged(op int, v dbadapter.Version, hosts []int, now time.Duration) {
	o := &w.ops[op]
	o.ack, o.version, o.acked, o.counted, o.hosts = true, v, now, len(hosts), map[int]bool{}
	for _, host := range hosts {
		o.hosts[host] = true
	}
}

// Refused notes that nothing of a write was written.
func (w *Written) Refused(op int) { w.ops[op].refused = true }

// Observed notes a record that a node holds now, of a shard. A tombstone that no program asked for is of a
// host that took a first write back: what it takes the place of is to be listed.
func (w *Written) Observed(node int, r *dbadapter.Record) {
	if !w.made[r.Version] {
		if r.Deleted || w.gone[node] {
			return
		}
		w.anew[r.Version] = restored{string(r.Key), contentOf(false, r.Value)}
	}
	for i := range w.ops {
		if o := &w.ops[i]; o.version.Clock != 0 && o.key == string(r.Key) && supersedes(r, o.version) {
			if w.over[o.version] == nil {
				w.over[o.version] = map[dbadapter.Version]bool{}
			}
			w.over[o.version][r.Version] = true
		}
	}
}

// resurrected judges what hosts have written anew: at least one write of that content must be
// one that no acknowledged write had seen that is earlier than the new one. A later one wins over that.
func (w *Written) resurrected() {
	for v, r := range w.anew {
		var by *writtenOp
		for i := range w.ops {
			o := &w.ops[i]
			if o.key != r.key || o.deletes || o.content != r.content {
				continue
			}
			if by = w.seenBy(o, v); by == nil {
				break
			}
		}
		if by != nil {
			w.found.say(Resurrect, -1, r.key, "a host has written anew, as version %s, what %s had seen, which was acknowledged", v, stamp{version: by.version, deleted: by.deletes, content: by.content})
		}
	}
}

// seenBy is an acknowledged write before a version that had seen another one, or nil.
func (w *Written) seenBy(o *writtenOp, before dbadapter.Version) *writtenOp {
	for i := range w.ops {
		if d := &w.ops[i]; d.ack && d.version.Compare(before) < 0 && !w.unled(d) && w.over[o.version][d.version] {
			return d
		}
	}
	return nil
}

// supersedes reports whether the writer of a record had seen a version.
func supersedes(r *dbadapter.Record, v dbadapter.Version) bool {
	if v.Writer == r.Version.Writer && v.Incarnation == r.Version.Incarnation {
		return v.Clock < r.Version.Clock
	}
	for _, p := range r.Replaces {
		if p.Writer == v.Writer {
			return v.Clock <= p.Clock
		}
	}
	return false
}

// Listed notes a record in a node's kept log.
func (w *Written) Listed(k *dbadapter.Kept) {
	w.listed[k.Record.Version] = true
	w.conflicts[k.Record.Version] = w.conflicts[k.Record.Version] || k.Why == dbadapter.KeptConflict
}

// WrittenRead is a read under way.
type WrittenRead struct {
	Node  int
	Key   string
	Asked time.Duration
}

// Read judges what a read has found, by these nodes. requests is how many nodes it has asked.
func (w *Written) Read(r WrittenRead, record *dbadapter.Record, sure bool, by []int, requests int) {
	w.intended(r.Node, r.Key, record)
	if !sure || w.unheard(r.Node, by) {
		return
	}
	for i := range w.ops {
		o := &w.ops[i]
		if o.key != r.Key || !o.ack || w.unled(o) || o.acked+AnswerAge >= r.Asked || !w.misses(record, o) {
			continue
		}
		how := "after asking"
		if requests == 0 {
			how = "without asking a node"
		}
		w.found.say(Answer, r.Node, r.Key, "a read was sure of %s %s; %s was acknowledged %s before", what(record), how, stamp{version: o.version, deleted: o.deletes, content: o.content}, r.Asked-o.acked)
	}
}

func what(record *dbadapter.Record) string {
	if record == nil {
		return "nothing"
	}
	return stampOf(record).String()
}

// misses reports whether what was found is before a write: not where it may have been deleted since.
func (w *Written) misses(record *dbadapter.Record, o *writtenOp) bool {
	s := stamp{version: o.version, deleted: o.deletes, content: o.content, rest: untold}
	if record != nil {
		return s.beats(stampOf(record))
	}
	if o.deletes {
		return false
	}
	for i := range w.ops {
		if d := &w.ops[i]; d.key == o.key && d.deletes && !d.refused && (!d.ack || d.version.Clock > o.version.Clock) {
			return false
		}
	}
	return true
}

// intended judges whether a program asked for a record.
func (w *Written) intended(node int, key string, record *dbadapter.Record) {
	if record == nil || record.Deleted {
		return
	}
	content := contentOf(false, record.Value)
	for i := range w.ops {
		if o := &w.ops[i]; o.key == key && o.content == content {
			return
		}
	}
	w.found.say(Intended, node, key, "a read gave %s, which no program has written", stampOf(record))
}

// WrittenFinal is what the nodes hold of a key in the end.
type WrittenFinal struct {
	Key string
	// Named is the shard that Entry names; -1: there is no entry. Records are the records that are not
	// deleted, by shard.
	Named   int
	Entry   *dbadapter.Record
	Records map[int]*dbadapter.Record
}

// Last judges what is held in the end, and Verdict gives what was found.
func (w *Written) Last(f *WrittenFinal) {
	var stands *dbadapter.Record
	for shard, r := range f.Records {
		if shard != f.Named {
			w.found.say(Placed, -1, f.Key, "shard %d holds %s, and the entry names shard %d", shard, stampOf(r), f.Named)
		}
		if stands == nil || stampOf(r).beats(stampOf(stands)) {
			stands = r
		}
	}
	if f.Named >= 0 && f.Records[f.Named] == nil && w.acknowledged(f.Entry.Version) && !w.halfDeleted(f) {
		w.found.say(Placed, -1, f.Key, "the entry names shard %d, which holds nothing", f.Named)
	}
	for i := range w.ops {
		o := &w.ops[i]
		if o.key != f.Key || !o.ack || w.lost(o) {
			continue
		}
		if w.misses(stands, o) && !w.overtaken(o) {
			w.found.say(Durable, -1, f.Key, "%s was acknowledged, and %s stands", stamp{version: o.version, deleted: o.deletes, content: o.content}, what(stands))
		}
		if !o.deletes && (stands == nil || stands.Version != o.version) && !w.told(o) {
			w.found.say(Lost, -1, f.Key, "%s was acknowledged, does not stand, was not seen by what does, and is listed nowhere", stamp{version: o.version, content: o.content})
		}
	}
}

// acknowledged reports whether the write of an entry was: one whose author has ended before the
// record may lead nowhere.
func (w *Written) acknowledged(v dbadapter.Version) bool {
	for i := range w.ops {
		if o := &w.ops[i]; o.ack && !o.deletes && o.version == v && !w.lost(o) {
			return true
		}
	}
	return false
}

// halfDeleted reports whether a deletion of an entry's key was not acknowledged, or may be lost with the
// nodes that held it, or the entry's tombstone alone: it may have deleted the record, and not the entry.
func (w *Written) halfDeleted(f *WrittenFinal) bool {
	return slices.ContainsFunc(w.ops, func(o writtenOp) bool {
		return o.key == f.Key && o.deletes && (!o.ack || w.lost(&o) || w.unled(&o)) && !o.refused && o.version.Clock > f.Entry.Version.Clock
	})
}

// overtaken reports whether a later write of a deleted key has ended between entry and record: its entry,
// which wins over the deletion's, leads to what its writer had seen.
func (w *Written) overtaken(o *writtenOp) bool {
	return o.deletes && slices.ContainsFunc(w.ops, func(p writtenOp) bool {
		return p.key == o.key && !p.deletes && !p.ack && !p.refused && p.version.Clock > o.version.Clock
	})
}

// told reports whether what became of a write is known: another one has seen it, or was asked for
// after it and may have; a later one of the same writer's incarnation is there, which has seen it
// by that alone (Record.Supersedes); it is listed; or the same content was written anew.
func (w *Written) told(o *writtenOp) bool {
	if len(w.over[o.version]) > 0 || w.listed[o.version] {
		return true
	}
	for i := range w.ops {
		p := &w.ops[i]
		if p == o || p.key != o.key {
			continue
		}
		if own := (&dbadapter.Record{Version: p.version}); !p.refused && p.asked > o.acked || p.ack && own.Supersedes(o.version) {
			return true
		}
	}
	return false
}

// Final judges a read when nothing is under way any more.
func (w *Written) Final(node int, key string, record *dbadapter.Record, sure bool, why error, held *dbadapter.Record) {
	live := func(r *dbadapter.Record) *dbadapter.Record {
		if r == nil || r.Deleted {
			return nil
		}
		return r
	}
	a, b := live(record), live(held)
	switch {
	case why != nil:
		w.found.say(Answer, node, key, "all hosts are equal and in reach, and a read fails: %v", why)
	case !sure:
		w.found.say(Answer, node, key, "all hosts are equal and in reach, and a read is not sure")
	case (a == nil) != (b == nil), a != nil && a.Version != b.Version:
		w.found.say(Answer, node, key, "a read gives %s, and the hosts hold %s", what(a), what(b))
	}
}

// Verdict is what was found.
func (w *Written) Verdict() []Violation {
	w.resurrected()
	return w.found.sorted()
}
