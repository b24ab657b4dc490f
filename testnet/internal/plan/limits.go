package plan

import "time"

// Bounds of a plan. They keep a text from asking for more memory or time than a
// machine has; a run of `make soak` uses far less.
const (
	// MaxNodes is the most nodes that the simulator runs in one process.
	MaxNodes = 1000
	// MaxEvents bounds the events, those of random lines counted.
	MaxEvents = 100_000
	// MaxTime bounds every duration: a year of virtual time still fits the
	// milliseconds of a version many times over.
	MaxTime = 365 * 24 * time.Hour
	// ChecksumBits is how many bits of a checksum tell no time.
	ChecksumBits = 22
	// MaxKeyBytes is shorter than a store allows, so that a batch can add its
	// numbers.
	MaxKeyBytes = 200
	// MaxSize is the longest value that a record carries.
	MaxSize = 1 << 20
	// MaxBatch is the most writes of one transaction, MaxBatchBytes their size
	// together.
	MaxBatch      = 4096
	MaxBatchBytes = 1 << 20
	// MaxBytes is the size of all values together.
	MaxBytes = 1 << 30
	// MaxText is the longest text that Parse reads, MaxLine its longest line,
	// in bytes.
	MaxText = 32 << 20
	MaxLine = 2 << 20
)

// Defaults of settings that a text leaves out.
const (
	DefaultNodes  = 3
	DefaultSkew   = time.Minute
	DefaultSettle = 5 * time.Minute
	// A random line writes DefaultKeys keys, and values of DefaultSize bytes at
	// the most.
	DefaultKeys = 50
	DefaultSize = 200
)
