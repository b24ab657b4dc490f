package model

import "github.com/syncd-io/syncd/dbadapter"

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
