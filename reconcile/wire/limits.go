package wire

import "github.com/syncd-io/syncd/dbadapter"

// Bounds of everything that a peer can make this side hold at once.
const (
	// Version is the protocol's version byte. Another one is answered with
	// Refuse, which carries ours.
	Version = 2

	// MaxFrame holds one record of the greatest size, with room for its
	// fields and for the batch around it.
	MaxFrame = dbadapter.MaxValue + 1<<16

	// BatchBytes and BatchRecords end a batch of records. Each batch is one transaction
	// and one fsync at the receiver, and must stay below what one Apply takes.
	BatchBytes   = 1 << 19
	BatchRecords = 2048

	// MaxCells is the most cells in one frame: 176 KiB.
	MaxCells = 1 << 14

	// MaxIndices is the most indices in one frame; a delta takes up to 6
	// bytes, so that a full list takes 192 KiB.
	MaxIndices = 1 << 15

	// MaxOffers is the most offers in one frame; an offer takes up to 1.3 KiB, so
	// that a full list takes 640 KiB.
	MaxOffers = 512

	// MaxHeads is the most heads asked for at once: their sender writes them without
	// waiting, and a full answer takes 2.6 MiB.
	MaxHeads = 1 << 11

	// MaxRefusals is the most refused records named in one frame: two batches, in
	// 160 KiB. More are refused without being named, and come again with the next
	// sync.
	MaxRefusals = 1 << 12

	// MaxMarks is the most marks in one frame; a mark takes up to 14 bytes, so that
	// a full list takes 448 KiB.
	MaxMarks = 1 << 15

	// MaxStatement is the most bytes of a statement of a list of members. MaxStatements
	// is how many of them tell a peer of its removal: 256 KiB.
	MaxStatement  = 4 << 10
	MaxStatements = 64

	// MaxText bounds a message for humans: a log line.
	MaxText = 512

	// readStep is how much buffer a frame's announced length is trusted for
	// before its bytes have come.
	readStep = 64 << 10
)
