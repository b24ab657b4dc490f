// Package directory says in which shard each key of a namespace is whose placement is
// *writer*: a record lives in a shard of the node that wrote its key first, and no
// arithmetic tells which. It is pure: messages in, messages out; it reads no clock, opens
// no file or socket, and starts nothing.
//
// # The directory
//
// The namespace has a second set of records for each shard, a set of the directory. The
// first bits of a key's hash say in which of them its entry is (placement.Rule.Home). The
// entry is a record of the same key, version, author and expiry as the record itself,
// whose value names the shard ([Entry]). So the directory is synced, pushed, collected and
// handed over like any set, and two nodes that write one key first at the same time meet in
// it: the greater version wins there as it would anywhere. docs/decisions/0052 says why it
// is made so.
//
//	key ──hash──► set of the directory 7 ──entry──► shard 29 ──layout──► hosts
package directory
