package signature

import (
	stdlib "crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"encoding/binary"

	"github.com/oasisprotocol/curve25519-voi/curve"
	"github.com/oasisprotocol/curve25519-voi/curve/scalar"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
)

// Check is a signature to be verified.
type Check struct {
	Key                stdlib.PublicKey
	Message, Signature []byte
}

var rule = &ed25519.Options{Verify: ed25519.VerifyOptionsZIP_215}

// Verify reports whether the key made the signature of the message.
func Verify(key stdlib.PublicKey, message, signature []byte) bool {
	return len(key) == ed25519.PublicKeySize && len(signature) == ed25519.SignatureSize &&
		keys.VerifyWithOptions(ed25519.PublicKey(key), message, signature, rule)
}

// fewest is how many signatures are verified together at least: of fewer, each alone
// costs no more (BenchmarkVerify).
const fewest = 8

// VerifyAll reports of each check what Verify does. It takes about a quarter of the
// time if all are valid, and at most about twice the time if not. A batch that fails is
// halved until the invalid ones stand alone.
func VerifyAll(checks []Check) []bool {
	valid := make([]bool, len(checks))
	if len(checks) < fewest {
		for i := range checks {
			valid[i] = Verify(checks[i].Key, checks[i].Message, checks[i].Signature)
		}
		return valid
	}
	b := batch{checks: checks, valid: valid, keys: map[string]*curve.EdwardsPoint{}}
	whole := make([]*term, 0, len(checks))
	terms := make([]term, len(checks))
	for i := range checks {
		terms[i].place = i
		if b.read(&terms[i]) {
			whole = append(whole, &terms[i])
		}
	}
	b.halve(whole)
	return valid
}

// batch is a run of VerifyAll.
type batch struct {
	checks []Check
	valid  []bool
	keys   map[string]*curve.EdwardsPoint // nil: the key is no point
}

// term is a well-formed signature. r and s are its halves, key its key and k the hash
// of r, key and message, all 512 bits of it.
type term struct {
	place int // in checks
	r     curve.EdwardsPoint
	key   *curve.EdwardsPoint
	s, k  digits
}

// read takes a check apart, and reports whether it is well-formed.
func (b *batch) read(t *term) bool {
	c := &b.checks[t.place]
	if len(c.Key) != ed25519.PublicKeySize || len(c.Signature) != ed25519.SignatureSize {
		return false
	}
	key, known := b.keys[string(c.Key)]
	if !known {
		key = point(new(curve.EdwardsPoint), c.Key)
		b.keys[string(c.Key)] = key
	}
	t.key = key
	if key == nil || point(&t.r, c.Signature[:32]) == nil || !scalar.ScMinimalVartime(c.Signature[32:]) {
		return false
	}
	t.s.read(c.Signature[32:])
	h := sha512.New()
	h.Write(c.Signature[:32])
	h.Write(c.Key)
	h.Write(c.Message)
	var hash [sha512.Size]byte
	t.k.read(h.Sum(hash[:0]))
	return true
}

// point decodes a point, canonical or not, or is nil.
func point(p *curve.EdwardsPoint, encoded []byte) *curve.EdwardsPoint {
	var y curve.CompressedEdwardsY
	if _, err := y.SetBytes(encoded); err != nil {
		return nil
	}
	if _, err := p.SetCompressedY(&y); err != nil {
		return nil
	}
	return p
}

// halve marks the valid ones of these. One invalid signature among n costs about three
// times what n valid ones do. If all are invalid, each costs about twice what it does
// alone.
func (b *batch) halve(terms []*term) {
	switch n := len(terms); {
	case n < fewest:
		for _, t := range terms {
			c := &b.checks[t.place]
			b.valid[t.place] = Verify(c.Key, c.Message, c.Signature)
		}
	case together(terms):
		for _, t := range terms {
			b.valid[t.place] = true
		}
	default:
		b.halve(terms[:n/2])
		b.halve(terms[n/2:])
	}
}

// together reports whether all signatures are valid, by the sum of their equations.
// Each equation is multiplied by a random number z of 128 bits (Bernstein, Duif, Lange,
// Schwabe and Yang, "High-speed high-security signatures", 2012, section 5):
//
//	8·(Σ z·R − (Σ z·s)·B + Σ over keys A of (Σ z·k)·A) = 0
//
// A key stands in it once, however many of the signatures it has made.
func together(terms []*term) bool {
	random := make([]byte, 16*len(terms))
	rand.Read(random) // never fails
	var (
		scalars = make([]*scalar.Scalar, 0, 2*len(terms)+1)
		points  = make([]*curve.EdwardsPoint, 0, 2*len(terms)+1)
		factors = make([]scalar.Scalar, len(terms))
		zs      sum
		zk      = map[*curve.EdwardsPoint]*sum{}
		padded  [scalar.ScalarSize]byte
	)
	for i, t := range terms {
		copy(padded[:], random[16*i:16*i+16])
		if _, err := factors[i].SetBits(padded[:]); err != nil {
			return false
		}
		scalars, points = append(scalars, &factors[i]), append(points, &t.r)
		z := factor{binary.LittleEndian.Uint64(padded[:]), binary.LittleEndian.Uint64(padded[8:])}
		zs.add(z, &t.s, 4)
		ofKey := zk[t.key]
		if ofKey == nil {
			ofKey = new(sum)
			zk[t.key] = ofKey
		}
		ofKey.add(z, &t.k, 8)
	}
	for key, ofKey := range zk {
		scalars, points = append(scalars, ofKey.scalar()), append(points, key)
	}
	ofBase := zs.scalar()
	scalars, points = append(scalars, ofBase.Neg(ofBase)), append(points, curve.ED25519_BASEPOINT_POINT)
	var total curve.EdwardsPoint
	return total.MultiscalarMulVartime(scalars, points).IsSmallOrder()
}
