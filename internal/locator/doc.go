// Package locator says in which shard the value of each key is, where a namespace has a locator
// (placement.Rule). So a look-up takes one request, and that of a key that there is not takes none.
//
// A shard is a *set* here, and a key is known by its index of 42 bits in its set. A [Follower]
// follows each set at one whole host, and tells an [Index] what it hears. docs/decisions/0074 says
// why it is made so.
//
// # The index
//
//	look-up
//	   │
//	   ▼
//	field   all keys of all sets (bfield.Field)           new keys are put in place
//	   │ known, or by chance
//	   ▼
//	exact   moves, deletions, and what the field leaves   sorted, packed, one of each set
//	   │ not there
//	   ▼
//	what the field says
//
//	disk    a sorted copy of each set with its place      what has changed since is in memory
//
// A key that is new is put into the field while look-ups go on. Bits cannot be taken out of it: so
// a key that has another shard, or none any more, is put into the exact map of its set. So is a key
// of which the field shows more than one shard, or a wrong one, when it is put in. When the field
// has no more room, or the exact maps have a sixteenth of the keys, another field is built in the
// background, of the copies on disk.
//
// The copy on disk is the log: it is as of a place in its host's log. What has changed since is
// kept in memory, and laid over the copy when that is written anew, and over a field when that is
// built. After a crash the place is that of the file, and the host says again what follows.
//
//	answer    of a key that hosts have said                        of any other index
//	Nowhere   never                                                else
//	In        its shard; another one of 1 in 10^7 keys or so       1 in 4,096
//	Ask       1 in 100: those of which the field shows several     rarely
//
// # What it takes
//
// Memory, by key, of 10^7 keys in 256 sets (bench/bfield/locator): 3.93 bytes of field, with room
// for a sixteenth more keys; 0.45 of exact maps, when they have a sixteenth of the keys; 0.08 of
// changes that are not on disk. While a field is built there are two, and 40 bytes for each fiftieth
// key. A file takes 4.5 bytes a key. A look-up waits for a lock that is held for some 0.1 ms.
//
// # The feed
//
//	store of a whole host                        a node that follows it
//	  change log ── Poll, News: since seq 812 ──► Apply, and the set is heard
//	  snapshot ──── Take, Page: hash or keys ───► Replace, where a page differs
//
// A host keeps nothing: it reads what has changed from the change log of its store, and pages from a
// snapshot (internal/shards/feed.go). A poll names all sets that are followed at the host, each with the
// place of its copy. The poll counts from when it was sent. A key is Nowhere only if its set was heard
// within [Fresh], by the row by which the node goes, at a host that went by it, too, and was whole.
//
// Each set is followed at one host of its row. The node itself follows none of which it is a whole host.
// [Follower] chooses few hosts that have all sets, and goes on with them. Where one fails, or is not whole
// any more, another one is followed: its log is another one, so the set is taken from it page by page. The
// node gives a hash of what it has with each question, and what is equal is not sent.
//
// A driver (internal/shards/follow.go) runs the turns, and the work of the index:
//
//	for _, t := range f.Turns(now()) { go run(t) }     // every half second; see Turn
//	if run := f.Index.Work(f.Fetching()); run != nil { go run() }
//	f.Locate(set, index, now())                        // any time
//	f.Wrote(set, entry)                                // before a write of this node is acknowledged
//	f.Index.Save()                                     // before the end
//
// # What is not promised
//
// What a copy says is one host's word: one that lies hides keys from reads at level one, and those alone
// rest on it. Its lies stay until the set is followed elsewhere. Who knows the seed of an Index can choose
// indices that are false positives.
package locator
