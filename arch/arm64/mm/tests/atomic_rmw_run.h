/* SPDX-License-Identifier: GPL-2.0 */
/* Programs that run atomic instructions. Several suites use them. */
#ifndef _ARM64_MM_TESTS_ATOMIC_RMW_RUN_H
#define _ARM64_MM_TESTS_ATOMIC_RMW_RUN_H

#include "pgtable_kunit.h"
#include "user_run.h"

/* Does the kernel handle the faults of atomics as writes? */
#define RMW_FORCED	IS_ENABLED(CONFIG_ARM64_ATOMIC_RMW_WRITE_FAULT)

/*
 * The arguments of the programs: X0 the address, X1 the step, X2 the number of
 * steps.
 */
#define RMW_RN		0
#define RMW_RS		4	/* and 5 */
#define RMW_RT		6	/* and 7 */

/* An atomic that adds nothing: ldadd x4, x6, [x0] */
#define RMW_LDADD	0xf8240006

/* The longest of the programs, in instructions. */
#define RMW_PROGRAM	27

/**
 * struct rmw_fixture - the program and the memory of a case
 * @run: the program
 * @code: its instructions
 * @prot: of the memory
 * @flags: of the memory, for mmap()
 * @file: the file that is mapped, or NULL
 * @data: for the suite
 */
struct rmw_fixture {
	struct user_run *run;
	u32 code[RMW_PROGRAM];
	unsigned long prot;
	unsigned long flags;
	struct file *file;
	void *data;
};

int rmw_init(struct kunit *test);
int rmw_prepare(struct user_run *run);
void rmw_run(struct kunit *test, u32 insn, unsigned long size,
	     unsigned long step);
void rmw_run_pair(struct kunit *test, u32 first, u32 second, unsigned long size,
		  unsigned long step);
void rmw_run_places(struct kunit *test, u32 insn, unsigned long size,
		    unsigned long step);
void rmw_run_forked(struct kunit *test, u32 insn, unsigned long size,
		    unsigned long step);
unsigned int rmw_count(struct user_run *run, bool write);
void rmw_expect(struct kunit *test, unsigned int reads, unsigned int writes);

#endif /* _ARM64_MM_TESTS_ATOMIC_RMW_RUN_H */
