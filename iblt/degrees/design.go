package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// design is a law of walks: which cells an index belongs to. It belongs to
// cell 0, from there on walks with the opening's exponent, and from cell join on
// with that of its class.
type design struct {
	join    int     // the first cell of the classes, at least 1
	opening float64 // α below join
	classes []class // their shares add up to 1
}

// class is a part of all indices.
type class struct{ share, alpha float64 }

// The laws that are compared. iblt does not export its constants, which are
// nobody's business but the decoder's; TestShippedConstants compares shipped
// with the cells that iblt's pairs are in.
var (
	shipped = design{64, .50, []class{{.18, .11}, {.56, .68}, {.26, .82}}}
	// regular is the walk of rateless IBLTs (Yang, Gilad, Alizadeh 2024,
	// section 4).
	regular = alone(.50)
	// classesOnly are the shipped classes from cell 0 on.
	classesOnly = design{1, .50, shipped.classes}
)

// alone is the walk with one exponent for all.
func alone(alpha float64) design { return design{1, alpha, []class{{1, alpha}}} }

// String writes what parseDesign reads.
func (d design) String() string {
	var classes []string
	for _, c := range d.classes {
		classes = append(classes, fmt.Sprintf("%g:%g", c.share, c.alpha))
	}
	return fmt.Sprintf("%d|%g|%s", d.join, d.opening, strings.Join(classes, ","))
}

// parseDesign reads "join|opening α|share:α,share:α,…".
func parseDesign(s string) (design, error) {
	wrong := func(what string) (design, error) {
		return design{}, fmt.Errorf("read design %q: %s; write join|opening α|share:α,…, such as %v", s, what, shipped)
	}
	parts := strings.Split(s, "|")
	if len(parts) != 3 {
		return wrong("it has not three parts")
	}
	var d design
	var err error
	if d.join, err = strconv.Atoi(parts[0]); err != nil || d.join < 1 || d.join > 1<<20 {
		return wrong("the join is no cell from 1 to 2^20")
	}
	if d.opening, err = exponent(parts[1]); err != nil {
		return wrong("the opening: " + err.Error())
	}
	sum := 0.0
	for _, part := range strings.Split(parts[2], ",") {
		share, alpha, found := strings.Cut(part, ":")
		c := class{}
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

// exponent reads an α. Below 0.02 a walk hardly leaves a cell out.
func exponent(s string) (float64, error) {
	alpha, err := strconv.ParseFloat(s, 64)
	if err != nil || !(alpha >= 0.02 && alpha <= 2) {
		return 0, fmt.Errorf("α is no number from 0.02 to 2")
	}
	return alpha, nil
}

// visiting is the probability that a walk with exponent alpha visits cell j > 0.
// It does not depend on the other cells that the walk visits: from cell i, the
// next lies beyond j with the probability ((i + c)/(j + c))^(1/α), so that for a
// walk which has last stood at i and passed j − 1 the factor of i cancels:
//
//	P(stops at j | passed j − 1) = 1 − ((j − 1 + c)/(j + c))^(1/α)
//
// Visits to different cells are therefore independent; the class of an index is
// what its cells from join on have in common.
func visiting(alpha float64, j int) float64 {
	c := (1 + 1/alpha) / 2
	return 1 - math.Pow((float64(j-1)+c)/(float64(j)+c), 1/alpha)
}
