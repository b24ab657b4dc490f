// Package check judges runs. It is told what applications asked for, what the
// nodes answered and what they held in the end, and says which promises were
// broken. It knows nothing of simulators or sockets, so that simulated and real
// nodes are judged alike.
//
//	h := check.New()
//	op := h.Intend(2, "key7", false, value)  // before the write is sent
//	version, err := node.Put(…)
//	h.Acknowledge(op, version)               // or h.Refuse(op); or neither: unknown
//	…
//	for _, v := range h.Check(finals) { … }
//
// # The rules
//
//	equal      nodes that can reach each other hold the same records, and say the same digest
//	kept       a node's live digest, count and cells are those of its records
//	durable    what was acknowledged is there, or a later write of the key is
//	resurrect  what was deleted stays so, until it is written again
//	early      a tombstone is collected only once all members have held it
//	aside      a record is set aside only where a node was restored, or left behind; once a
//	           node has heard that it lost the right to write, it holds no write of its own
//	           that no verified sync has shown to another member
//	lost       what is set aside alive, and what loses against a record whose writer had
//	           not seen it, is listed where that happened, as far as the log has room
//	collected  in the end no tombstone and no expired record is left, if each member
//	           could say what it holds
//	floor      the time up to which a node has collected never falls
//	backwards  the version of a key at a node never decreases, and what is written there
//	           is later than what the node held when it was asked
//	members    nodes that can reach each other have the same list of members, and each
//	           role in it was given by a node that may have been an admin
//	rights     no record is held of a writer that had not the right to write it then
//	identity   a version names one key and one content, everywhere
//	intended   an application asked for every record
//	idle       once all are equal, a sync moves nothing
//	honest     a sync is called verified only if both sides hold what either held
//	count      a sync counts as applied just the records that were new to its side,
//	           and that its store took, and just what it found wrong; a dry run moves
//	           nothing
//	keys       a dry run that is proved lists just the keys in which the two sides
//	           differ, each as what it is and with both versions
//	healed     sums of ranges that a node keeps wrong are put right by the sync that meets
//	           them, cells by an audit that it calls for; a sync that repairs something
//	           makes all equal
//	full       an index takes 64 records that are not tombstones, and 256 keys; what a node
//	           has no room for it lists, and a sync declines just that, is not verified,
//	           and brings everything else
//	why        what a node tells of a key is so at that moment, and durable: which record
//	           it holds, and by which rules it declines another one; what the asker makes
//	           of it is so, too
//	wait       a wait finds that a member holds what is awaited when that is so there,
//	           durably, and does find it once all are equal and in reach
//	watch      each change of a key is told by each of its node's watches, in the order of the
//	           commits and once in a connection, or another change of the key follows and
//	           is told, marked; the listing and the events make up what the node holds; a
//	           cursor expires only where the log does not go back to it, or is another one
//	leak       what was measured is within its bound
//
// In a namespace of shards, while majorities of the hosts have their data ([History.Fails]):
//
//	answer     a quorum read gives nothing older than what a quorum write was acknowledged with
//	           before it began; and in the end reads at each level are right; a locator says of no
//	           key that it is nowhere which the host that it follows held when it was last asked
//	later      a quorum write gets a later version than that, unless a call of the same node at the
//	           same time has replaced it at once
//	durable    what a quorum write was acknowledged with is there in the end, or something later
//	resurrect  no deletion that was acknowledged so comes back
//	lost       what was acknowledged and does not stand was seen by a later write, or is listed
//	condition  a write on a condition is acknowledged only where that held; it names nothing later
//	           as replaced, and is there under one version
//	rows       no node goes back to an earlier layout
//	handover   a node drops a shard only when a majority of its new hosts has what it held
//	replicas   in the end each move has ended: each shard is held by the hosts that the layout
//	           names, by as many as there are to be, whole ones, and by no other node
//	body       by placement writer a quorum read gives the value that its record names, as long as no
//	           majority of either shard has lost its data; in the end there is no body that neither a record
//	           nor a kept entry names; and users see no reserved key
//	scan       a scan gives each key once, and what some node has held; and in the end all
//
// # What a node may forget
//
// A restamp puts a lesser version in the place of a greater one, with the same
// content; [History.Restamping] announces it, and nothing else lowers a version.
// Where another node took the greater one, that wins still.
//
// A node whose disk was replaced by an older copy ([History.Restored]) may forget the
// records that arrived after the copy was made ([History.Copied]). Without a known copy
// it may forget all. Records that another node has seen must still be there. A node
// that is down in the end holds nothing, and the records that only it had seen may be
// missing. A write that was neither acknowledged nor refused may be there or not, but
// once, and under one version.
//
// # Independence
//
// The checker calls no code that it judges: merge.go has the order of versions
// once more, written from the description in package dbadapter.
package check
