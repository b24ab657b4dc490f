package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
)

// Value is the value that an event writes under its key i: i is 0 for a put, and
// counts the keys of a batch. Bytes are drawn from the seed and the event itself,
// so that they stay the same when other events go.
func (p *Plan) Value(e *Event, i int) []byte {
	if e.Value != "" {
		return []byte(e.Value)
	}
	h := sha256.New()
	for _, n := range []uint64{p.Seed, uint64(e.At), uint64(e.Node), uint64(i)} {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], n)
		h.Write(b[:])
	}
	h.Write([]byte(e.Key))
	value := make([]byte, e.Size)
	_, _ = rand.NewChaCha8([32]byte(h.Sum(nil))).Read(value) // never fails
	return value
}

// KeyAt is the key i of an event: its own, or the ith of a batch.
func (e *Event) KeyAt(i int) string {
	if e.Verb == Batch || e.Verb == Import {
		return e.Key + strconv.Itoa(i)
	}
	return e.Key
}
