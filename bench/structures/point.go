package main

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// point is one task: n keys, θ values, α = 2^-Bits.
type point struct {
	Keys   int
	Values int
	Bits   int
}

const (
	leastKeys  = 100
	mostKeys   = 100_000_000 // with all structures 20 GB
	mostValues = 1 << 16     // as a Go map's value has 16 bits
	mostBits   = 24
	mostPoints = 100

	// defaultPoints: the last one is a router's, which of 256 shards holds this key.
	defaultPoints = "10000:2:4,100000:16:16,100000:65536:12,1000000:256:8,1000000:65536:16,10000000:256:12"
)

// parsePoints reads points as they are on the command line.
func parsePoints(list string) (points []point, err error) {
	for _, one := range strings.Split(list, ",") {
		p, err := parsePoint(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	if len(points) > mostPoints {
		return nil, fmt.Errorf("%d points: 1 to %d are possible", len(points), mostPoints)
	}
	return points, nil
}

func parsePoint(text string) (point, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return point{}, fmt.Errorf("point %q: want keys:values:bits, as 1000000:256:8", text)
	}
	var n [3]int
	for i, limit := range []struct {
		what        string
		least, most int
	}{{"keys", leastKeys, mostKeys}, {"values", 2, mostValues}, {"bits", 1, mostBits}} {
		v, err := strconv.Atoi(parts[i])
		if err != nil || v < limit.least || v > limit.most {
			return point{}, fmt.Errorf("point %q: %s %q: want %d to %d", text, limit.what, parts[i], limit.least, limit.most)
		}
		n[i] = v
	}
	return point{n[0], n[1], n[2]}, nil
}

func (p point) String() string { return fmt.Sprintf("%d:%d:%d", p.Keys, p.Values, p.Bits) }

func (p point) rate() float64 { return math.Ldexp(1, -p.Bits) }

func (p point) valueBits() int { return bits.Len(uint(p.Values - 1)) }
