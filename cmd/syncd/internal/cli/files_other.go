//go:build !unix

package cli

import "math"

func maxFiles() uint64 { return math.MaxUint64 }
