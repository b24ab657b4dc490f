package model

import (
	"bytes"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/keyhash"
)

// Coarse is a hasher with few indices, so that many keys share one: shared
// indices, rare below a hundred million records, become frequent.
func Coarse(h dbadapter.Hasher, indices uint64) dbadapter.Hasher { return &coarse{h, indices} }

type coarse struct {
	dbadapter.Hasher
	indices uint64
}

// Index implements dbadapter.Hasher.
func (c *coarse) Index(key []byte) dbadapter.Index {
	return 1 + dbadapter.Index(uint64(c.Hasher.Index(key))%c.indices)
}

// Ground is a hasher that has one index for all keys with a prefix, as a member that
// knows the secret can find them.
func Ground(h dbadapter.Hasher, prefix string) dbadapter.Hasher { return &ground{h, []byte(prefix)} }

type ground struct {
	dbadapter.Hasher
	prefix []byte
}

// Index implements dbadapter.Hasher.
func (g *ground) Index(key []byte) dbadapter.Index {
	if bytes.HasPrefix(key, g.prefix) {
		key = g.prefix
	}
	return g.Hasher.Index(key)
}

// checksumBits is how many bits of what a checksum says tell no time.
const checksumBits = 22

// Colliding is a hasher whose checksums tell records of one minute apart by few bits,
// so that other contents have equal checksums. That happens by chance in one of four
// million changes, or by the doing of a member.
func Colliding(h dbadapter.Hasher, bits int) dbadapter.Hasher { return &colliding{h, bits} }

type colliding struct {
	dbadapter.Hasher
	bits int
}

// Checksum implements dbadapter.Hasher.
func (c *colliding) Checksum(index dbadapter.Index, latest dbadapter.Timestamp, digests []dbadapter.Digest) dbadapter.Checksum {
	sum := uint64(c.Hasher.Checksum(index, latest, digests))
	if sum == 0 {
		return 0
	}
	const dropped = 1<<checksumBits - 1
	rest := sum >> keyhash.CheckBits
	return dbadapter.Checksum(keyhash.Seal(uint64(index), rest&^dropped|rest&(1<<c.bits-1)))
}
