package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// design is a law of mappings: which cells an index belongs to. It belongs to
// cell 0, from there on follows the exponents of the openings, which are the
// same for all indices, and from where the last of them ends with that of its
// class.
type design struct {
	openings []opening // at least one; the first ends at cell 1 or later
	classes  []class   // their shares add up to 1
}

// opening is the part of a mapping below cell end.
type opening struct {
	end   int
	alpha float64
}

// class is a part of all indices.
type class struct{ share, alpha float64 }

// The laws that are compared. iblt/rateless does not export its constants;
// TestShippedConstants compares shipped with the cells that its pairs are in.
var (
	shipped = design{[]opening{{20, .45}, {68, .58}}, []class{{.18, .11}, {.56, .68}, {.26, .83}}}
	// regular is the mapping of rateless IBLTs (Yang, Gilad, Alizadeh 2024,
	// section 4).
	regular = alone(.50)
	// classesOnly are the shipped classes from cell 0 on.
	classesOnly = design{[]opening{{1, .50}}, shipped.classes}
)

// alone is the mapping with one exponent for all.
func alone(alpha float64) design { return design{[]opening{{1, alpha}}, []class{{1, alpha}}} }

// join is the first cell of the classes.
func (d *design) join() int { return d.openings[len(d.openings)-1].end }

// String writes what parseDesign reads.
func (d design) String() string {
	var ends, alphas, classes []string
	for _, o := range d.openings {
		ends, alphas = append(ends, fmt.Sprint(o.end)), append(alphas, fmt.Sprintf("%g", o.alpha))
	}
	for _, c := range d.classes {
		classes = append(classes, fmt.Sprintf("%g:%g", c.share, c.alpha))
	}
	return strings.Join(ends, ",") + "|" + strings.Join(alphas, ",") + "|" + strings.Join(classes, ",")
}

// parseDesign reads "end,…|α,…|share:α,…": where the openings end, their
// exponents, and the classes.
func parseDesign(s string) (design, error) {
	wrong := func(what string) (design, error) {
		return design{}, fmt.Errorf("read design %q: %s; write end,…|α,…|share:α,…, such as %v", s, what, shipped)
	}
	parts := strings.Split(s, "|")
	if len(parts) != 3 {
		return wrong("it has not three parts")
	}
	ends, alphas := strings.Split(parts[0], ","), strings.Split(parts[1], ",")
	if len(ends) != len(alphas) {
		return wrong("each opening has an end and an exponent")
	}
	var d design
	last := 0
	for i := range ends {
		end, err := strconv.Atoi(ends[i])
		if err != nil || end <= last || end > 1<<20 {
			return wrong("openings end at rising cells from 1 to 2^20")
		}
		alpha, err := exponent(alphas[i])
		if err != nil {
			return wrong("an opening: " + err.Error())
		}
		d.openings, last = append(d.openings, opening{end, alpha}), end
	}
	sum := 0.0
	for _, part := range strings.Split(parts[2], ",") {
		share, alpha, found := strings.Cut(part, ":")
		var c class
		var err error
		if c.share, err = strconv.ParseFloat(share, 64); err != nil || !found || !(c.share > 0 && c.share <= 1) {
			return wrong("a class has no share above 0")
		}
		if c.alpha, err = exponent(alpha); err != nil {
			return wrong("a class: " + err.Error())
		}
		sum += c.share
		d.classes = append(d.classes, c)
	}
	if math.Abs(sum-1) > 1e-9 {
		return wrong("the shares do not add up to 1")
	}
	return d, nil
}

// exponent reads an α. Below 0.02 a mapping hardly leaves a cell out.
func exponent(s string) (float64, error) {
	alpha, err := strconv.ParseFloat(s, 64)
	if err != nil || !(alpha >= 0.02 && alpha <= 2) {
		return 0, fmt.Errorf("α is no number from 0.02 to 2")
	}
	return alpha, nil
}

// visiting is the probability that a mapping with exponent alpha visits cell j > 0.
// It does not depend on the other cells that the mapping visits: from cell i, the
// next lies beyond j with the probability ((i + c)/(j + c))^(1/α), so that for a
// mapping which has last stood at i and passed j − 1 the factor of i cancels:
//
//	P(stops at j | passed j − 1) = 1 − ((j − 1 + c)/(j + c))^(1/α)
//
// Visits to different cells are therefore independent; the class of an index is
// what its cells from join on have in common.
func visiting(alpha float64, j int) float64 {
	c := (1 + 1/alpha) / 2
	return 1 - math.Pow((float64(j-1)+c)/(float64(j)+c), 1/alpha)
}

// visits is the probability that a mapping whose class has the exponent alpha
// visits cell j > 0.
func (d *design) visits(alpha float64, j int) float64 {
	for _, o := range d.openings {
		if j < o.end {
			return visiting(o.alpha, j)
		}
	}
	return visiting(alpha, j)
}
