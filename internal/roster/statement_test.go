package roster

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"reflect"
	"runtime"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// raw is a value with this body, signed.
func raw(t *testing.T, author int, b any) []byte {
	t.Helper()
	encoded, ok := b.([]byte)
	if !ok {
		encoded = must(encoding.Marshal(b))
	}
	return append(bytes.Clone(encoded), must(signer(author)(signedBytes(testNamespace, encoded)))...)
}

// Each field that a kind must have, or must not have, and each second encoding.
func TestParseIsStrict(t *testing.T) {
	me, you := idOf(0), idOf(1)
	h := func(b byte) [32]byte { return [32]byte(bytes.Repeat([]byte{b}, 32)) }
	many := make([]Hash, MaxHeads+1)
	for i := range many {
		many[i] = h(byte(i))
	}
	policy := &Policy{MaxSkew: 1}
	good := []Statement{
		{Kind: Found, Author: me, At: 1, Policy: policy},
		{Kind: Grant, Author: me, At: 1, Heads: []Hash{h(1), h(2)}, Subject: you, Role: RoleWrite, Expires: 2, Since: 1},
		{Kind: Grant, Author: me, Heads: many[:MaxHeads], Subject: you, Role: RoleAdmin},
		{Kind: Grant, Author: me, Heads: []Hash{h(1)}, Subject: me, Role: RoleRead},
		{Kind: Remove, Author: me, Heads: []Hash{h(1)}, Subject: me},
		{Kind: Expire, Author: me, Heads: []Hash{h(1)}, Subject: you},
		{Kind: Lapse, Author: me, Heads: []Hash{h(1)}, Subject: you},
		{Kind: Return, Author: me, Heads: []Hash{h(1)}, Subject: me},
		{Kind: Found, Author: me, At: 1, Policy: policy, Placement: cbor.ByteString(make([]byte, MaxPlacement))},
		{Kind: Layout, Author: me, Heads: []Hash{h(1)}, Epoch: 1, Table: h(9)},
	}
	for i, b := range good {
		if _, err := Parse(testNamespace, raw(t, 0, b), ed25519.Verify); err != nil {
			t.Errorf("good %d: %v", i, err)
		}
	}
	head := []Hash{h(1)}
	bad := map[string]any{
		"a founding with heads":      Statement{Kind: Found, Author: me, At: 1, Heads: head, Policy: policy},
		"a founding with a subject":  Statement{Kind: Found, Author: me, At: 1, Subject: you, Policy: policy},
		"a founding without policy":  Statement{Kind: Found, Author: me, At: 1},
		"a negative skew":            Statement{Kind: Found, Author: me, At: 1, Policy: &Policy{MaxSkew: -1}},
		"no kind":                    Statement{Author: me, Heads: head, Subject: you},
		"a kind of the future":       Statement{Kind: Layout + 1, Author: me, Heads: head, Subject: me},
		"no head":                    Statement{Kind: Remove, Author: me, Subject: you},
		"65 heads":                   Statement{Kind: Remove, Author: me, Heads: many, Subject: you},
		"heads that are not sorted":  Statement{Kind: Remove, Author: me, Heads: []Hash{h(2), h(1)}, Subject: you},
		"a head twice":               Statement{Kind: Remove, Author: me, Heads: []Hash{h(1), h(1)}, Subject: you},
		"a short head":               map[int]any{1: Remove, 2: me, 3: 0, 4: [][]byte{make([]byte, 31)}, 5: you},
		"no subject":                 Statement{Kind: Remove, Author: me, Heads: head},
		"a malformed subject":        Statement{Kind: Remove, Author: me, Heads: head, Subject: you[1:]},
		"a malformed author":         Statement{Kind: Remove, Author: me[1:], Heads: head, Subject: you},
		"a grant without a role":     Statement{Kind: Grant, Author: me, Heads: head, Subject: you},
		"a role that there is not":   Statement{Kind: Grant, Author: me, Heads: head, Subject: you, Role: 4},
		"an admin by itself":         Statement{Kind: Grant, Author: me, Heads: head, Subject: me, Role: RoleAdmin},
		"expired at once":            Statement{Kind: Grant, Author: me, At: 5, Heads: head, Subject: you, Role: RoleRead, Expires: 5},
		"a removal with a role":      Statement{Kind: Remove, Author: me, Heads: head, Subject: you, Role: RoleRead},
		"a removal with an expiry":   Statement{Kind: Remove, Author: me, Heads: head, Subject: you, Expires: 9},
		"a lapse with a start":       Statement{Kind: Lapse, Author: me, Heads: head, Subject: you, Since: 9},
		"a grant with a policy":      Statement{Kind: Grant, Author: me, Heads: head, Subject: you, Role: RoleRead, Policy: policy},
		"its own expiry":             Statement{Kind: Expire, Author: me, Heads: head, Subject: me},
		"another's return":           Statement{Kind: Return, Author: me, Heads: head, Subject: you},
		"nothing":                    []byte{},
		"no map":                     []byte{0x80},
		"a field that there is not":  map[int]any{1: Remove, 2: me, 3: 0, 4: head, 5: you, 13: 1},
		"a long placement":           Statement{Kind: Found, Author: me, At: 1, Policy: policy, Placement: cbor.ByteString(make([]byte, MaxPlacement+1))},
		"a founding with an epoch":   Statement{Kind: Found, Author: me, At: 1, Policy: policy, Epoch: 1},
		"a removal with an epoch":    Statement{Kind: Remove, Author: me, Heads: head, Subject: you, Epoch: 1},
		"a removal with a table":     Statement{Kind: Remove, Author: me, Heads: head, Subject: you, Table: h(9)},
		"a removal with a placement": Statement{Kind: Remove, Author: me, Heads: head, Subject: you, Placement: "9"},
		"a layout without an epoch":  Statement{Kind: Layout, Author: me, Heads: head, Table: h(9)},
		"a layout without a table":   Statement{Kind: Layout, Author: me, Heads: head, Epoch: 1},
		"a layout without a head":    Statement{Kind: Layout, Author: me, Epoch: 1, Table: h(9)},
		"a layout with a subject":    Statement{Kind: Layout, Author: me, Heads: head, Subject: you, Epoch: 1, Table: h(9)},
		"a layout with an expiry":    Statement{Kind: Layout, Author: me, Heads: head, Expires: 5, Epoch: 1, Table: h(9)},
		"a layout with a policy":     Statement{Kind: Layout, Author: me, Heads: head, Policy: policy, Epoch: 1, Table: h(9)},
		"a layout with a placement":  Statement{Kind: Layout, Author: me, Heads: head, Placement: "8", Epoch: 1, Table: h(9)},
		"a table's name cut short":   map[int]any{1: Layout, 2: me, 3: 0, 4: head, 11: 1, 12: make([]byte, 31)},
		"a table's name of zeros":    map[int]any{1: Layout, 2: me, 3: 0, 4: head, 11: 1, 12: make([]byte, 32)},
		"a zero that is written":     map[int]any{1: Remove, 2: me, 3: 0, 4: head, 5: you, 7: 0},
		"a name for a key":           map[string]any{"1": Remove},
		"a body with bytes after it": append(must(encoding.Marshal(good[4])), 0),
		"a long form":                bytes.Replace(must(encoding.Marshal(good[4])), []byte{1, byte(Remove)}, []byte{1, 0x18, byte(Remove)}, 1),
		"a length left open":         append(append([]byte{0xbf}, must(encoding.Marshal(good[4]))[1:]...), 0xff),
		"too long":                   append(must(encoding.Marshal(good[4])), make([]byte, MaxValue)...),
	}
	for name, b := range bad {
		if s, err := Parse(testNamespace, raw(t, 0, b), ed25519.Verify); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	// The signature is over the namespace and all of the body, by the author.
	value := raw(t, 0, good[1])
	if _, err := Parse(testNamespace, raw(t, 1, good[1]), ed25519.Verify); !errors.Is(err, ErrMalformed) {
		t.Errorf("signed by another: %v", err)
	}
	elsewhere := testNamespace
	elsewhere[0]++
	if _, err := Parse(elsewhere, value, ed25519.Verify); !errors.Is(err, ErrMalformed) {
		t.Errorf("of another namespace: %v", err)
	}
	for i := range value {
		value[i] ^= 1
		if s, err := Parse(testNamespace, value, ed25519.Verify); err == nil {
			t.Errorf("byte %d changed: %+v", i, s)
		}
		value[i] ^= 1
	}
}

// A body that announces much costs what it is long.
func TestParseAllocatesLittle(t *testing.T) {
	for _, start := range [][]byte{
		{0xa1, 0x04, 0x9a, 0x7f, 0xff, 0xff, 0xff}, // two thousand million heads
		{0xa1, 0x02, 0x5a, 0x7f, 0xff, 0xff, 0xff}, // an author of 2 GiB
		{0xba, 0x7f, 0xff, 0xff, 0xff},             // as many fields
		bytes.Repeat([]byte{0x81}, 3000),           // nested
	} {
		value := append(start, make([]byte, 64)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := parse(value); err == nil {
			t.Errorf("%x was accepted", start[:5])
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
			t.Errorf("%x took %d bytes", start[:5], took)
		}
	}
}

// What parses is encoded to the same bytes again, and says the same.
func FuzzParse(f *testing.F) {
	me := idOf(0)
	for _, b := range []Statement{
		{Kind: Found, Author: me, At: 1, Policy: &Policy{MaxSkew: 1}},
		{Kind: Grant, Author: me, At: 1, Heads: []Hash{{}}, Subject: idOf(1), Role: RoleWrite, Expires: 2, Since: 1},
		{Kind: Return, Author: me, Heads: []Hash{{}}, Subject: me},
		{Kind: Found, Author: me, At: 1, Policy: &Policy{MaxSkew: 1}, Placement: "32 by hash"},
		{Kind: Layout, Author: me, Heads: []Hash{{}}, Epoch: 3, Table: Table{7}},
	} {
		f.Add(append(must(encoding.Marshal(b)), make([]byte, 64)...))
	}
	f.Add(append(must(cbor.Marshal(map[int]int{1: 2})), make([]byte, 64)...))
	f.Fuzz(func(t *testing.T, value []byte) {
		s, err := parse(value)
		if err != nil {
			return
		}
		again, err := s.Sign(testNamespace, func([]byte) ([]byte, error) { return value[len(value)-64:], nil })
		if err != nil || !bytes.Equal(again, value) {
			t.Fatalf("%x became %x (%v)", value, again, err)
		}
		if back := must(parse(again)); !reflect.DeepEqual(back, s) {
			t.Errorf("%+v became %+v", s, back)
		}
	})
}
