package signature

import (
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/oasisprotocol/curve25519-voi/curve"
	"github.com/oasisprotocol/curve25519-voi/curve/scalar"

	"github.com/syncd-io/syncd/internal/golden"
)

// vector is a signature that is not as RFC 8032 makes it, and the verdict on it.
type vector struct {
	name  string
	check Check
	valid bool
}

// order is that of the base point.
var order, _ = new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)

// number is a scalar, little-endian, of an integer below 2^256.
func number(n *big.Int) []byte {
	b := n.FillBytes(make([]byte, 32))
	slices.Reverse(b)
	return b
}

func integer(b []byte) *big.Int {
	b = slices.Clone(b)
	slices.Reverse(b)
	return new(big.Int).SetBytes(b)
}

func scalarOf(b []byte) *scalar.Scalar {
	s, err := scalar.NewFromBytesModOrder(b)
	if err != nil {
		panic(err)
	}
	return s
}

func encode(p *curve.EdwardsPoint) []byte {
	var y curve.CompressedEdwardsY
	return y.SetEdwardsPoint(p)[:]
}

func decode(encoded []byte) *curve.EdwardsPoint {
	p := point(new(curve.EdwardsPoint), encoded)
	if p == nil {
		panic("no point")
	}
	return p
}

// secret is the scalar of a key.
func secret(key ed25519.PrivateKey) []byte {
	h := sha512.Sum512(key.Seed())
	h[0] &= 248
	h[31] = h[31]&63 | 64
	return h[:32]
}

// by is the signature of a message under any encodings of R and A: s = r + k·a.
func by(message, bigR, key, r, a []byte) Check {
	h := sha512.New()
	h.Write(bigR)
	h.Write(key)
	h.Write(message)
	k := integer(h.Sum(nil))
	s := k.Mul(k, integer(a))
	s.Add(s, integer(r)).Mod(s, order)
	return Check{key, message, append(slices.Clone(bigR), number(s)...)}
}

// smallOrder are all encodings of the points whose order divides 8: eight canonical
// ones, and six that are not (ZIP-215).
func smallOrder() (encodings [][]byte) {
	for _, h := range []string{
		"0100000000000000000000000000000000000000000000000000000000000000", // order 1
		"0100000000000000000000000000000000000000000000000000000000000080", // its x = 0 with a sign
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // its y + p
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // order 2
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"0000000000000000000000000000000000000000000000000000000000000000", // order 4
		"0000000000000000000000000000000000000000000000000000000000000080",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", // order 8
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
	} {
		b, err := hex.DecodeString(h)
		if err != nil {
			panic(err)
		}
		encodings = append(encodings, b)
	}
	return encodings
}

