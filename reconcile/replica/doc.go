// Package replica makes the replicas that a sync reads: a Snapshot of a whole
// namespace, at a cost that does not depend on its size, from the Live sketch
// that follows each commit; and a replica of the keys with a Prefix, by a scan.
package replica
