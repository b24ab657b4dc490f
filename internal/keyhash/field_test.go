package keyhash

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// edges are the numbers at which folding and reducing change.
var edges = []uint64{0, 1, 2, 10, 11, 12, 1<<21 - 1, 1 << 21, 1<<41 - 1, 1 << 41, P - 12, P - 11, P - 2, P - 1}

func operands(r *rand.Rand, n int) []uint64 {
	out := append([]uint64(nil), edges...)
	for range n {
		out = append(out, r.Uint64N(P))
	}
	return out
}

func TestFieldAgreesWithBigIntegers(t *testing.T) {
	const seed = 1
	t.Logf("seed %d", seed)
	numbers := operands(rand.New(rand.NewPCG(seed, 0)), 300)
	prime := big.NewInt(P)
	if !prime.ProbablyPrime(20) {
		t.Fatal("P is not prime")
	}
	x := new(big.Int)
	for _, a := range numbers {
		A := new(big.Int).SetUint64(a)
		for _, b := range numbers {
			B := new(big.Int).SetUint64(b)
			if got, want := Add(a, b), x.Mod(x.Add(A, B), prime).Uint64(); got != want {
				t.Fatalf("Add(%d, %d) = %d, want %d", a, b, got, want)
			}
			if got, want := Sub(a, b), x.Mod(x.Sub(A, B), prime).Uint64(); got != want {
				t.Fatalf("Sub(%d, %d) = %d, want %d", a, b, got, want)
			}
			if got, want := Mul(a, b), x.Mod(x.Mul(A, B), prime).Uint64(); got != want {
				t.Fatalf("Mul(%d, %d) = %d, want %d", a, b, got, want)
			}
		}
		if a == 0 {
			continue
		}
		if got, want := Inv(a), x.ModInverse(A, prime).Uint64(); got != want {
			t.Fatalf("Inv(%d) = %d, want %d", a, got, want)
		}
	}
	if Inv(0) != 0 {
		t.Fatal("Inv(0) is not 0")
	}
}

func TestMulReducesUnreducedOperands(t *testing.T) {
	const top = 1<<42 - 1
	x := new(big.Int).SetUint64(top)
	want := x.Mod(x.Mul(x, x), big.NewInt(P)).Uint64()
	if got := Mul(top, top); got != want {
		t.Fatalf("Mul(2^42−1, 2^42−1) = %d, want %d", got, want)
	}
}

func TestReduce(t *testing.T) {
	const seed = 2
	r := rand.New(rand.NewPCG(seed, 0))
	check := func(x uint64) {
		if got := Reduce(x); got != x%P {
			t.Fatalf("Reduce(%d) = %d, want %d (seed %d)", x, got, x%P, seed)
		}
	}
	for _, x := range []uint64{0, 1, P - 1, P, P + 1, 2*P - 1, 2 * P, 1<<42 - 1, 1 << 42, 1<<60 - 1, 1<<64 - 1, (1<<64 - 1) / P * P} {
		check(x)
		check(x - 1)
	}
	for range 100_000 {
		check(r.Uint64() >> r.IntN(64))
	}
}

func TestInvAllIsInvOfEach(t *testing.T) {
	for n := range 70 {
		r := rand.New(rand.NewPCG(2, uint64(n)))
		a := make([]uint64, n)
		want := make([]uint64, n)
		for i := range a {
			a[i] = r.Uint64N(P-1) + 1
			want[i] = Inv(a[i])
		}
		InvAll(a, make([]uint64, n))
		for i := range a {
			if a[i] != want[i] {
				t.Fatalf("n = %d: inverse %d is %d, want %d", n, i, a[i], want[i])
			}
		}
	}
}
