// SPDX-License-Identifier: GPL-2.0
/* Programs that run atomic instructions on their own memory. */

#include <linux/mm.h>
#include <linux/mman.h>

#include "atomic_rmw_run.h"

/* op [x0]; x0 += x1; until x2 is 0; exit_group(0) */
static const u32 rmw_program[] = {
	0,
	0x8b010000,	/* add	x0, x0, x1 */
	0xf1000442,	/* subs	x2, x2, 1 */
	0x54ffffa1,	/* b.ne	-12 */
	0xd2800000,	/* mov	x0, 0 */
	0xd2800bc8,	/* mov	x8, 94 */
	0xd4000001,	/* svc	0 */
};

/*
 * The program with an exclusive load and store. The pair is repeated until the
 * status of the store, W7, is 0: an interrupt between the two makes the store
 * fail without an access to memory.
 */
static const u32 rmw_program_pair[] = {
	0,
	0,
	0x35ffffc7,	/* cbnz	w7, -8 */
	0x8b010000,	/* add	x0, x0, x1 */
	0xf1000442,	/* subs	x2, x2, 1 */
	0x54ffff61,	/* b.ne	-20 */
	0xd2800000,	/* mov	x0, 0 */
	0xd2800bc8,	/* mov	x8, 94 */
	0xd4000001,	/* svc	0 */
};

/* The program with the instruction at two places, which run alternately. */
static const u32 rmw_program_places[] = {
	0,
	0x8b010000,	/* add	x0, x0, x1 */
	0,
	0x8b010000,	/* add	x0, x0, x1 */
	0xf1000842,	/* subs	x2, x2, 2 */
	0x54ffff61,	/* b.ne	-20 */
	0xd2800000,	/* mov	x0, 0 */
	0xd2800bc8,	/* mov	x8, 94 */
	0xd4000001,	/* svc	0 */
};

/*
 * fork(); in the parent the program, then wait4(-1, NULL, 0, NULL);
 * exit_group(0)
 */
static const u32 rmw_program_forked[RMW_PROGRAM] = {
	0xaa0003f3,	/* mov	x19, x0 */
	0xaa0103f4,	/* mov	x20, x1 */
	0xaa0203f5,	/* mov	x21, x2 */
	0xd2800220,	/* mov	x0, 17 */
	0xd2800001,	/* mov	x1, 0 */
	0xd2800002,	/* mov	x2, 0 */
	0xd2800003,	/* mov	x3, 0 */
	0xd2800004,	/* mov	x4, 0 */
	0xd2801b88,	/* mov	x8, 220 */
	0xd4000001,	/* svc	0 */
	0xb40001c0,	/* cbz	x0, 56 */
	0xaa1303e0,	/* mov	x0, x19 */
	0xaa1403e1,	/* mov	x1, x20 */
	0xaa1503e2,	/* mov	x2, x21 */
	0,
	0x8b010000,	/* add	x0, x0, x1 */
	0xf1000442,	/* subs	x2, x2, 1 */
	0x54ffffa1,	/* b.ne	-12 */
	0x92800000,	/* mov	x0, -1 */
	0xd2800001,	/* mov	x1, 0 */
	0xd2800002,	/* mov	x2, 0 */
	0xd2800003,	/* mov	x3, 0 */
	0xd2802088,	/* mov	x8, 260 */
	0xd4000001,	/* svc	0 */
	0xd2800000,	/* mov	x0, 0 */
	0xd2800bc8,	/* mov	x8, 94 */
	0xd4000001,	/* svc	0 */
};

/**
 * rmw_prepare() - map memory of the fixture and point X0 at it
 * @run: the program; this is called in its process
 *
 * Return: 0 or -errno.
 */
int rmw_prepare(struct user_run *run)
{
	struct rmw_fixture *f = run->data;
	unsigned long addr;

	/* Aligned for huge pages. */
	addr = vm_mmap(f->file, ALIGN(TASK_SIZE / 4, PMD_SIZE), run->size,
		       f->prot, f->flags | MAP_FIXED, 0);
	if (IS_ERR_VALUE(addr))
		return addr;
	run->addr = addr;
	run->regs[0] = addr;
	return 0;
}

