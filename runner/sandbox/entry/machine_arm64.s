#include "textflag.h"

// The machine makes a list of system calls. In a clone of the bot it shares the
// bot's memory and has no Go runtime, so it calls nothing and uses no stack: R19
// is the call, R20 how many are left, R21 the fault.

// ARG takes argument n from its offset; bit n of R22 says that it is an address.
#define ARG(n, offset, register) \
	MOVD offset(R19), register  \
	TBZ  $n, R22, 2(PC)         \
	MOVW (register), register

// func clone(flags, stack uintptr, first *call, count uintptr, f *fault) uintptr
TEXT ·clone(SB), NOSPLIT|NOFRAME, $0-48
	MOVD flags+0(FP), R0
	MOVD stack+8(FP), R1
	MOVD first+16(FP), R19
	MOVD count+24(FP), R20
	MOVD f+32(FP), R21
	MOVD $0, R2
	MOVD $0, R3
	MOVD $0, R4
	MOVD $220, R8            // clone
	SVC
	CBZ  R0, child
	MOVD R0, ret+40(FP)
	RET

child:
	JMP machine<>(SB)

// func perform(first *call, count uintptr, f *fault)
TEXT ·perform(SB), NOSPLIT|NOFRAME, $0-24
	MOVD first+0(FP), R19
	MOVD count+8(FP), R20
	MOVD f+16(FP), R21
	JMP  machine<>(SB)

TEXT machine<>(SB), NOSPLIT|NOFRAME, $0
	CBZ R20, wrong

next:
	MOVD 56(R19), R22
	ARG(0, 8, R0)
	ARG(1, 16, R1)
	ARG(2, 24, R2)
	ARG(3, 32, R3)
	ARG(4, 40, R4)
	ARG(5, 48, R5)
	MOVD 0(R19), R8
	SVC
	MOVD 72(R19), R23
	CMN  $4095, R0
	BCS  failed
	TBZ  $0, R23, wrong
	MOVD 80(R19), R24
	CMN  $1, R24
	BEQ  keep
	CMP  R24, R0
	BNE  wrong

keep:
	MOVD 64(R19), R24
	CBZ  R24, advance
	MOVW R0, (R24)

advance:
	ADD  $96, R19
	SUB  $1, R20
	CBNZ R20, next
	B    wrong

failed:
	NEG  R0, R0
	CMP  $63, R0
	BHI  stop
	LSR  R0, R23, R24
	TBZ  $0, R24, stop
	MOVD 88(R19), R24
	SUB  R24, R20
	MOVD $96, R25
	MADD R25, R19, R24, R19
	B    advance

wrong:
	MOVD $0, R0

stop:
	MOVD R0, 8(R21)
	MOVD R19, 0(R21)
	MOVD 16(R21), R24
	CBNZ R24, return
	MOVD $125, R0
	MOVD $94, R8     // exit_group
	SVC
	BRK  $0

return:
	RET
