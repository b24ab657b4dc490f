package model

import (
	"bytes"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/keyhash"
	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// weak is a hasher that makes frequent what is rare. Each field that is zero changes nothing.
type weak struct {
	dbadapter.Hasher
	// indices is how few indices there are: many keys share one, as below a hundred million
	// records few do.
	indices uint64
	// ground is a prefix whose keys share one index, as a member that knows the secret can find
	// them.
	ground string
	// bits is by how few bits checksums tell records of one minute apart, so that other contents
	// have equal checksums. That happens by chance in one of four million changes, or by the
	// doing of a member.
	bits int
}

// Index implements dbadapter.Hasher.
func (w *weak) Index(key []byte) dbadapter.Index {
	if w.ground != "" && bytes.HasPrefix(key, []byte(w.ground)) {
		key = []byte(w.ground)
	}
	index := w.Hasher.Index(key)
	if w.indices > 0 {
		index = 1 + dbadapter.Index(uint64(index)%w.indices)
	}
	return index
}

// Checksum implements dbadapter.Hasher.
func (w *weak) Checksum(index dbadapter.Index, latest dbadapter.Timestamp, digests []dbadapter.Digest) dbadapter.Checksum {
	sum := uint64(w.Hasher.Checksum(index, latest, digests))
	if w.bits == 0 || sum == 0 {
		return dbadapter.Checksum(sum)
	}
	const dropped = 1<<plan.ChecksumBits - 1
	rest := sum >> keyhash.CheckBits
	return dbadapter.Checksum(keyhash.Seal(uint64(index), rest&^dropped|rest&(1<<w.bits-1)))
}
