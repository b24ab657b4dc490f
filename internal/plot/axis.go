package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// scale maps the numbers of an axis to pixels.
type scale struct {
	low, high float64 // bounds
	ticks     []tick
}

// tick is a labelled place of an axis.
type tick struct {
	at    float64 // as the bounds
	label string
}

// at is where v stands between the pixels from and to. The product is rounded
// by itself, so that no processor fuses it with the sum.
func (s *scale) at(v, from, to float64) float64 {
	return from + float64((v-s.low)/(s.high-s.low)*(to-from))
}

// scaleOf fits an axis to values, all of them finite.
func (a *Axis) scaleOf(values []float64) (scale, error) {
	var s scale
	low, high := a.From, a.To
	fixed := low != high
	switch {
	case fixed && !(low < high && finite(low) && finite(high)):
		return s, fmt.Errorf("axis %q: bounds from %v to %v", a.Label, low, high)
	case !fixed && len(values) == 0:
		low, high = 0, 1
	case !fixed:
		low, high = slices.Min(values), slices.Max(values)
	}
	// A quarter of the largest number: bounds move out, and their distance counts.
	size := max(math.Abs(low), math.Abs(high))
	if !(size <= math.MaxFloat64/4) {
		return s, fmt.Errorf("axis %q: the range from %v to %v is too wide", a.Label, low, high)
	}
	// Numbers that differ by rounding only are one.
	one := high-low <= max(size*1e-9, math.SmallestNonzeroFloat64*0x1p60)
	if fixed && one {
		return s, fmt.Errorf("axis %q: the range from %v to %v is too narrow", a.Label, a.From, a.To)
	}
	if one {
		pad := size / 10
		if pad < 0x1p-900 {
			pad = 0.5
		}
		low, high = low-pad, high+pad
	}
	s.low, s.high = low, high
	s.steps(fixed)
	return s, nil
}

// steps are ticks at multiples of 1, 2 or 5 times a power of ten. Unless the
// bounds are fixed, they move out to the next ones.
func (s *scale) steps(fixed bool) {
	step := roundUp((s.high - s.low) / 5)
	first, last := math.Ceil(s.low/step-1e-9), math.Floor(s.high/step+1e-9)
	if !fixed {
		first, last = math.Floor(s.low/step+1e-9), math.Ceil(s.high/step-1e-9)
		s.low, s.high = first*step, last*step
	}
	digits := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	for i := range int(min(last-first, 20)) + 1 {
		v := (first + float64(i)) * step
		s.ticks = append(s.ticks, tick{v, number(v, digits)})
	}
}

// roundUp is the least of 1, 2 and 5 times a power of ten that is not below v.
func roundUp(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if v <= f*power*(1+1e-9) {
			return f * power
		}
	}
	return 10 * power
}

// number writes v with the given digits after the point, and commas between
// thousands.
func number(v float64, digits int) string {
	if size := math.Abs(v); size >= 1e12 || digits > 6 {
		return fmt.Sprintf("%.4g", v)
	}
	s := fmt.Sprintf("%.*f", digits, math.Abs(v))
	whole, part, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if part != "" {
		whole += "." + part
	}
	if v < 0 && strings.Trim(whole, "0.") != "" {
		whole = "−" + whole
	}
	return whole
}

func finite(v float64) bool { return v-v == 0 }
