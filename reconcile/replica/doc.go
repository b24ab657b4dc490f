// Package replica makes the replicas that a sync reads, from a store.
//
//	           a commit
//	              │ Observe
//	              ▼
//	live sketch, sums of ranges    as of now
//	              │
//	undo log  ◀───┼──┬──┬──┬──     the changes since the oldest snapshot
//	              │  │  │  │
//	          snapshots s3 s2 s1   each as of its own commit
//
// A Live follows a namespace: the store calls its Observe with each commit. Observe updates
// a few dozen cells, and of one range the sum of the digests and the count. Live.Load makes
// the Live from a scan at start-up.
//
//	live := replica.New(keys)
//	ns, err := store.Namespace(ctx, keys.ID, keys.Hasher, live.Observe)
//
// Live.Snapshot opens a replica of the whole namespace as of now, at a cost that
// does not depend on its size. Commits go on meanwhile; what the snapshot reads
// live it takes back behind them by the undo log. Cells beyond the live ones,
// which only large differences need, take a scan.
//
// Live.Prefix makes a replica of the keys with a prefix, always by a scan. It can be limited to
// some ranges, which are a part of a large sync.
//
// # Memory
//
// A cell takes 16 bytes. For a namespace of n records,
//
//	Live      16·L + 164,352        L = 2^14 cells for n < 2^18, else 2^17: 0.4 or 2.2 MiB; and 2.5 KiB
//	                                for each of 64 groups of ranges
//	undo log  64·c                  c ≤ 2^18 changes since the oldest snapshot, 16 MiB; nothing
//	                                while there is no snapshot; 2.3 times as much while it grows
//	Snapshot  840 + 16·(t − f)      t − f cells beyond the live ones, ≤ 3·2^20 (48 MiB), until
//	                                Decoded; nothing for a decode of fewer than about 0.9·L; 2.5 KiB
//	                                for each group of ranges that is written to meanwhile
//	Prefix    160 KiB + 48·m + 16·P           m records with the prefix; P ≤ 2^22 cells (64 MiB), at least
//	                                L of m and at most twice as many as were asked for
//
// A call of Cells takes 48·(to − from) more. While it lengthens the sketch of a Prefix, the
// old one is there too. A scan uses all processors; the sketches that they fill take up to
// 32 MiB until it ends. All but a Live is released by Close. An open snapshot also keeps its
// store from reclaiming what was overwritten since.
//
// # Limits
//
// Every scan ends with its context, and calls a tick that the caller may provide.
//
// When the undo log is full, the oldest snapshot is dropped, and only that one. Its Cells fail
// with reconcile.ErrBusy, and the sync begins anew.
//
// A store must show a commit to Observe and to its snapshots in one step, as dbadapter.Store
// promises. A snapshot of a store that does not is refused, where that can be seen.
package replica
