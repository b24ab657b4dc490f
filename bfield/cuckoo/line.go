package cuckoo

import "math/bits"

const (
	mapHashes = 2
	mapSlots  = 6
)

// line is a bucket of a Map: six entries in one cache line of 64 bytes. An entry
// is a tag of 37 bits and a value of 48. A tag is 2·(r + 1) + c. c says by which
// of the key's two numbers the entry is here, and r is that number div base. The
// bucket knows the number mod base. A free slot has tag 0.
type line struct {
	tags   uint64           // bits 0–15 of the tags in slots 0–3
	tags45 uint32           // and in slots 4 and 5
	value  [mapSlots]uint32 // bits 0–31 of the values
	upper  [mapSlots]uint16 // bits 32–47 of the values
	rest   [2]uint64        // bits 16–36 of the tags: slots 0, 2, 4, and 1, 3, 5
}

const (
	ones     = 0x0001_0001_0001_0001
	tops     = ones << 15
	restBits = 21
	restMask = 1<<restBits - 1
)

func tagOf(r uint64, choice uint8) uint64 { return 2*r + 2 + uint64(choice) }

// matches has a bit set for each slot that may have a tag; see slotOf. The
// processor could only guess which slot that is. So the low parts of all six tags
// are compared at once, without a branch. A lane of x − ones has its top bit set
// where x is 0, and now and then above such a lane. The rest of the tag decides.
func (l *line) matches(tag uint64) uint64 { return matches(tag, l.tags, l.tags45) }

func matches(tag, tags uint64, tags45 uint32) uint64 {
	low := tag & 0xffff * ones
	x, y := tags^low, uint64(tags45)^low&0xffff_ffff
	return (x-ones)&^x&tops>>15 | (y-ones)&^y&(tops&0xffff_ffff)>>14
}

// slotOf is the slot of the lowest bit of matches. These are bits 0, 16, 32 and
// 48, and for slots 4 and 5 bits 1 and 17.
func slotOf(matches uint64) int {
	bit := bits.TrailingZeros64(matches)
	return bit>>4 + bit&1<<2
}

// find returns the slot of a tag, or −1; of tag 0, a free slot.
func (l *line) find(tag uint64) int {
	for m := l.matches(tag); m != 0; m &= m - 1 {
		if i := slotOf(m); l.restAt(i) == tag>>16 {
			return i
		}
	}
	return -1
}

func (l *line) restAt(i int) uint64 { return l.rest[i&1] >> (uint(i>>1*restBits) & 63) & restMask }

func (l *line) tagAt(i int) uint64 {
	low := l.tags >> (16 * (i & 3))
	if i > 3 {
		low = uint64(l.tags45) >> (16 * (i & 3))
	}
	return low&0xffff | l.restAt(i)<<16
}

func (l *line) valueAt(i int) uint64 { return uint64(l.value[i]) | uint64(l.upper[i])<<32 }

func (l *line) set(i int, tag, value uint64) {
	if shift := 16 * (i & 3); i > 3 {
		l.tags45 = l.tags45&^(0xffff<<shift) | uint32(tag&0xffff)<<shift
	} else {
		l.tags = l.tags&^(0xffff<<shift) | tag&0xffff<<shift
	}
	shift := i >> 1 * restBits
	l.rest[i&1] = l.rest[i&1]&^(restMask<<shift) | tag>>16<<shift
	l.value[i], l.upper[i] = uint32(value), uint16(value>>32)
}

func (l *line) clear(i int) { l.set(i, 0, 0) }
