package keyhash

import (
	"encoding/binary"

	"github.com/minio/highwayhash"
)

// Each hash has a tag of its own, so that no two of them ever see one input.
const (
	tagIndex  = 'i'
	tagDigest = 'd'
	tagBucket = 'b'
	tagHome   = 'h'
)

// Tags of Words, for hashes that one sync is about.
const (
	TagTold  = 't'
	TagMark  = 'm'
	TagRange = 'r'
	TagGroup = 'g'
)

// block is HighwayHash's input block. Inputs padded to it hash about twice as fast as
// those of odd lengths; the length prefixes keep padding from being ambiguous.
const block = 32

// Index is the place of a key: a 64-bit hash reduced to [1, P−1]. The
// reduction favours no index by more than 2^-22.
func (k *Key) Index(key []byte) uint64 { return k.sum64(tagIndex, key)%(P-1) + 1 }

// Home is the hash of a key whose first bits say in which shard it is.
func (k *Key) Home(key []byte) uint64 { return k.sum64(tagHome, key) }

func (k *Key) sum64(tag byte, key []byte) uint64 {
	var stack [128]byte
	b := append(stack[:0], tag, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(key)))
	return highwayhash.Sum64(pad(append(b, key...)), k[:])
}

// Digest hashes one record: its key, its value, and its head. The head has at most 255
// bytes: the version with the optional fields that the flags announce. The lengths
// stand before the fields, so that moving a byte from the key to the value gives
// another digest.
func (k *Key) Digest(key, head []byte, flags byte, value []byte) [4]uint64 {
	var stack [512]byte
	b := append(stack[:0], tagDigest, flags, byte(len(head)), 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(key)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(value)))
	b = append(b, head...)
	b = append(b, key...)
	return k.sum256(b, value)
}

// Bucket hashes the digests of the records that share an index.
func Bucket[D ~[4]uint64](k *Key, digests []D) uint64 {
	b := make([]byte, 0, 2*block+len(digests)*32)
	b = append(b, tagBucket, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(digests)))
	for _, d := range digests {
		for _, w := range [4]uint64(d) {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
	}
	return highwayhash.Sum64(pad(b), k[:])
}

// Words hashes some numbers, under one of the tags above.
func (k *Key) Words(tag byte, numbers ...uint64) uint64 {
	var stack [256]byte
	b := append(stack[:0], tag, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(numbers)))
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return highwayhash.Sum64(pad(b), k[:])
}

// sum256 hashes head and tail as one padded input; a long tail is not copied.
func (k *Key) sum256(head, tail []byte) [4]uint64 {
	if len(head)+len(tail)+block <= cap(head) {
		return words(highwayhash.Sum(pad(append(head, tail...)), k[:]))
	}
	h, err := highwayhash.New(k[:])
	if err != nil {
		panic(err) // the key has the right length: it is an array
	}
	h.Write(head)
	h.Write(tail)
	if odd := (len(head) + len(tail)) % block; odd != 0 {
		var zeros [block]byte
		h.Write(zeros[odd:])
	}
	var out [highwayhash.Size]byte
	h.Sum(out[:0])
	return words(out)
}

func pad(b []byte) []byte {
	var zeros [block]byte
	if odd := len(b) % block; odd != 0 {
		b = append(b, zeros[odd:]...)
	}
	return b
}

// words reads a hash as four little-endian words, the least significant first.
func words(b [highwayhash.Size]byte) (w [4]uint64) {
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return w
}
