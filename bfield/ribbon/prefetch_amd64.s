#include "textflag.h"

// func prefetch(addresses *[batch]*uint64, n, size int)
TEXT ·prefetch(SB), NOSPLIT, $0-24
	MOVQ addresses+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ size+16(FP), DX
	JMP  next

key:
	MOVQ (SI), AX
	ADDQ $8, SI
	LEAQ -1(AX)(DX*1), BX // its last byte

line:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	CMPQ AX, BX
	JLS  line
	PREFETCHT0 (BX)
	DECQ CX

next:
	TESTQ CX, CX
	JNE  key
	RET
