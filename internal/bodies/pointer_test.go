package bodies

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

func somePointer(r *rand.Rand) *Pointer {
	p := &Pointer{Shard: placement.Shard(r.IntN(1 << 16)), Size: r.Uint32(), Sent: dbadapter.Timestamp(r.Uint64())}
	for i := range p.Sum {
		p.Salt[i%len(p.Salt)], p.Sum[i] = byte(r.Uint32()), byte(r.Uint32())
	}
	return p
}

// What is written is read again, and nothing else is read.
func TestValues(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		p := somePointer(r)
		written := p.AppendBinary(nil)
		if _, got, err := Read(written); err != nil || *got != *p {
			t.Fatalf("%+v is read as %+v, %v", p, got, err)
		}
		value := written[:r.IntN(len(written)+1)] // a value may look like a pointer
		if got, p, err := Read(Inline(value)); err != nil || p != nil || !bytes.Equal(got, value) {
			t.Fatalf("%x is read as %x, %v, %v", value, got, p, err)
		}
		bad := [][]byte{nil, append(written, 0), append([]byte{byte(2 + r.IntN(254))}, written[1:]...)}
		for n := 1; n < len(written); n++ {
			bad = append(bad, written[:n])
		}
		for _, b := range bad {
			if value, p, err := Read(b); !errors.Is(err, ErrValue) {
				t.Fatalf("%x is read as %x, %v, %v", b, value, p, err)
			}
		}
	}
}

// Only the value itself proves to be what a pointer names.
func TestProves(t *testing.T) {
	value := []byte("a value")
	p := &Pointer{Size: uint32(len(value)), Sum: sha256.Sum256(value)}
	if !p.Proves(value) {
		t.Error("the value does not prove itself")
	}
	other := *p
	other.Size++
	for _, bad := range []bool{p.Proves(nil), p.Proves([]byte("a valuf")), p.Proves(append(value, 0)), other.Proves(value)} {
		if bad {
			t.Error("something else proves to be the value")
		}
	}
}

// Keys of bodies and hints name their shard; users' keys are none.
func TestKeys(t *testing.T) {
	p := &Pointer{Shard: 0x1234, Salt: [16]byte{1, 2, 3}}
	key := []byte("some key")
	bodyKey, hintKey := p.Key(key), HintKey(p.Shard, key)
	if len(bodyKey) != len(key)+KeyRoom {
		t.Errorf("the key of a body is %d bytes longer than its record's, not %d", len(bodyKey)-len(key), KeyRoom)
	}
	for _, k := range [][]byte{bodyKey, hintKey} {
		if shard, names := Shard(k); !Reserved(k) || !names || shard != p.Shard {
			t.Errorf("%x: shard %d, %v", k, shard, names)
		}
	}
	for _, k := range [][]byte{{0}, {0, 'b', 1, 2}, {0, 'h', 1, 2}, {0, 'x', 1, 2, 3}, bodyKey[:KeyRoom]} { // reserved, and of no shard
		if _, names := Shard(k); !Reserved(k) || names {
			t.Errorf("%x names a shard, or is a user's", k)
		}
	}
	for _, k := range [][]byte{nil, {1}, key, bodyKey[1:]} {
		if _, names := Shard(k); Reserved(k) || names {
			t.Errorf("%x is reserved", k)
		}
	}
}

// What is read as a pointer is written alike.
func FuzzRead(f *testing.F) {
	f.Add(Inline(nil))
	f.Add(somePointer(rand.New(rand.NewPCG(1, 1))).AppendBinary(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		value, p, err := Read(b)
		switch {
		case err != nil:
		case p == nil:
			if !bytes.Equal(Inline(value), b) {
				t.Fatalf("%x is the value %x", b, value)
			}
		case !bytes.Equal(p.AppendBinary(nil), b):
			t.Fatalf("%x is the pointer %+v", b, p)
		}
	})
}
