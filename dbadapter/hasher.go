package dbadapter

import (
	"crypto/sha256"

	"github.com/syncd-io/syncd/internal/keyhash"
)

// The numbers that stand for keys and records; see internal/keyhash.
type (
	// Index is a key's place, a number in [1, P−1], P = 2^48 − 59.
	Index = keyhash.Index
	// Checksum stands for the records under one index; 0 means none.
	Checksum = keyhash.Checksum
	// Pair is an index with the checksum of its bucket.
	Pair = keyhash.Pair
	// Digest is the 256-bit hash of a record, or a sum of such hashes.
	Digest = keyhash.Digest
	// Secret is the 32-byte key of a namespace.
	Secret = keyhash.Secret
)

// Hasher makes the pair (index, checksum) and the digest of records under a
// namespace's secret. NewHasher makes the real one; tests weaken it to force
// two keys onto one index.
type Hasher interface {
	// Index is the place of a key.
	Index(key []byte) Index
	// Digest is the 256-bit hash of a record's key, version, tombstone flag
	// and value; never of its signature.
	Digest(r *Record) Digest
	// Checksum stands for the records of one bucket, given their versions'
	// greatest clock and their digests in the order of their keys. It is
	// never 0 for a bucket that holds a record.
	Checksum(latest Clock, digests []Digest) Checksum
}

// Layout of a checksum: 26 bits of time above 22 bits of hash.
const (
	checksumHashBits = 22
	checksumUnit     = 64 * 1000 // milliseconds
	// maxUnits keeps the checksum below P; it lies in the year 2156.
	maxUnits = 1<<26 - 2
)

// NewHasher is the hasher that all members of a namespace share.
func NewHasher(secret Secret) Hasher { return &hasher{secret} }

type hasher struct{ secret Secret }

func (h *hasher) Index(key []byte) Index { return h.secret.IndexOf(key) }

func (h *hasher) Digest(r *Record) Digest {
	var stack [VersionSize]byte
	version, _ := r.Version.AppendBinary(stack[:0])
	var flags byte
	if r.Deleted {
		flags = 1
	}
	return h.secret.DigestOf(r.Key, version, flags, r.Value)
}

func (h *hasher) Checksum(latest Clock, digests []Digest) Checksum {
	if len(digests) == 0 {
		return 0
	}
	hash := digests[0][0]
	if len(digests) > 1 {
		hash = h.secret.BucketOf(digests)
	}
	return max(1, Checksum(units(latest)<<checksumHashBits|hash&(1<<checksumHashBits-1)))
}

// units is the version's time in units of 64 s since Epoch.
func units(c Clock) uint64 {
	ms := int64(c>>counterBits) - Epoch.UnixMilli()
	return uint64(min(max(ms, 0)/checksumUnit, maxUnits))
}

// Age compares the times in two checksums: −1 if a's records are surely
// older than b's, +1 if surely newer, 0 if they fall in the same 64 seconds
// and only the versions can tell.
func Age(a, b Checksum) int {
	ua, ub := a>>checksumHashBits, b>>checksumHashBits
	switch {
	case ua < ub:
		return -1
	case ua > ub:
		return 1
	}
	return 0
}

// NamespaceIDOf is the name under which members know a namespace: a hash of
// its secret, which tells nothing of the secret itself.
func NamespaceIDOf(secret Secret) NamespaceID {
	sum := sha256.Sum256(append([]byte("syncd namespace id\x00"), secret[:]...))
	return NamespaceID(sum[:16])
}
