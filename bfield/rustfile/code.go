package rustfile

import "math/bits"

const (
	maxNu     = 128 // the original's windows are numbers of 128 bits
	maxKappa  = 9
	maxHashes = 16
)

// marker is a window, or what windows have in common: a number of 128 bits.
type marker struct{ hi, lo uint64 }

func (m marker) and(n marker) marker { return marker{m.hi & n.hi, m.lo & n.lo} }

func (m marker) ones() int { return bits.OnesCount64(m.hi) + bits.OnesCount64(m.lo) }

// shifted is m·2^n, for n from 0 to 63, without what goes over 128 bits.
func (m marker) shifted(n uint) marker {
	return marker{m.hi<<n | m.lo>>(64-n), m.lo << n}
}

// mask is nu ones.
func mask(nu int) marker {
	if nu <= 64 {
		return marker{0, ^uint64(0) >> (64 - nu)}
	}
	return marker{^uint64(0) >> (128 - nu), ^uint64(0)}
}

// binomials[n][r] is C(n, r). The largest, C(128, 9), has 45 bits.
var binomials = pascal()

func pascal() (c [maxNu + 1][maxKappa + 1]uint64) {
	for n := range c {
		c[n][0] = 1
		for r := 1; r <= min(n, maxKappa); r++ {
			c[n][r] = c[n-1][r-1] + c[n-1][r]
		}
	}
	return c
}

// places returns where the ones of value's marker are, the highest first.
func places(value uint64, nu, kappa int) []int {
	at, all := nu, make([]int, 0, kappa)
	for r := kappa; r > 0; r-- {
		at--
		for binomials[at][r] > value {
			at--
		}
		all = append(all, at)
		value -= binomials[at][r]
	}
	return all
}

// rank returns which value a marker of up to maxKappa ones stands for.
func rank(m marker) uint64 {
	sum, r := uint64(0), 1
	for ; m.lo != 0; m.lo &= m.lo - 1 {
		sum += binomials[bits.TrailingZeros64(m.lo)][r]
		r++
	}
	for ; m.hi != 0; m.hi &= m.hi - 1 {
		sum += binomials[64+bits.TrailingZeros64(m.hi)][r]
		r++
	}
	return sum
}
