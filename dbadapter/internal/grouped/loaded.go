package grouped

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// Verify compares the records that were loaded under each index with the checksum that their
// bucket was written with.
func Verify(h dbadapter.Hasher, loaded []commit.Loaded, sums []dbadapter.Checksum) {
	for i := range loaded {
		l := &loaded[i]
		if l.Err == nil && len(l.Held) > 0 && commit.Checksum(h, l.Held) != sums[i] {
			l.Err = ErrStale(l.Held[0].Record.Key)
		}
		if l.Err != nil {
			l.Held = nil
		}
	}
}

// ErrStale is the error of a record that is not the newest of its key.
func ErrStale(key []byte) error {
	return damage.Corrupt("the record "+damage.Quote(key), "it is not the one that its bucket was written with")
}

// Records are the records that were loaded under each index.
func Records(loaded []commit.Loaded) ([][]dbadapter.Hashed, error) {
	buckets := make([][]dbadapter.Hashed, len(loaded))
	for i, l := range loaded {
		if l.Err != nil {
			return nil, l.Err
		}
		for n := range l.Held {
			buckets[i] = append(buckets[i], l.Held[n].Record)
		}
	}
	return buckets, nil
}
