package dbadapter

import (
	"errors"
	"testing"
)

func TestHash(t *testing.T) {
	h := NewHasher(Secret{1})
	r := Record{Key: []byte("k"), Value: []byte("v"), Version: Version{Clock: 1 << 60}}
	hashed, err := Hash(h, r)
	if err != nil || hashed.Index != h.Index(r.Key) || hashed.Digest != h.Digest(&r) || hashed.Compare(&r) != 0 {
		t.Errorf("%+v, %v", hashed, err)
	}
	clone := hashed.Clone()
	hashed.Value[0] = 'x'
	if string(clone.Value) != "v" || clone.Digest != hashed.Digest {
		t.Errorf("the clone has changed with its origin: %+v", clone)
	}
	if _, err := Hash(h, Record{Key: make([]byte, MaxKey+1)}); !errors.Is(err, ErrLimit) {
		t.Errorf("a record that cannot be stored: %v", err)
	}
}

// A bucket's pair has the greatest clock and all digests, in the order in which
// the records were added.
func TestBucket(t *testing.T) {
	h := NewHasher(Secret{1})
	var empty Bucket
	if empty.Pair(h) != (Pair{}) {
		t.Error("an empty bucket has a pair")
	}
	var digests []Digest
	var sum Digest
	var latest Timestamp
	var b Bucket
	for n := range 6 {
		r := Hashed{Index: 7, Digest: Digest{uint64(n), 5}, Record: Record{Version: Version{Clock: Timestamp(n*5%6) << 40}}}
		b.Add(&r)
		digests, sum, latest = append(digests, r.Digest), sum.Add(r.Digest), max(latest, r.Version.Clock)
		if got, want := b.Pair(h), (Pair{7, h.Checksum(7, latest, digests)}); got != want || b.Records != n+1 || b.Digest != sum {
			t.Errorf("%d records: pair %v, not %v, sum %v", b.Records, got, want, b.Digest)
		}
		if n == 0 && PairOf(h, &r) != b.Pair(h) {
			t.Error("the pair of a record that is alone is another")
		}
	}
}
