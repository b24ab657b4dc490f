package cuckoo

import "testing"

// Where an entry before the key's in its line has a tag that begins alike, or one that the
// comparison of all six takes for alike, Get looks on: in either line, in maps that are large
// and small, whose base is a power of two and not.
func TestGetLooksOn(t *testing.T) {
	for _, c := range []struct{ base, buckets uint64 }{
		{mapBase, mapBase}, {mapBase, 3 * mapBase}, {leastBase, leastBase}, {2*nearBuckets + 3, 2*nearBuckets + 3}, {leastBase, 5 * leastBase},
	} {
		x := &exact{spread: spreadOf(c.base, c.buckets), mixer: mixer{5}}
		for b := uint64(0); b < c.buckets; b += chunkBuckets {
			x.chunks = append(x.chunks, new(chunk))
		}
		for key := range uint64(100) {
			for choice, p := range x.places(key) {
				l := x.line(p.bucket)
				old := *l
				for i := range mapSlots - 1 {
					l.set(i, p.tag^uint64(i+1)<<17, 1) // 16 bits alike
				}
				if v, ok := x.get(key); ok {
					t.Fatalf("%+v: key %d, which is not there, has %d", c, key, v)
				}
				l.set(mapSlots-1, p.tag, 2)
				if v, ok := x.get(key); v != 2 || !ok {
					t.Fatalf("%+v: key %d by number %d behind others alike: %d, %v", c, key, choice, v, ok)
				}
				*l = old
			}
		}
	}
}
