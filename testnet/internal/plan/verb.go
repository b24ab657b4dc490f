package plan

import "slices"

// Verb is the kind of an event.
type Verb uint8

// The verbs. The comments show the line of text, without its time.
const (
	// Put: "put 2 key7 100B" writes 100 bytes drawn from the seed under key7 at node 2; "put 2
	// key7 \"red\"" writes these. In a namespace that is cut into shards "ack one", "ack
	// quorum", "ack all" or "ack 2" at the end say who is to hold it. So they do of all that
	// writes.
	Put Verb = iota + 1
	// PutIf: "putif 2 key7 100B" writes on the condition that key7 still is as node 2 last
	// read or wrote it. If it never did, the condition is that there is none.
	PutIf
	// Del: "del 2 key7" deletes.
	Del
	// Touch: "touch 2 key7" writes once more what the node holds under key7:
	// the same content under a new version. Without a value there it does
	// nothing.
	Touch
	// Dated: "dated 2 key7 100B" imports a value whose date is what node 2's clock
	// says, cut to whole ten seconds. So nodes may give one date to differing data.
	Dated
	// Expiring: "expiring 2 key7 100B for 30s" writes as put does, with a time to
	// live of 30 s.
	Expiring
	// Backdate: "backdate 2 key7 100B by 1h" has a modified program at node 2 write a
	// version of an hour ago.
	Backdate
	// Batch: "batch 2 k 40 100B" writes 40 keys, k0 to k39, in one transaction. In a namespace
	// that is cut into shards all are in the shard of k. They are k and the first of k.1, k.2
	// and so on that are in it.
	Batch
	// Import: "import 2 k 8 100B" imports k0 to k7, each a minute older than the one before, from what
	// node 2's clock says on.
	Import
	// Sync: "sync 0>1" has node 0 begin a sync with node 1.
	Sync
	// Pull: "pull 0>1" has node 0 begin a sync that moves records only to it.
	Pull
	// Push: "push 0>1" has node 0 begin a sync that moves records only to 1.
	Push
	// Diff: "diff 0>1" has node 0 list the keys that differ, and move nothing.
	Diff
	// SendAll: "send-all 0>1" has node 0 begin a sync in which both send all their
	// records.
	SendAll
	// SyncPrefix: "sync-prefix 0>1 k1" syncs the keys that begin with k1.
	SyncPrefix
	// Replay: "replay 0>1" delivers to node 1 once more, as they were, the frames that
	// node 0 sent it in the last session which 0 began.
	Replay
	// Join: "join 1>0" has node 0 invite node 1, which redeems the ticket over the
	// network and then may write. "join 1>0 admin" gives it that role.
	Join
	// Redeem: "redeem 1>0" has node 1 present to node 0 once more the ticket by which
	// it joined there last. Without one it does nothing.
	Redeem
	// SetRole: "role 0>2 read" has node 0 give node 2 that role, if 2 runs and has ever
	// joined.
	SetRole
	// Term: "term 0>2 write for 5m" has node 0 give node 2 that role for five minutes.
	Term
	// Remove: "remove 0>2" has node 0 end node 2's membership.
	Remove
	// Lapse: "lapse 0>2" has node 0 tell the members to wait for node 2 no longer.
	Lapse
	// Why: "why 0>1 k7" has node 0 ask node 1 why it stands with k7 as it does.
	Why
	// Wait: "wait 0>1 for 30s" has node 0 wait, that long at the most, until node 1 holds
	// what node 0 holds.
	Wait
	// WaitAll: "wait-all 0 for 30s" does so with all other members.
	WaitAll
	// WaitKey: "wait-key 0 k7 2 for 30s" has node 0 wait until two other members, or with 0
	// all, hold a version of k7. It is the one that was acknowledged last at node 0.
	WaitKey
	// Status: "status 0>1" has node 0 ask node 1 how it is.
	Status
	// Watch: "watch 2 w" has a program w at node 2 watch what follows, or go on from where
	// it was. "watch 2 w from=start prefix=k1 pace=2s" tells first what is held. It tells
	// only of keys that begin with k1, and a few events each two seconds. The program goes
	// on by itself when the node starts again, and from the start where its cursor has
	// expired.
	Watch
	// Unwatch: "unwatch 2 w" ends the connection of the program, which keeps its cursor.
	Unwatch
	// Get: "get 2 key7" reads key7 at node 2, which asks the shard's hosts. "expect nowhere"
	// behind it is what the read is to come to ([Finding]). "read one", "read quorum" and
	// "read all" say at which level. "atleast" asks for what node 2 wrote there last, or
	// something later.
	Get
	// Scan: "scan 2" reads all keys at node 2, which asks a host of each shard.
	Scan
	// Reindex: "reindex 2" has node 2 hand the records that hosts of bodies were given to the hosts of their keys.
	Reindex
	// Crash: "crash 2" ends the process at once. What was not synced to the disk
	// is lost, but for the first of it. Crashing a node that is down does nothing.
	Crash
	// CrashAt: "crash-at 2 apply" crashes it when a session of its next enters
	// that step.
	CrashAt
	// CrashAnswering: "crash-answering 2" crashes it as soon as it has answered a question. At
	// a question about a record of a shard it crashes when it has done what is asked, and
	// before the answer leaves.
	CrashAnswering
	// Start: "start 2" starts a node that is down; on others it does nothing.
	Start
	// Freeze: "freeze 2 for 3s" stops the process; its timers are late, what is
	// sent to it waits.
	Freeze
	// Skew: "skew 2 -90s" moves its wall clock by that much.
	Skew
	// StopClock: "stopclock 2 for 10s": its wall clock stands still for that
	// long, and goes on from there, that much behind.
	StopClock
	// Restamp: "restamp 2" gives what node 2 wrote too far ahead of its clock a
	// version of now.
	Restamp
	// Cut: "cut 0>1" loses all frames from 0 to 1; those from 1 to 0 arrive.
	Cut
	// Heal: "heal 0>1" ends a cut in that direction, and a loss.
	Heal
	// Partition: "partition 0,1|2,3" cuts all links between groups, and no
	// others; a node that is not named is alone.
	Partition
	// HealAll: "healall" ends all cuts, losses and partitions.
	HealAll
	// Loss: "loss 0>1 0.05" loses that share of the frames from 0 to 1, in
	// steps of 0.001.
	Loss
	// Copy: "copy 2" copies the disk of node 2, as it is synced.
	Copy
	// Restore: "restore 2" stops node 2, makes its disk the last copy, and
	// starts it: the files are as they were. Without a copy it does nothing.
	Restore
	// RestoreBackup: "restore-backup 2" does so as the command restore does: change logs
	// get new ids, so that the node knows of it.
	RestoreBackup
	// Flip: "flip 2 1000" flips a bit of its synced bytes: the bit is
	// Amount modulo 8 of byte Amount/8 modulo the length.
	Flip
	// FlipCell: "flip-cell 2 1000" flips a bit of the live sketch of node 2: bit
	// Amount of its first cells, counted around the end.
	FlipCell
	// FlipSum: "flip-sum 2 1000" flips a bit of what node 2 keeps of a range, the
	// number of records or the sum of their digests. It is bit Amount of all ranges,
	// those with records first, counted around the end.
	FlipSum
	// Phantom: "phantom 2 7" puts a pair into the live sketch of node 2 that no node
	// holds, drawn by the number. An odd number takes it out, though it is not there.
	Phantom
	// FalsePeel: "false-peel 0>1" is about the next sync that node 0 begins with node
	// 1. Its cells hold a pair that neither holds, as if it had been peeled out of them
	// wrongly. By the seed those that are asked for later hold it, too, or not.
	FalsePeel
	// ShortCheck: "short-check 0>1" is about the next sync that node 0 begins with node
	// 1. A cell that holds several differences passes for one that holds a pair that
	// neither node holds, as happens by chance. It waits for a sync whose cells allow
	// it.
	ShortCheck
	// Full: "full 2 for 10s": its disk takes no more writes for that long.
	Full
	// Old: "old 2" restarts the node with an older version of the protocol.
	Old
	// Lie: "lie 2" restarts the node with a modified program: its greetings claim that
	// it holds and has collected everything up to the year 2099.
	Lie
	// Hide: "hide 2 key7" has a modified program at node 2 leave key7 out of what it tells of
	// its hosted keys, though it holds it; Invent: "invent 2 key7" has it tell that key7 is
	// there, though it holds nothing of it.
	Hide
	Invent
	// New: "new 2" restarts it with the current program.
	New
	// Expand: "random writes=200 keys=50 faults=20 for 60s" stands for many
	// events between its time and 60 s later. See [Plan.Expand].
	Expand
	verbs
)