static void rmw_run_program(struct kunit *test, const u32 *program,
			    unsigned int nr, const u32 *insn,
			    unsigned long size, unsigned long step)
{
	struct rmw_fixture *f = test->priv;
	struct user_run *run = f->run;
	unsigned int i;

	/* The instructions replace the placeholders in the program. */
	for (i = 0; i < nr; i++)
		f->code[i] = program[i] ?: *insn++;
	run->nr_code = nr;
	memset(run->regs, 0, sizeof(run->regs));
	run->regs[1] = step;
	run->regs[2] = size / step;
	run->size = size;
	user_run(test, run);
}

/**
 * rmw_run() - run an instruction on memory
 * @test: the test
 * @insn: the instruction
 * @size: of the memory, in bytes
 * @step: from one address to the next
 */
void rmw_run(struct kunit *test, u32 insn, unsigned long size,
	     unsigned long step)
{
	rmw_run_program(test, rmw_program, ARRAY_SIZE(rmw_program), &insn, size,
			step);
}

/**
 * rmw_run_pair() - run an exclusive load and store on memory
 * @test: the test
 * @first: the load
 * @second: the store to the same address, with W7 for its status
 * @size: of the memory, in bytes
 * @step: from one address to the next
 */
void rmw_run_pair(struct kunit *test, u32 first, u32 second, unsigned long size,
		  unsigned long step)
{
	const u32 insns[] = { first, second };

	rmw_run_program(test, rmw_program_pair, ARRAY_SIZE(rmw_program_pair),
			insns, size, step);
}

/**
 * rmw_run_places() - run an instruction on memory, from two addresses of the
 *	program in turn
 * @test: the test
 * @insn: the instruction
 * @size: of the memory, in bytes: an even number of steps
 * @step: from one address to the next
 */
void rmw_run_places(struct kunit *test, u32 insn, unsigned long size,
		    unsigned long step)
{
	const u32 insns[] = { insn, insn };

	rmw_run_program(test, rmw_program_places,
			ARRAY_SIZE(rmw_program_places), insns, size, step);
}

/**
 * rmw_run_forked() - run an instruction in a process that has just forked
 * @test: the test
 * @insn: the instruction
 * @size: of the memory, in bytes
 * @step: from one address to the next
 *
 * The child ends at once.
 */
void rmw_run_forked(struct kunit *test, u32 insn, unsigned long size,
		    unsigned long step)
{
	rmw_run_program(test, rmw_program_forked,
			ARRAY_SIZE(rmw_program_forked), &insn, size, step);
}

/**
 * rmw_count() - the faults of a run by kind
 * @run: the program
 * @write: count writes; otherwise reads
 *
 * Return: how many of the recorded faults are of that kind.
 */
unsigned int rmw_count(struct user_run *run, bool write)
{
	unsigned int i, n = 0;

	for (i = 0; i < min(run->nr, USER_FAULTS); i++)
		n += !!(run->fault[i].flags & FAULT_FLAG_WRITE) == write;
	return n;
}

/**
 * rmw_expect() - expect that a run ended well, with these faults
 * @test: the test
 * @reads: faults that were reads
 * @writes: faults that were writes
 */
void rmw_expect(struct kunit *test, unsigned int reads, unsigned int writes)
{
	struct rmw_fixture *f = test->priv;
	struct user_run *run = f->run;

	KUNIT_EXPECT_EQ(test, run->status, 0);
	KUNIT_EXPECT_EQ(test, run->nr, reads + writes);
	KUNIT_EXPECT_EQ(test, run->min_flt, reads + writes);
	if (run->nr > USER_FAULTS)
		return;
	KUNIT_EXPECT_EQ(test, rmw_count(run, false), reads);
	KUNIT_EXPECT_EQ(test, rmw_count(run, true), writes);
}

/**
 * rmw_init() - begin a case with anonymous memory, readable and writable
 * @test: the test
 *
 * Return: 0 or -errno.
 */
int rmw_init(struct kunit *test)
{
	int err = pgtable_kunit_init(test);
	struct rmw_fixture *f;

	if (err)
		return err;
	f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f);
	test->priv = f;
	if (num_online_cpus() > 1)
		kunit_skip(test, "an emulator with more than one CPU reports atomics as writes");
	f->run = user_run_alloc(test);
	f->run->code = f->code;
	f->run->prepare = rmw_prepare;
	f->run->data = f;
	f->flags = MAP_PRIVATE | MAP_ANONYMOUS;
	f->prot = PROT_READ | PROT_WRITE;
	return 0;
}
