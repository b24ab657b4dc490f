package pgdb

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
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
