#include "textflag.h"

// func parities(blocks *uint64, width, n int, first, second uint64) uint64
TEXT ·parities(SB), NOSPLIT, $0-48
	MOVQ         blocks+0(FP), SI
	MOVQ         width+8(FP), DI
	LEAQ         (SI)(DI*8), DI      // the second block
	MOVQ         n+16(FP), DX
	VPBROADCASTQ first+24(FP), Z0
	VPBROADCASTQ second+32(FP), Z1
	VPTERNLOGQ   $0xff, Z2, Z2, Z2
	VPSRLQ       $63, Z2, Z2         // ones
	XORQ         R8, R8              // the bits
	XORQ         CX, CX              // how many there are

eight:
	CMPQ     DX, $8
	JLT      rest
	VPANDQ   (SI), Z0, Z3
	VPANDQ   (DI), Z1, Z4
	VPXORQ   Z3, Z4, Z3
	VPOPCNTQ Z3, Z3
	VPTESTMQ Z2, Z3, K1
	KMOVB    K1, AX
	SHLQ     CX, AX
	ORQ      AX, R8
	ADDQ     $64, SI
	ADDQ     $64, DI
	ADDQ     $8, CX
	SUBQ     $8, DX
	JMP      eight

rest:
	TESTQ    DX, DX
	JEQ      done
	XCHGQ    CX, DX
	MOVL     $1, AX
	SHLL     CX, AX
	DECL     AX
	KMOVB    AX, K2                  // what is masked out is not read
	MOVQ     DX, CX
	VPANDQ.Z (SI), Z0, K2, Z3
	VPANDQ.Z (DI), Z1, K2, Z4
	VPXORQ   Z3, Z4, Z3
	VPOPCNTQ Z3, Z3
	VPTESTMQ Z2, Z3, K2, K1
	KMOVB    K1, AX
	SHLQ     CX, AX
	ORQ      AX, R8

done:
	VZEROUPPER
	MOVQ R8, ret+40(FP)
	RET
