package node

import (
	"crypto/sha512"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// smallR signs a message with an R of order 2, which ZIP-215 allows and crypto/ed25519
// does not: s = k·a.
func smallR(seed int, message []byte) []byte {
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	integer := func(b []byte) *big.Int {
		b = slices.Clone(b)
		slices.Reverse(b)
		return new(big.Int).SetBytes(b)
	}
	key := keyOf(seed)
	a := sha512.Sum512(key.Seed())
	a[0] &= 248
	a[31] = a[31]&63 | 64
	r := slices.Repeat([]byte{0xff}, 32)
	r[0], r[31] = 0xec, 0x7f
	k := sha512.Sum512(slices.Concat(r, key[32:], message))
	s := integer(k[:])
	s.Mul(s, integer(a[:32])).Mod(s, order)
	b := s.FillBytes(make([]byte, 32))
	slices.Reverse(b)
	return append(r, b...)
}

// A record and a statement whose signatures only the one rule takes are let in, the
// record alone and among others, where forged ones beside it are refused by name.
func TestOneRuleOfSignatures(t *testing.T) {
	_, ns := newNotes(Policy{})
	record := func(key string) dbadapter.Record {
		r := dbadapter.Record{Key: []byte(key), Version: at(writer, 0)}
		r.Signature = smallR(writer, SignedBytes(ns.Sets()[0].Keys.ID, &r))
		return r
	}
	if v := admit(ns, writer, record("alone"))[0]; v.Result != dbadapter.Applied {
		t.Errorf("alone: %+v", v)
	}
	const n = 2*verifiedAlone + 5
	var many []dbadapter.Record
	forged := map[int]bool{3: true, n/3 - 1: true, n / 3: true, n - 1: true}
	for i := range n {
		r := record(fmt.Sprint("of many ", i))
		if i%2 == 0 {
			r = signedBy(writer, ns, r)
		}
		if forged[i] {
			r.Signature = slices.Clone(r.Signature)
			r.Signature[40] ^= 1
		}
		many = append(many, r)
	}
	for i, v := range admit(ns, writer, many...) {
		if want := map[bool]wire.Reason{true: wire.ReasonSignature}[forged[i]]; v.Reason != want || (v.Result == dbadapter.Applied) == forged[i] {
			t.Errorf("record %d: %+v, want reason %s", i, v, want)
		}
	}

	sign := func(message []byte) ([]byte, error) { return smallR(1, message), nil }
	founding := roster.Statement{Kind: roster.Found, Author: idOf(1), At: at(1, 0).Clock, Policy: &roster.Policy{MaxSkew: DefaultMaxSkew}}
	value := must(founding.Sign(ns.Sets()[0].Keys.ID, sign))
	wantErr(t, second(roster.Parse(ns.id, value, ns.node.verify)), nil, "a statement")
}
