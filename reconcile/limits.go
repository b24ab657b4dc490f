package reconcile

import (
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Bounds of one sync, and what each comes from.
const (
	// FirstCells is how many cells Hello carries unless the caller has reason to choose
	// otherwise. 128 cells, 1.4 KiB, decode 40 differences in 99.8 % of syncs. An
	// estimator goes with as many cells or more; with fewer, little is expected to
	// differ, and it follows if further cells are asked for.
	FirstCells = 128
	// QuietCells is the least that a caller can choose but for NoCells, for a peer with
	// which little differs most of the time: 286 bytes. They decode one
	// difference always, three in 99.9 %, five in 99.7 % and ten in 95.9 % of syncs
	// (TestQuietOpenings).
	QuietCells = 26
	// NoCells lets a Hello carry no cells. It says what this side holds by number and digest;
	// the responder asks for FirstCells if it holds something else.
	NoCells = -1
	// MaxFirstCells is the most: above 44 KiB an estimate first is cheaper.
	MaxFirstCells = 4096

	// PartsFrom is how many differences are too many for one stream of cells: the sync
	// goes on in parts. A live sketch of 2^17 cells serves that many without a scan.
	// The estimate has an error of 11.6 %: of 10^5 differences nine in ten syncs go
	// in one stream. Where there are more than it says, those beyond 118,000 have
	// cost their cells in vain.
	PartsFrom = 7 << 14
	// PartSize is about how many differences a part holds: 8 MiB of cells and notes, a
	// tenth of a second of peeling. A broken sync loses at most the parts on the way.
	PartSize = 1 << 15

	// MaxCells ends the search for differences by cells: 2^17 cells are 1.4 MiB and
	// decode 118,000 differences. Beyond it the sync goes on in parts, or everything is
	// sent.
	MaxCells = 1 << 17

	// burst is the most cells asked for at once, in frames of wire.MaxCells. Half of it
	// would cost 10^5 differences a round trip.
	burst = MaxCells

	// maxRounds bounds how often cells are asked for. Each burst adds at
	// least a 16th, so that 2^17 cells take 110.
	maxRounds = 512

	// maxBucket is the most records that one index may bring in one sync: no store
	// holds more.
	maxBucket = dbadapter.MaxBucketKeys

	// maxBucketBytes bounds the records under one index that wait for the
	// others of their bucket: four of the largest. Those of a larger bucket are
	// applied before the last has come.
	maxBucketBytes = 4 << 20

	// offerAbove is the value size from which a record that may be equal in content is
	// offered by hash before it is sent. Below it, the offer and the further round trip
	// cost more than the value.
	offerAbove = 1 << 10

	// ambiguousBytes is how many bytes of records may travel on suspicion. These are as
	// new as the other side's to within 64 seconds; half of the time they are older and
	// travel for nothing. It is about what a round trip of 10 ms costs at 50 Mbit/s;
	// the rest is offered by version.
	ambiguousBytes = 1 << 16

	// cacheBytes is how much of the records read for the residual is kept for sending,
	// so that it is not read twice.
	cacheBytes = 4 << 20

	// maxDeclined bounds the memory of records that a peer has declined:
	// 2^16 take 3 MiB.
	maxDeclined = 1 << 16

	// leastAhead and mostAhead are how many buckets are read together. cacheBytes hold
	// four of the largest values. 32 requests keep a disk as busy as gains much.
	// aheadBytes, a part of cacheBytes, is how much they are to be.
	leastAhead = 4
	mostAhead  = 32
	aheadBytes = 1 << 20

	// besideBytes is how much the records of admissions may have to be compared
	// with: a store reads it all. It is four of the largest values.
	besideBytes = 4 << 20

	// longPlan is from how many records on the plan leaves before the residual is
	// computed: half a millisecond of random reads.
	longPlan = 256

	// lookups is how many checksums are looked up between two ticks: some
	// milliseconds of random reads.
	lookups = 1024
)

// The exact listing of ranges.
const (
	// listedRecords is about how many records of both sides are listed in one sync:
	// a mark takes about 14 bytes, and each record is read. Of two sets of 10^7 they
	// are those of 53 ranges.
	listedRecords = 1 << 18
	// maxMarks is the most that one side lists. Ranges are equally full, but a member
	// that knows the secret can find keys that fall into one of them. A range that is
	// too full for that is left out.
	maxMarks = 1 << 19
)

// Memory that a session reserves from its Budget.
const (
	// asideBytes is how much may be checked and committed while another frame comes. It
	// is some frames of small records: neither the processors nor the disk wait if one of
	// these steps takes longer now and then.
	asideBytes = 3 * wire.MaxFrame
	// mostAside is how many admissions may run aside, whatever they hold. Each has a
	// goroutine, and a peer that sends its records one by one would multiply them.
	mostAside = 16

	// baseBytes is what a session of any size takes. It has the cache of records read, a
	// frame that comes while others are checked and committed, a batch that goes, and what is
	// compared.
	baseBytes = cacheBytes + wire.MaxFrame + asideBytes + 2*wire.BatchBytes + besideBytes

	// cellBytes is what one cell takes at a side. It is a slot of the decoder, and what
	// the decoder and the difference plan note of the difference that the cell may
	// yield. About 54 bytes are in use after a decode (TestMemoryOfACell); slices and
	// maps double while they grow, and Go's collector lets the heap double.
	cellBytes = 224

	// hashesBytes are the hashes of all ranges, ours and theirs, and the sums that
	// they are made of.
	hashesBytes = 256 << 10

	// markBytes is what a mark takes with what the plan may note of it, and markStep
	// how many are reserved at once.
	markBytes = 64
	markStep  = 4096

	// offerBytes is what an offer takes besides its key.
	offerBytes = 192
)

// Silence. A peer cuts a connection that is silent for 30 s (a setting of package
// peer). So a side that computes says so more often.
const (
	// workingEvery is the time between two Working messages: six of them are
	// lost before the peer's patience ends.
	workingEvery = 5 * time.Second
	// workingFor is how long a side may compute between two other messages. A
	// scan of 10^8 records takes 100 s.
	workingFor = 10 * time.Minute
	// waitFor is how long a side waits for its peer, in all, while less than headwayRecords
	// records and less than headwayBytes of records move. The peer may compute for
	// workingFor; its clock and the network may add to that. A peer at the least rate of
	// package peer (16 KiB/s) moves 9 MiB in that time.
	waitFor = workingFor + 30*time.Second
	// waitOnce is longer than a frame of the greatest size takes at that rate: 94 s.
	waitOnce       = 2 * time.Minute
	headwayRecords = 256
	headwayBytes   = 1 << 20
)

// hashedAtOnce is how many records a side hashes between two ticks: some microseconds
// where they are small, and some milliseconds where they are the largest.
const hashedAtOnce = 16

// giveWayEvery is how long a side computes before it lets others run. A local write
// waits little for that, compared with its own commit. Giving way takes 200 ns, a
// thousandth of it.
const giveWayEvery = 200 * time.Microsecond

// mostCells is how many cells may travel in a sync of two sets of so many records in
// all. No more can differ, and a difference takes 1.1 to 1.5 cells; up to MaxFirstCells
// cells come unasked. A search that needs more is for cells that are no difference of
// two sets, or for two pairs that few cells part. Then everything is sent, which proves
// more.
func mostCells(here, there uint64) int {
	records := min(here, MaxCells) + min(there, MaxCells)
	return int(min(records+records/2+MaxFirstCells, MaxCells))
}

// Each batch fits one frame of refusals.
const _ = uint(wire.MaxRefusals - wire.BatchRecords)