// vectors are signatures at the edges of the rule.
func vectors() (all []vector) {
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
	public := []byte(key.Public().(ed25519.PublicKey))
	a, r := secret(key), number(big.NewInt(0xfeed))
	message := []byte("syncd")
	zero := make([]byte, 32)
	bigR := encode(new(curve.EdwardsPoint).MulBasepoint(curve.ED25519_BASEPOINT_TABLE, scalarOf(r)))
	small := smallOrder()
	eighth := decode(small[10])
	plus := func(encoded []byte) []byte { return encode(new(curve.EdwardsPoint).Add(decode(encoded), eighth)) }
	nowhere := slices.Clone(zero)
	nowhere[0] = 2 // y = 2 is on no point
	add := func(name string, c Check, valid bool) { all = append(all, vector{name, c, valid}) }
	altered := func(c Check, edit func(c *Check)) Check {
		c = Check{slices.Clone(c.Key), slices.Clone(c.Message), slices.Clone(c.Signature)}
		edit(&c)
		return c
	}
	good := by(message, bigR, public, r, a)
	s := integer(good.Signature[32:])

	add("as RFC 8032 makes it", Check{public, message, ed25519.Sign(key, message)}, true)
	add("another r", good, true)
	add("s + the order of the base point", altered(good, func(c *Check) { copy(c.Signature[32:], number(new(big.Int).Add(s, order))) }), false)
	add("s = the order of the base point", altered(good, func(c *Check) { copy(c.Signature[32:], number(order)) }), false)
	add("s with its highest bit set", altered(good, func(c *Check) { c.Signature[63] |= 0x80 }), false)
	add("s + 1", altered(good, func(c *Check) { copy(c.Signature[32:], number(new(big.Int).Add(s, big.NewInt(1)))) }), false)
	add("another message", altered(good, func(c *Check) { c.Message[0] ^= 1 }), false)
	add("R is no point", altered(good, func(c *Check) { copy(c.Signature, nowhere) }), false)
	add("A is no point", by(message, bigR, nowhere, r, a), false)
	add("R + a point of order 8", by(message, plus(bigR), public, r, a), true)
	add("R + a point of order 8 afterwards", altered(good, func(c *Check) { copy(c.Signature, plus(bigR)) }), false)
	add("A + a point of order 8", by(message, bigR, plus(public), r, a), true)
	add("A and R + a point of order 8", by(message, plus(bigR), plus(public), r, a), true)
	for n, encoded := range small {
		add(fmt.Sprintf("R of small order, encoding %d", n), by(message, encoded, public, zero, a), true)
		add(fmt.Sprintf("A of small order, encoding %d", n), by(message, bigR, encoded, r, zero), true)
	}
	for n, encoded := range small {
		for m, other := range small {
			add(fmt.Sprintf("A and R of small order, encodings %d and %d, s = 0", n, m), by(message, other, encoded, zero, zero), true)
		}
	}
	return all
}

// TestVectors pins the rule: two members with two rules would hold different records
// for ever.
func TestVectors(t *testing.T) {
	var b strings.Builder
	fmt.Fprintln(&b, "# Signatures at the edges of the rule (docs/protocol, \"Signatures\"): the key, the signature, the verdict. The message is")
	fmt.Fprintln(&b, "# \"syncd\", but for the one that says otherwise: there its first byte is another. \"RFC\" marks the valid ones that crypto/ed25519 takes, too.")
	var valid, all []Check
	stricter := 0
	for _, v := range vectors() {
		c := v.check
		verdict := "invalid"
		if v.valid {
			verdict = "valid"
			valid = append(valid, c)
		}
		if std := ed25519.Verify(c.Key, c.Message, c.Signature); std && !v.valid {
			t.Errorf("%s: crypto/ed25519 takes it", v.name)
		} else if std {
			verdict += " RFC"
		} else if v.valid {
			stricter++
		}
		fmt.Fprintf(&b, "%s: %x %x %s\n", v.name, []byte(c.Key), c.Signature, verdict)
		if got := Verify(c.Key, c.Message, c.Signature); got != v.valid {
			t.Errorf("%s: alone %v, want %v", v.name, got, v.valid)
		}
		// Among others, which it must neither hold up nor be carried by.
		among := slices.Concat(made(20, 2), []Check{c}, made(20, 3))
		for i, got := range VerifyAll(among) {
			if want := i != 20 || v.valid; got != want {
				t.Errorf("%s: together, at %d: %v, want %v", v.name, i, got, want)
			}
		}
		all = append(all, c)
	}
	for i, got := range VerifyAll(all) {
		if want := vectors()[i].valid; got != want {
			t.Errorf("%s: with all vectors %v, want %v", vectors()[i].name, got, want)
		}
	}
	if !together(termsOf(t, valid)) {
		t.Error("the valid vectors are not valid together")
	}
	if stricter < 100 {
		t.Errorf("crypto/ed25519 refuses only %d of the valid vectors: they say little", stricter)
	}
	golden.Compare(t, "testdata/vectors.txt", b.String())
}

// termsOf takes checks apart.
func termsOf(t *testing.T, checks []Check) (terms []*term) {
	b := batch{checks: checks, keys: map[string]*curve.EdwardsPoint{}}
	for i := range checks {
		at := &term{place: i}
		if !b.read(at) {
			t.Fatalf("check %d is malformed", i)
		}
		terms = append(terms, at)
	}
	return terms
}
