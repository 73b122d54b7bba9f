#include "textflag.h"

// The machine makes a list of system calls. In a clone of the bot it shares the
// bot's memory and has no Go runtime, so it calls nothing and uses no stack: R12
// is the call, R13 how many are left, BX the fault.

// ARG takes argument n from its offset; bit n of R15 says that it is an address.
#define ARG(n, offset, register) \
	MOVQ    offset(R12), register \
	BTQ     $n, R15                \
	JCC     2(PC)                 \
	MOVLQSX (register), register

// func clone(flags, stack uintptr, first *call, count uintptr, f *fault) uintptr
TEXT ·clone(SB), NOSPLIT|NOFRAME, $0-48
	MOVQ  flags+0(FP), DI
	MOVQ  stack+8(FP), SI
	MOVQ  first+16(FP), R12
	MOVQ  count+24(FP), R13
	MOVQ  f+32(FP), BX
	XORL  DX, DX
	XORL  R10, R10
	XORL  R8, R8
	MOVL  $56, AX             // clone
	SYSCALL
	TESTQ AX, AX
	JEQ   child
	MOVQ  AX, ret+40(FP)
	RET

child:
	JMP machine<>(SB)

// func perform(first *call, count uintptr, f *fault)
TEXT ·perform(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ first+0(FP), R12
	MOVQ count+8(FP), R13
	MOVQ f+16(FP), BX
	JMP  machine<>(SB)

TEXT machine<>(SB), NOSPLIT|NOFRAME, $0
	TESTQ R13, R13
	JEQ   wrong

next:
	MOVQ 56(R12), R15
	ARG(0, 8, DI)
	ARG(1, 16, SI)
	ARG(2, 24, DX)
	ARG(3, 32, R10)
	ARG(4, 40, R8)
	ARG(5, 48, R9)
	MOVQ 0(R12), AX
	SYSCALL
	MOVQ 72(R12), CX
	CMPQ AX, $-4095
	JCC  failed
	BTQ  $0, CX
	JCC  wrong
	MOVQ 80(R12), DX
	CMPQ DX, $-1
	JEQ  keep
	CMPQ AX, DX
	JNE  wrong

keep:
	MOVQ  64(R12), DX
	TESTQ DX, DX
	JEQ   advance
	MOVL  AX, (DX)

advance:
	ADDQ $96, R12
	DECQ R13
	JNE  next
	JMP  wrong

failed:
	NEGQ  AX
	CMPQ  AX, $63
	JHI   stop
	BTQ   AX, CX
	JCC   stop
	MOVQ  88(R12), DX
	SUBQ  DX, R13
	IMULQ $96, DX
	ADDQ  DX, R12
	JMP   advance

wrong:
	XORL AX, AX

stop:
	MOVQ AX, 8(BX)
	MOVQ R12, 0(BX)
	CMPQ 16(BX), $0
	JNE  return
	MOVL $125, DI
	MOVL $231, AX  // exit_group
	SYSCALL
	INT  $3

return:
	RET
