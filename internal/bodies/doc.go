// Package bodies keeps large values of a sharded namespace near their writer. It has the form of a
// body and of what points to it, and the rules of collection. It does no I/O.
//
// # The idea
//
// By placement writer a record is where its key is hashed to, as by hash. A value of more than a
// kibibyte does not travel there. It stays in a shard of its writer, as a body, and the record has a
// pointer to it:
//
//	key's shard      record    key → pointer{shard 7, salt, size, sent, SHA-256}
//	shard 7          body      00 'b' shard 7 salt key → the value
//	shard 7          hint      00 'h' shard 7 key → the record, as its writer made it
//
// Body and hint are records, too, under keys that name their shard ([Shard]). So they are routed,
// synced, moved, repaired and backed up as all records are, by the rules of package quorum.
//
// The record decides. A body that no record and no kept log names is garbage. A body is written
// before its record, and never changes: its salt is drawn anew for each write, and its hash stands
// in the pointer. A hint is written after its record was acknowledged, if that is in
// another shard. It lets a host of the body answer a read at level one by itself.
//
// # Collection
//
//  1. A body that is over an hour old is collected after two rounds of no, with more time between
//     them than a sync takes: an hour.
//  2. In a round each member that may hold the key's shard, or keeps entries of it, says whether
//     its record or its kept log names the body. A host that is not whole does not answer, and
//     a lapsed member is not waited for. All go by one row of the key's shard, and so in
//     both rounds. A member is asked about what those before it have not named.
//  3. A writer gives up ten minutes after it sent the body.
//  4. A host takes from no writer a record that names a body over half an hour old, unless what it
//     replaces names that body. Syncs, and records that are passed on, are exempt.
//
// A write that is under way names a young body, by 3 and 4, and clocks are off by minutes at most.
// So after an hour no record can begin to name a body. One round can still miss it: a sync that is
// under way may bring the record to a host that has answered. That sync has ended by the second round.
package bodies
