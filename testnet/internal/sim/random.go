package sim

import "time"

// Random draws by hashing, not in sequence: a draw depends on the seed and its
// purpose, and not on earlier draws.
type Random struct{ seed uint64 }

// Purpose is what a number is drawn for. Draws for two purposes are independent.
type Purpose uint64

// The purposes. A saved run replays only while their numbers stay: new ones go
// to the end.
const (
	ForDelay Purpose = iota + 1
	ForLoss
	ForDuplicate
	ForReorder
	ForReset
	ForTear
	_ // was drawn from before
	ForNonce
	ForIncarnation
	ForInterval
	ForRest
	ForBusy
	ForCrashPoint
	ForLinger
	ForIndices
	ForToken
	ForPhantom
	ForPush
	ForLine
	ForLog
	ForRead
	ForWatch
)

// Draw is 64 random bits for a purpose and up to three counters.
func (r Random) Draw(p Purpose, a, b, c uint64) uint64 {
	x := r.seed
	for _, y := range [...]uint64{uint64(p), a, b, c} {
		x = mix(x ^ mix(y+0x9e3779b97f4a7c15))
	}
	return x
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood, "Fast Splittable
// Pseudorandom Number Generators", 2014, variant 13 of Stafford), over a
// Weyl step.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Chance is true with the given probability.
func (r Random) Chance(probability float64, p Purpose, a, b, c uint64) bool {
	return float64(r.Draw(p, a, b, c)>>11)*0x1p-53 < probability
}

// Between is a duration from least on and below most.
func (r Random) Between(least, most time.Duration, p Purpose, a, b, c uint64) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(r.Draw(p, a, b, c)%uint64(most-least))
}
