package kvstore

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// An envelope is the stored form of a record: its head, then its value.
//
// An envelope that is too long to stand among the keys is cut in two, so that
// nothing ever goes to Badger's value log, which is written apart from them.
const flagLong = layout.FlagOwn // the rest is in the tail

// cut is where a long envelope is cut: both halves fit.
const cut = inline / 2

// isLong reports whether a record's envelope is cut in two.
func isLong(r *dbadapter.Record) bool { return layout.HeadSize(r)+len(r.Value) >= inline }

func appendEnvelope(b []byte, r *dbadapter.Hashed) []byte {
	var own byte
	if isLong(&r.Record) {
		own = flagLong
	}
	return append(layout.AppendHead(b, r, own), r.Value...)
}

// readEnvelope decodes and verifies a record. Key, signature and value refer to
// the slices given.
func readEnvelope(b, key []byte, h dbadapter.Hasher) (dbadapter.Hashed, error) {
	head, value, err := layout.ReadHead(b, key, flagLong)
	if err != nil {
		return dbadapter.Hashed{}, err
	}
	return head.Record(value, h)
}
