package bloom

import "math"

// best is the number of hashes with the lowest predicted rate, and the rate.
func best(kind Kind, bits float64) (hashes int, rate float64) {
	rate = 2
	for k := 1; k <= maxHashes; k++ {
		if r := predicted(kind, bits, k); r < rate {
			hashes, rate = k, r
		}
	}
	return hashes, rate
}

// predicted is the rate of false positives of a filter of many keys, with so many bits
// for each.
func predicted(kind Kind, bits float64, hashes int) float64 {
	if kind == Classic {
		return math.Pow(-math.Expm1(-float64(hashes)/bits), float64(hashes))
	}
	// The keys of a block are as good as Poisson distributed.
	mean, rate := blockBits/bits, 0.0
	spread := 12*math.Sqrt(mean) + 12
	for i := math.Floor(max(0, mean-spread)); i <= mean+spread; i++ {
		g, _ := math.Lgamma(i + 1)
		rate += math.Exp(i*math.Log(mean)-mean-g) * blockRate(i*float64(hashes), float64(hashes))
	}
	return rate
}

// blockRate is the mean of (ones/512)^hashes after so many throws at 512 bits. The ones vary,
// so the mean of their power is above the power of their mean. The second term of the power's
// series tells by how much.
func blockRate(throws, hashes float64) float64 {
	if throws == 0 {
		return 0
	}
	miss := math.Exp(throws * math.Log1p(-1.0/blockBits))
	missTwo := math.Exp(throws * math.Log1p(-2.0/blockBits))
	variance := miss*(1-miss)/blockBits + (1-1.0/blockBits)*(missTwo-miss*miss)
	full := 1 - miss
	return math.Pow(full, hashes) * (1 + hashes*(hashes-1)/2*variance/(full*full))
}
