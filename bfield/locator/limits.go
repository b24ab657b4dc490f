package locator

// Bounds, each with its reason.
const (
	// MaxShards is the most shards: a Shard has 16 bits.
	MaxShards = 1 << 16

	// MaxFalsePositiveBits is the widest fingerprint of a ribbon.Map. Beyond,
	// keys of 64 bits would be no smaller in an exact map.
	MaxFalsePositiveBits = 32

	// MaxSeveral is the most keys of one feed that may be in several shards. Each
	// takes some 100 bytes. Honest feeds have few: keys that two nodes wrote
	// first at the same time, until one of the writes has won.
	MaxSeveral = 1 << 16

	// defaultFalsePositiveBits: one request too many in 4,096 look-ups of keys
	// that are nowhere.
	defaultFalsePositiveBits = 12

	// fieldPart and leastField: the field of new keys is planned for this part
	// of the base's keys, and for this many. More go into the exact map: beyond
	// its plan a field's false positives grow fast.
	fieldPart  = 16
	leastField = 1 << 12

	// reworked is how many entries are looked up in a new base at a time.
	reworked = 256
)
