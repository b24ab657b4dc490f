package pgdb

import (
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
	"github.com/zeebo/xxh3"
)

// readRecord decodes and verifies a record. It refers to the slices given.
func readRecord(key, head, value []byte, h dbadapter.Hasher) (dbadapter.Hashed, error) {
	decoded, rest, err := layout.ReadHead(head, key, 0)
	if err != nil {
		return dbadapter.Hashed{}, err
	}
	if len(rest) > 0 {
		return dbadapter.Hashed{}, damage.Corrupt("the head of the record "+damage.Quote(key), "something stands behind its end")
	}
	return decoded.Record(value, h)
}

// kindSummary is the kind of a summary; the others are of the package layout.
const kindSummary = 's'

// A bucket's checksum is stored below the 16 lowest bits of its own seal.
const sumBits = 8 * layout.NumberSize

func sealSum(number uint32, index dbadapter.Index, sum dbadapter.Checksum) int64 {
	var b [layout.NumberSize]byte
	seal := xxh3.HashSeed(layout.Append48(b[:0], uint64(sum)), layout.Seed(number, layout.KindIndex, uint64(index)))
	return int64(seal<<sumBits | uint64(sum))
}

func unsealSum(number uint32, index dbadapter.Index, stored int64) (dbadapter.Checksum, error) {
	sum := dbadapter.Checksum(uint64(stored) & (1<<sumBits - 1))
	if sealSum(number, index, sum) != stored {
		return 0, damage.Corrupt(fmt.Sprintf("the checksum of index %d", index), "it is not the one that was written")
	}
	return sum, nil
}
