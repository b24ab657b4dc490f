// Package placement says which shard of a namespace a key belongs to, and which
// nodes hold a shard. It is arithmetic: no clock, no store, no network.
//
//	rule := &placement.Rule{Kind: placement.Hash, Shards: 32, Replicas: 2}
//	shard := rule.Home(key, hash)                // 0 … 31
//	layout, err := placement.Plan(rule, hosts)
//	nodes := layout.Hosts(shard)                 // two of the hosts
//
// # Shards
//
// A namespace that no node could hold, or that no node needs to hold, is cut into
// shards. There is a power of two of them, fixed when the namespace is made. Each shard
// is a set of records that some nodes, its hosts, keep equal. A [Rule] says which shard
// a key belongs to:
//
//	hash     the first bits of a keyed hash of the key say it
//	prefix   a table says it by the longest prefix of the key that is in there; a key
//	         without such a prefix goes by its hash
//	writer   as hash; a large value stays in a shard of its writer (package bodies)
//
// # The layout
//
// A [Layout] is a table of which hosts each shard has. Admins' nodes make it, by
// rendezvous hashing (Thaler and Ravishankar, "Using name-based mappings to increase
// hit rates", 1998). Each host draws a number for each shard, from a hash of both, and
// the shard goes to the greatest ones. So a host that comes takes its share from all
// others, a host that goes leaves its share to all others, and nothing else moves:
//
//	shard      0     1     2     3          with a fourth host
//	host a    .91   .12  [.67]  .30         .91   .12  [.67]  .30
//	host b    .25  [.77]  .54   .11         .25  [.77]  .54   .11
//	host c   [.95]  .08   .33  [.58]       [.95]  .08   .33   .58
//	host d                                  .42   .61   .09  [.83]   shard 3 moves
//
// The table travels, so that a reader of a layout computes nothing. It carries a [Basis]
// of what it was made of: while that is the hosts', no other layout is stated. Which
// layout counts, of those that are stated, package roster says.
//
// # When hosts come and go
//
//	a host comes, or its membership ends      Turn: one admin's node states the next layout
//	                  │
//	new hosts fill the shard by syncs,        each request needs majorities of both sets:
//	and sign that they are ready              package quorum has the rules
//	                  │
//	each new host has signed                  Next: the new hosts are the old ones
//	                  │
//	who was a host and is none any more       drops the shard once a majority of the hosts has it
//
// A layout has a row for each shard: its old hosts and its new ones, which are the same at
// rest. A shard whose hosts stay keeps its row in the next layout
// (docs/decisions/0070-rows-of-tables.md).
package placement
