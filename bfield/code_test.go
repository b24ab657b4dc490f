package bfield

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestFigure1 is the paper's table.
func TestFigure1(t *testing.T) {
	figure := []string{"00011", "00101", "00110", "01001", "01010", "01100", "10001", "10010", "10100", "11000"}
	for i, text := range figure {
		want, err := strconv.ParseUint(text, 2, 64)
		if err != nil {
			t.Fatal(err)
		}
		value := uint64(i + 1)
		if code, err := Encode(value, 5, 2); err != nil || code != want {
			t.Errorf("Encode(%d, 5, 2) = %05b, %v; the figure has %s", value, code, err, text)
		}
		if back, err := Decode(want, 5, 2); err != nil || back != value {
			t.Errorf("Decode(%s) = %d, %v; the figure has %d", text, back, err, value)
		}
	}
}

// TestAllCodes goes through all numbers of up to 14 bits: those of weight κ,
// in ascending order, are the codes 1, 2, 3 …; all others are refused.
func TestAllCodes(t *testing.T) {
	for nu := 1; nu <= 14; nu++ {
		for kappa := 1; kappa <= nu; kappa++ {
			next := uint64(1)
			for word := range uint64(1) << (nu + 1) {
				value, err := Decode(word, nu, kappa)
				if word>>nu != 0 || bits.OnesCount64(word) != kappa {
					if !errors.Is(err, ErrCode) {
						t.Fatalf("Decode(%b, %d, %d) = %d, %v; want ErrCode", word, nu, kappa, value, err)
					}
					continue
				}
				code, encodeErr := Encode(next, nu, kappa)
				if err != nil || encodeErr != nil || value != next || code != word {
					t.Fatalf("code %d of (%d, %d): Decode(%b) = %d, %v; Encode = %b, %v", next, nu, kappa, word, value, err, code, encodeErr)
				}
				next++
			}
			if next-1 != Codes(nu, kappa) {
				t.Fatalf("(%d, %d) has %d codes, Codes says %d", nu, kappa, next-1, Codes(nu, kappa))
			}
		}
	}
}

// TestLargeCodes tries the ends of all lengths, and values near 2^60: floating
// point would give these one too small or too large.
func TestLargeCodes(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	check := func(value uint64, nu, kappa int) uint64 {
		t.Helper()
		code, err := Encode(value, nu, kappa)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if back, err := Decode(code, nu, kappa); err != nil || back != value {
			t.Fatalf("seed %d: (%d, %d): %d became %064b and then %d, %v", seed, nu, kappa, value, code, back, err)
		}
		return code
	}
	for nu := 1; nu <= MaxNu; nu++ {
		for kappa := 1; kappa <= nu; kappa++ {
			codes := Codes(nu, kappa)
			low := uint64(1)<<kappa - 1
			if got := check(1, nu, kappa); got != low {
				t.Fatalf("the first code of (%d, %d) is %b", nu, kappa, got)
			}
			if got := check(codes, nu, kappa); got != low<<(nu-kappa) {
				t.Fatalf("the last code of (%d, %d) is %b", nu, kappa, got)
			}
			for range 20 {
				value := 1 + random.Uint64N(codes)
				code := check(value, nu, kappa)
				if value < codes && check(value+1, nu, kappa) <= code {
					t.Fatalf("seed %d: codes %d and %d of (%d, %d) are not in order", seed, value, value+1, nu, kappa)
				}
			}
			for _, bad := range []uint64{0, codes + 1, ^uint64(0)} {
				if _, err := Encode(bad, nu, kappa); !errors.Is(err, ErrCode) {
					t.Fatalf("Encode(%d, %d, %d): %v; want ErrCode", bad, nu, kappa, err)
				}
			}
		}
	}
	// Known values: the middle of the longest codes, and the ranks that
	// onecodex/rust-bfield gives, which count from 0.
	if Codes(57, 28) != 15033633249770520 {
		t.Errorf("C(57, 28) = %d", Codes(57, 28))
	}
	if code, err := Encode(3, 39, 4); err != nil || code != 0x1b {
		t.Errorf("rank 2 of (39, 4) is %x, %v", code, err)
	}
	if code, err := Encode(107, 39, 4); err != nil || code != 0x185 {
		t.Errorf("rank 106 of (39, 4) is %x, %v", code, err)
	}
	for _, lengths := range [][2]int{{0, 0}, {0, 1}, {5, 0}, {5, 6}, {58, 1}, {-1, -1}, {5, -2}} {
		if _, err := Encode(1, lengths[0], lengths[1]); !errors.Is(err, ErrCode) {
			t.Errorf("Encode(1, %v): %v; want ErrCode", lengths, err)
		}
		if _, err := Decode(1, lengths[0], lengths[1]); !errors.Is(err, ErrCode) {
			t.Errorf("Decode(1, %v): %v; want ErrCode", lengths, err)
		}
	}
}
