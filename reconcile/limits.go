package reconcile

import "github.com/syncd-io/syncd/reconcile/wire"

// Bounds of one sync, and what each comes from.
const (
	// FirstCells is how many cells Hello carries unless the caller has reason
	// to choose otherwise: 128 cells, 2 KiB, decode 40 differences in 99.86 %
	// of syncs.
	FirstCells = 128
	// MinFirstCells and MaxFirstCells bound the caller's choice: below 32 the
	// saving is less than a packet, above 4,096 (64 KiB) an estimate first is
	// cheaper.
	MinFirstCells = 32
	MaxFirstCells = 4096

	// MaxCells ends the search for differences by cells: 2^22 cells are
	// 64 MiB and decode 3.8 million differences. Beyond it everything is sent.
	MaxCells = 1 << 22

	// burst is the most cells asked for at once, in frames of
	// wire.MaxCells; the estimate is refined between bursts.
	burst = 1 << 19

	// maxBucket is the most records that one index may bring in one sync.
	// Three keys on one index are expected once in about 10^8 namespaces of
	// 10^8 records (n³/6p²); 64 is nobody's chance.
	maxBucket = 64

	// maxBucketBytes bounds the records under one index that wait for the others
	// to be what the cells told of: four of the largest, or all that tests with
	// weakened hashes make.
	maxBucketBytes = 4 << 20

	// maxRounds bounds how often cells are asked for. Each burst adds at
	// least a 12th, so that 2^22 cells take 130.
	maxRounds = 512

	// offerAbove is the value size from which a record that may be equal in
	// content is offered by hash before it is sent: below it, the offer and
	// the further round trip cost more than the value.
	offerAbove = 1 << 10

	// ambiguousBytes is how many bytes of records may travel on suspicion:
	// records as new as the other side's to within 64 seconds, which half of
	// the time are older and travel for nothing. It is about what a round
	// trip of 10 ms costs at 50 Mbit/s; the rest is offered by version.
	ambiguousBytes = 1 << 16

	// cacheBytes is how much of the records read for the residual is kept for
	// sending, instead of being read twice.
	cacheBytes = 4 << 20

	// maxSetAside bounds the memory of records that a peer refuses.
	maxSetAside = 1 << 16
)

// wire's batches must fit one frame of refusals.
const _ = uint(wire.MaxRefusals - wire.BatchRecords)