// class is a verb's class for the shrinker.
type class uint8

const (
	operation class = iota // writes and syncs
	fault                  // what goes wrong
	mending                // what ends a fault
)

// where is in which namespaces a verb is: in all, in those that are cut into shards, or in the
// others. The others ask a node for all that the namespace holds, or damage what one set keeps.
type where uint8

const (
	anywhere where = iota
	onlyCut
	onlyWhole
)

var verbTable = [verbs]struct {
	name     string
	class    class
	in       where
	operands []*operand
}{
	Put:            {"put", operation, anywhere, []*operand{theNode, theKey, theValue, anAck}},
	PutIf:          {"putif", operation, onlyCut, []*operand{theNode, theKey, theValue, anAck}},
	Del:            {"del", operation, anywhere, []*operand{theNode, theKey, anAck}},
	Touch:          {"touch", operation, onlyWhole, []*operand{theNode, theKey}},
	Dated:          {"dated", operation, anywhere, []*operand{theNode, theKey, theValue, anAck}},
	Expiring:       {"expiring", operation, anywhere, []*operand{theNode, theKey, theValue, forTime, anAck}},
	Backdate:       {"backdate", operation, onlyWhole, []*operand{theNode, theKey, theValue, byTime}},
	Batch:          {"batch", operation, anywhere, []*operand{theNode, theKey, theCount, theSizes, anAck}},
	Import:         {"import", operation, onlyCut, []*operand{theNode, theKey, theCount, theSizes, anAck}},
	Sync:           {"sync", operation, anywhere, []*operand{theLink}},
	Pull:           {"pull", operation, onlyWhole, []*operand{theLink}},
	Push:           {"push", operation, onlyWhole, []*operand{theLink}},
	Diff:           {"diff", operation, onlyWhole, []*operand{theLink}},
	SendAll:        {"send-all", operation, onlyWhole, []*operand{theLink}},
	SyncPrefix:     {"sync-prefix", operation, onlyWhole, []*operand{theLink, theKey}},
	Replay:         {"replay", fault, onlyWhole, []*operand{theLink}},
	Join:           {"join", operation, anywhere, []*operand{theLink, someRole}},
	Redeem:         {"redeem", operation, onlyWhole, []*operand{theLink}},
	SetRole:        {"role", operation, anywhere, []*operand{twoNodes, theRole}},
	Term:           {"term", operation, onlyWhole, []*operand{twoNodes, theRole, forTime}},
	Remove:         {"remove", operation, anywhere, []*operand{twoNodes}},
	Lapse:          {"lapse", operation, anywhere, []*operand{twoNodes}},
	Why:            {"why", operation, onlyWhole, []*operand{theLink, theKey}},
	Wait:           {"wait", operation, onlyWhole, []*operand{theLink, forTime}},
	WaitAll:        {"wait-all", operation, onlyWhole, []*operand{theNode, forTime}},
	WaitKey:        {"wait-key", operation, onlyWhole, []*operand{theNode, theKey, theMembers, forTime}},
	Status:         {"status", operation, onlyWhole, []*operand{theLink}},
	Watch:          {"watch", operation, anywhere, []*operand{theNode, theProgram, theWatching}},
	Unwatch:        {"unwatch", operation, anywhere, []*operand{theNode, theProgram}},
	Get:            {"get", operation, onlyCut, []*operand{theNode, theKey, aRead, atLeast, aFinding}},
	Scan:           {"scan", operation, onlyCut, []*operand{theNode}},
	Reindex:        {"reindex", operation, anywhere, []*operand{theNode}},
	Crash:          {"crash", fault, anywhere, []*operand{theNode}},
	CrashAt:        {"crash-at", fault, anywhere, []*operand{theNode, theStep}},
	CrashAnswering: {"crash-answering", fault, anywhere, []*operand{theNode}},
	Start:          {"start", mending, anywhere, []*operand{theNode}},
	Freeze:         {"freeze", fault, anywhere, []*operand{theNode, forTime}},
	Skew:           {"skew", fault, anywhere, []*operand{theNode, theSkew}},
	StopClock:      {"stopclock", fault, anywhere, []*operand{theNode, forTime}},
	Restamp:        {"restamp", mending, onlyWhole, []*operand{theNode}},
	Cut:            {"cut", fault, anywhere, []*operand{theLink}},
	Heal:           {"heal", mending, anywhere, []*operand{theLink}},
	Partition:      {"partition", fault, anywhere, []*operand{theGroups}},
	HealAll:        {"healall", mending, anywhere, nil},
	Loss:           {"loss", fault, anywhere, []*operand{theLink, theShare}},
	Copy:           {"copy", fault, anywhere, []*operand{theNode}},
	Restore:        {"restore", fault, anywhere, []*operand{theNode}},
	RestoreBackup:  {"restore-backup", fault, anywhere, []*operand{theNode}},
	Flip:           {"flip", fault, onlyWhole, []*operand{theNode, theBit}},
	FlipCell:       {"flip-cell", fault, onlyWhole, []*operand{theNode, theBit}},
	FlipSum:        {"flip-sum", fault, onlyWhole, []*operand{theNode, theBit}},
	Phantom:        {"phantom", fault, onlyWhole, []*operand{theNode, theBit}},
	FalsePeel:      {"false-peel", fault, onlyWhole, []*operand{theLink}},
	ShortCheck:     {"short-check", fault, onlyWhole, []*operand{theLink}},
	Full:           {"full", fault, onlyWhole, []*operand{theNode, forTime}},
	Old:            {"old", fault, onlyWhole, []*operand{theNode}},
	Lie:            {"lie", fault, onlyWhole, []*operand{theNode}},
	Hide:           {"hide", fault, anywhere, []*operand{theNode, theKey}},
	Invent:         {"invent", fault, anywhere, []*operand{theNode, theKey}},
	New:            {"new", mending, anywhere, []*operand{theNode}},
	Expand:         {"random", operation, anywhere, []*operand{theRandom, forTime}},
}

// operands are those of the event's line.
func (e *Event) operands() []*operand {
	if e.Verb >= verbs {
		return nil
	}
	return verbTable[e.Verb].operands
}

// takes reports whether the event's line has an operand.
func (e *Event) takes(o *operand) bool { return slices.Contains(e.operands(), o) }

// String is the verb as it is written.
func (v Verb) String() string {
	if v == 0 || v >= verbs {
		return "?"
	}
	return verbTable[v].name
}

// Verbs lists all of them.
func Verbs() []Verb {
	all := make([]Verb, 0, verbs-1)
	for v := Put; v < verbs; v++ {
		all = append(all, v)
	}
	return all
}

// Asks reports whether the verb asks members something.
func (v Verb) Asks() bool {
	return v == Why || v == Wait || v == WaitAll || v == WaitKey || v == Status
}

// Writes reports whether the verb changes records.
func (v Verb) Writes() bool {
	return v == Put || v == PutIf || v == Import || v == Dated || v == Expiring || v == Backdate || v == Touch || v == Del || v == Batch
}
