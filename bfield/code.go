package bfield

import (
	"errors"
	"fmt"
	"math/bits"
)

// MaxNu is the longest code. 8 bytes show 57 bits at each of the 8 places at which a
// code can begin in its first byte. So a window is one load.
const MaxNu = 57

// ErrCode is returned for a value, a code or lengths that do not fit together.
var ErrCode = errors.New("bfield: no such code")

// binomials[n][r] is C(n, r) for n ≤ MaxNu; all of them fit in 64 bits.
var binomials = pascal()

func pascal() (c [MaxNu + 1][MaxNu + 1]uint64) {
	for n := range c {
		c[n][0] = 1
		for r := 1; r <= n; r++ {
			c[n][r] = c[n-1][r-1] + c[n-1][r]
		}
	}
	return c
}

// Codes returns C(ν, κ): how many codes of nu bits have weight kappa. It is
// zero if no code has these lengths.
func Codes(nu, kappa int) uint64 {
	if nu < 1 || nu > MaxNu || kappa < 1 || kappa > nu {
		return 0
	}
	return binomials[nu][kappa]
}

// Encode returns the value-th bit string of nu bits with kappa ones. They are
// counted from 1 in lexicographic order, as in Figure 1 of the paper:
//
//	Encode(1, 5, 2) = 00011    Encode(4, 5, 2) = 01001    Encode(10, 5, 2) = 11000
//
// The string's last character is bit 0 of the code, so that the order of
// strings is the order of numbers. It is the combinatorial number system (D.
// E. Knuth, The Art of Computer Programming 4A, section 7.2.1.3). The ones at
// c_κ > … > c_1 are string number 1 + C(c_κ, κ) + … + C(c_1, 1).
//
// It fails with ErrCode unless 1 ≤ value ≤ Codes(nu, kappa).
func Encode(value uint64, nu, kappa int) (uint64, error) {
	codes := Codes(nu, kappa)
	if value < 1 || value > codes {
		return 0, fmt.Errorf("encode %d in %d bits of weight %d: the values go from 1 to %d: %w", value, nu, kappa, codes, ErrCode)
	}
	return codeOf(value-1, nu, kappa), nil
}

// Decode is the inverse of Encode. It fails with ErrCode if the code is longer
// than nu bits or its weight is not kappa.
func Decode(code uint64, nu, kappa int) (uint64, error) {
	if Codes(nu, kappa) == 0 || bits.Len64(code) > nu || bits.OnesCount64(code) != kappa {
		return 0, fmt.Errorf("decode %b as %d bits of weight %d: %w", code, nu, kappa, ErrCode)
	}
	return rankOf(code) + 1, nil
}

// codeOf returns the code of the given rank, which is below C(nu, kappa).
func codeOf(rank uint64, nu, kappa int) uint64 {
	code := uint64(0)
	at := nu
	for r := kappa; r > 0; r-- {
		// The highest place whose strings begin at or before rank.
		at--
		for binomials[at][r] > rank {
			at--
		}
		code |= 1 << at
		rank -= binomials[at][r]
	}
	return code
}

// rankOf returns how many codes of equal weight are smaller.
func rankOf(code uint64) uint64 {
	// C(c, 1) and C(c, 2) are computed. A table of 34 KiB would push what the
	// windows need out of the first cache.
	rank := uint64(bits.TrailingZeros64(code))
	code &= code - 1
	if code == 0 {
		return rank
	}
	second := uint64(bits.TrailingZeros64(code))
	rank += second * (second - 1) / 2
	code &= code - 1
	for r := 3; code != 0; r++ {
		rank += binomials[bits.TrailingZeros64(code)][r]
		code &= code - 1
	}
	return rank
}
