package ribbon

import "golang.org/x/sys/cpu"

// wide says that the processor counts the bits of eight words at once.
var wide = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VPOPCNTDQ

// parities is paritiesGo for processors that are wide. blocks points to the
// first of n ≥ 1 columns in the first block. The word of each in the second
// block is width words after it.
//
//go:noescape
func parities(blocks *uint64, width, n int, first, second uint64) uint64
