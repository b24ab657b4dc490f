package dbadapter

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/keyhash"
)

// Index is a key's place: a keyed hash of the key, a number from 1 to P − 1 for
// the prime P = 2^42 − 11. Keys that share an index share a bucket.
type Index uint64

// Checksum stands for the records of one bucket, their versions and content. It is a
// number from 1 to P − 1; 0 stands for no record at all. From above, its first 12 bits
// are of the newest version's time, in units of 64 seconds modulo 2^12 (73 hours). Then
// come 22 bits of a hash of the versions and content. The last 8 bits are a hash of the
// index and the other bits, so that a decoder can tell it from the sum of several.
type Checksum uint64

// Pair is an index with the checksum of its bucket.
type Pair struct {
	Index    Index
	Checksum Checksum
}

// Secret is the 32-byte key of a namespace. All hashes of its records are keyed
// with it.
type Secret [32]byte

// Hasher makes the pair (index, checksum) and the digest of records under a
// namespace's secret. NewHasher makes the real one; tests weaken it to force
// two keys onto one index.
type Hasher interface {
	// Index is the place of a key.
	Index(key []byte) Index
	// Digest is the 256-bit hash of a record's key, version, tombstone flag,
	// expiry, value and what it replaces; never of its signature.
	Digest(r *Record) Digest
	// Checksum stands for the records of the bucket of an index, given their
	// versions' greatest clock and their digests in the order of their keys. It is
	// never 0 for a bucket that holds a record.
	Checksum(index Index, latest Timestamp, digests []Digest) Checksum
}

// Layout of a checksum: 12 bits of time above 22 bits of hash above its check.
const (
	checksumTimeBits = keyhash.RestBits - checksumHashBits
	checksumHashBits = 22
	checksumUnit     = 64 * 1000 // milliseconds
)

// NewHasher is the hasher that all members of a namespace share.
func NewHasher(secret Secret) Hasher { return &hasher{keyhash.Key(secret)} }

type hasher struct{ key keyhash.Key }

func (h *hasher) Index(key []byte) Index { return Index(h.key.Index(key)) }

func (h *hasher) Digest(r *Record) Digest {
	var stack [VersionSize + MaxOptional]byte
	head, _ := r.Version.AppendBinary(stack[:0])
	flags := r.OptionalFlags()
	if r.Deleted {
		flags |= 1
	}
	return h.key.Digest(r.Key, r.AppendOptional(head), flags, r.Value)
}

func (h *hasher) Checksum(index Index, latest Timestamp, digests []Digest) Checksum {
	if len(digests) == 0 {
		return 0
	}
	hash := digests[0][0]
	if len(digests) > 1 {
		hash = keyhash.Bucket(&h.key, digests)
	}
	return Checksum(keyhash.Seal(uint64(index), units(latest)<<checksumHashBits|hash&(1<<checksumHashBits-1)))
}

// units is the version's time in units of 64 s since Epoch, modulo 2^12.
func units(t Timestamp) uint64 {
	ms := hlc.Timestamp(t).UnixMilli() - Epoch.UnixMilli()
	return uint64(max(ms, 0)/checksumUnit) % (1 << checksumTimeBits)
}

// Age compares the times in two checksums, if less than 36 hours lie between them: −1
// if the records of c are older than those of d, +1 if they are newer. For others it is
// as good as random. 0: they fall in the same 64 seconds, or lie just between. It says
// what is likely to be sent in vain; what is newer only the versions tell.
func (c Checksum) Age(d Checksum) int {
	const half = 1 << (checksumTimeBits - 1)
	switch ahead := uint64(c>>timeShift-d>>timeShift) % (2 * half); {
	case ahead == 0 || ahead == half:
		return 0
	case ahead < half:
		return 1
	}
	return -1
}

// timeShift is where the time of a checksum begins.
const timeShift = keyhash.CheckBits + checksumHashBits

// NamespaceIDOf is the name under which members know a namespace. It is a hash of its
// secret and of its creator, and tells nothing of the secret itself. So another node's
// list of members cannot replace the creator's. root is the creator's peer id in
// binary, and behind it the placement of a namespace that is cut into shards.
func NamespaceIDOf(secret Secret, root []byte) NamespaceID {
	return namespaceHash("syncd namespace id\x00", secret, root)
}

// ControlOf is the secret and the id of the namespace's control namespace, which
// holds its list of members.
func ControlOf(secret Secret, root []byte) (Secret, NamespaceID) {
	control := sha256.Sum256(append([]byte("syncd control secret\x00"), secret[:]...))
	return control, namespaceHash("syncd control id\x00", secret, root)
}

// ShardOf is the secret and the id of a shard of a namespace that is cut into several. Each
// shard is a set of records of its own.
func ShardOf(secret Secret, root []byte, shard uint32) (Secret, NamespaceID) {
	number := binary.BigEndian.AppendUint32(nil, shard)
	own := sha256.Sum256(slices.Concat([]byte("syncd shard secret\x00"), secret[:], number))
	return own, namespaceHash("syncd shard id\x00", secret, slices.Concat(root, number))
}

// HomeHash is the hash of a key whose first bits say in which shard of a namespace it is.
// The secret is that of the namespace.
func HomeHash(secret Secret, key []byte) uint64 {
	k := keyhash.Key(secret)
	return k.Home(key)
}

func namespaceHash(domain string, secret Secret, root []byte) NamespaceID {
	sum := sha256.Sum256(slices.Concat([]byte(domain), secret[:], root))
	return NamespaceID(sum[:16])
}
