package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// parseLaw reads "turn|α,α|share:stride,…": where the dense part of the opening
// ends, the exponents, and the classes with shares in 256ths and strides in
// 64ths of an octave.
func parseLaw(s string) (*blocks, error) {
	wrong := func(what string) (*blocks, error) {
		return nil, fmt.Errorf("read law %q: %s; write turn|α,α|share:stride,…, such as %v", s, what, shipped)
	}
	fields := strings.Split(s, "|")
	if len(fields) != 3 {
		return wrong("it has not three parts")
	}
	turn, err := strconv.Atoi(fields[0])
	if err != nil || turn < 1 || turn > join {
		return wrong("the dense part ends at a cell from 1 to 64")
	}
	dense, sparse, found := strings.Cut(fields[1], ",")
	a, err := exponent(dense)
	b, err2 := exponent(sparse)
	if err = errors.Join(err, err2); !found || err != nil {
		return wrong("the opening has not two exponents")
	}
	var classes []class
	sum := 0
	for _, field := range strings.Split(fields[2], ",") {
		share, stride, _ := strings.Cut(field, ":")
		var c class
		c.share, err = strconv.Atoi(share)
		c.stride, err2 = strconv.Atoi(stride)
		if err = errors.Join(err, err2); err != nil || c.share < 1 || c.stride < leastStride || c.stride > joint {
			return wrong("a class is no share of at least 1 and stride from 4 to 384")
		}
		classes, sum = append(classes, c), sum+c.share
	}
	if sum != whole {
		return wrong("the shares do not add up to 256")
	}
	return newBlocks(turn, a, b, classes), nil
}

// leastStride keeps blocks from being empty: below it some would have no cell
// between cells 61 and 64.
const leastStride = 4

// exponent reads an α. Below 0.02 a mapping hardly leaves a cell out.
func exponent(s string) (float64, error) {
	alpha, err := strconv.ParseFloat(s, 64)
	if err != nil || !(alpha >= 0.02 && alpha <= 2) {
		return 0, errors.New("α is no number from 0.02 to 2")
	}
	return alpha, nil
}
