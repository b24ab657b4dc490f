package plot

import (
	"fmt"
	"math"
	"strings"
)

// scale maps the numbers of an axis to pixels.
type scale struct {
	low, high float64 // bounds; logarithms to base 10 on a logarithmic axis
	log       bool
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
	if s.log {
		v = math.Log10(v)
	}
	return from + float64((v-s.low)/(s.high-s.low)*(to-from))
}

// scaleOf fits an axis to values, all of them finite.
func (a *Axis) scaleOf(values []float64) (scale, error) {
	s := scale{log: a.Log}
	low, high := a.From, a.To
	fixed := low != high
	if fixed {
		values = append(values[:len(values):len(values)], low, high)
	}
	for _, v := range values {
		if a.Log && v <= 0 {
			return s, fmt.Errorf("axis %q: %v has no place on a logarithmic axis", a.Label, v)
		}
	}
	switch {
	case fixed && !(low < high && finite(low) && finite(high)):
		return s, fmt.Errorf("axis %q: bounds from %v to %v", a.Label, low, high)
	case !fixed && len(values) == 0:
		low, high = 0, 1
		if a.Log {
			low, high = 1, 10
		}
	case !fixed:
		low, high = values[0], values[0]
		for _, v := range values {
			low, high = min(low, v), max(high, v)
		}
	}
	if a.Log {
		low, high = math.Log10(low), math.Log10(high)
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
		if pad < 0x1p-900 || a.Log {
			pad = 0.5
		}
		low, high = low-pad, high+pad
	}
	s.low, s.high = low, high
	if a.Log {
		s.decades(fixed)
	} else {
		s.steps(fixed)
	}
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

// decades are ticks at powers of ten. If the axis is short they are also at 2 and 5
// times these, and if it is long only at every second or third of them.
func (s *scale) decades(fixed bool) {
	first, last := int(math.Floor(s.low+1e-9)), int(math.Ceil(s.high-1e-9))
	factors := []float64{1}
	if last-first <= 3 {
		factors = []float64{1, 2, 5}
	}
	var at []float64
	for k := first; k <= last; k++ {
		for _, f := range factors {
			at = append(at, float64(k)+math.Log10(f))
		}
	}
	if !fixed { // the last tick below the data, and the first above
		for len(at) > 2 && at[1] <= s.low+1e-9 {
			at = at[1:]
		}
		for len(at) > 2 && at[len(at)-2] >= s.high-1e-9 {
			at = at[:len(at)-1]
		}
		s.low, s.high = at[0], at[len(at)-1]
	}
	every := (last-first)/10 + 1
	for _, v := range at {
		if v < s.low-1e-9 || v > s.high+1e-9 || (int(math.Floor(v+1e-9))-first)%every != 0 {
			continue
		}
		s.ticks = append(s.ticks, tick{v, power(v)})
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

// power writes the number whose logarithm to base 10 is v. It is written as it is from
// 0.001 to 50,000, beyond as a power of ten.
func power(v float64) string {
	k := int(math.Floor(v + 1e-9))
	f := math.Round(math.Pow(10, v-float64(k)))
	if k >= -3 && k < 5 {
		return number(f*math.Pow(10, float64(k)), max(0, -k))
	}
	s := "10" + superscripts.Replace(fmt.Sprint(k))
	if f != 1 {
		s = fmt.Sprintf("%.0f·%s", f, s)
	}
	return s
}

var superscripts = strings.NewReplacer("-", "⁻", "0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴",
	"5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")

func finite(v float64) bool { return v-v == 0 }
