/* SPDX-License-Identifier: GPL-2.0 */
/* Start, a switch to EL0 and back, and the end. The program runs at EL1, at its physical address. */
#include "bare.h"

	.section .text.start, "ax"
	.globl	start
start:
	adrp	x0, stack_end
	mov	sp, x0
	adrp	x0, vectors
	msr	vbar_el1, x0
	isb
	bl	main
power_off:
	mov	w0, #0x0008
	movk	w0, #0x8400, lsl #16	/* PSCI SYSTEM_OFF */
	hvc	#0
	b	.

	/* run_el0(): execute one SVC at EL0 */
	.globl	run_el0
run_el0:
	stp	x29, x30, [sp, #-16]!
	mov	x0, #EL0
	msr	elr_el1, x0
	msr	spsr_el1, xzr
	isb
	eret

	.balign	1 << PAGE_SHIFT
	.globl	user_code
user_code:
	svc	#0

	.balign	4096
vectors:
	.fill	0x200 / 4, 4, 0x14000000	/* exceptions of SP_EL0: hang */
	b	power_off			/* an unexpected exception ends the run before the other cases */
	.balign	0x80
	b	power_off
	.balign	0x80
	b	power_off
	.balign	0x80
	b	power_off
	.balign	0x80
	ldp	x29, x30, [sp], #16		/* from EL0: return from run_el0() */
	ret
	.balign	0x800

	.section .bss
	.balign	4096
	.space	16384
stack_end:
