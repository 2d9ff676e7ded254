// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults of atomic read-modify-write instructions.
 *
 * An LSE atomic of user space on a page that is not mapped is reported as a
 * read. By itself, the kernel maps the zero page then, and the instruction
 * faults a second time, as a write. With ARM64_ATOMIC_RMW_WRITE_FAULT it is
 * handled as a write at once. Each case runs a program of a few instructions in
 * a process of its own, and compares each fault that reaches the core (address,
 * read or write) and what is mapped afterwards with what is expected, with the
 * option and without.
 *
 * An emulator with more than one CPU reports such a fault as a write, which
 * leaves nothing to test; the suite then skips. Not covered: compat tasks,
 * text that cannot be read (no CPU that is emulated here has EPAN).
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	atomic_rmw_fault
 */

#include <kunit/test.h>
#include <linux/mman.h>
#include <linux/shmem_fs.h>
#include <asm/esr.h>

#include "pgtable_kunit.h"
#include "user_run.h"

#define RMW_FORCED	IS_ENABLED(CONFIG_ARM64_ATOMIC_RMW_WRITE_FAULT)

/* Pages of a run: more than a batch of anything. */
#define RMW_PAGES	18

/* What the programs use: X0 the address, X1 the step, X2 the number of steps. */
#define RMW_RN		0
#define RMW_RS		4	/* and 5 */
#define RMW_RT		6	/* and 7 */

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

/**
 * struct rmw_fixture - what a case works on
 * @run: the program
 * @code: its instructions
 * @prot: of the memory
 * @flags: of the memory, for mmap()
 * @file: that is mapped, or NULL
 * @align: of the memory
 */
struct rmw_fixture {
	struct user_run *run;
	u32 code[ARRAY_SIZE(rmw_program)];
	unsigned long prot;
	unsigned long flags;
	struct file *file;
	unsigned long align;
};

/* In the process: map memory, aligned as asked for, and point X0 at it. */
static int rmw_prepare(struct user_run *run)
{
	struct rmw_fixture *f = run->data;
	unsigned long addr = ALIGN(TASK_SIZE / 4, f->align);

	addr = vm_mmap(f->file, addr, run->size, f->prot,
		       f->flags | MAP_FIXED, 0);
	if (IS_ERR_VALUE(addr))
		return addr;
	run->addr = addr;
	run->regs[0] = addr;
	return 0;
}

/* Let an instruction loose on memory, in steps from its begin to its end. */
static void rmw_run(struct kunit *test, u32 insn, unsigned long size,
		    unsigned long step)
{
	struct rmw_fixture *f = test->priv;
	struct user_run *run = f->run;

	memcpy(f->code, rmw_program, sizeof(f->code));
	f->code[0] = insn;
	memset(run->regs, 0, sizeof(run->regs));
	run->regs[1] = step;
	run->regs[2] = size / step;
	run->size = size;
	user_run(test, run);
}

/* The entry for an address, after the run. */
static pte_t rmw_pte(struct user_run *run, unsigned long addr)
{
	pmd_t *pmd = pmd_off(run->mm, addr);
	pte_t *ptep, pte = __pte(0);

	mmap_read_lock(run->mm);
	ptep = pte_offset_map(pmd, addr);
	if (ptep) {
		pte = ptep_get(ptep);
		pte_unmap(ptep);
	}
	mmap_read_unlock(run->mm);
	return pte;
}

/* Is fault @i one at @addr, and a write or not? */
static bool rmw_fault_is(struct user_run *run, unsigned int i,
			 unsigned long addr, bool write)
{
	return i < run->nr && run->fault[i].addr == addr &&
	       !!(run->fault[i].flags & FAULT_FLAG_WRITE) == write;
}

/* An atomic that adds nothing: ldadd x4, x6, [x0] */
#define RMW_LDADD	0xf8240006

/* Classes of instructions. */
enum rmw_access {
	RMW_ATOMIC,
	RMW_LOAD,
	RMW_STORE,
};

/* All sizes and orderings of an instruction differ in some of their bits. */
static const struct rmw_op {
	const char *desc;
	enum rmw_access access;
	u32 insn;
	u32 vary;
} rmw_ops[] = {
	{ "ldadd", RMW_ATOMIC, 0x38200000, 0xc0c00000 },
	{ "ldclr", RMW_ATOMIC, 0x38201000, 0xc0c00000 },
	{ "ldeor", RMW_ATOMIC, 0x38202000, 0xc0c00000 },
	{ "ldset", RMW_ATOMIC, 0x38203000, 0xc0c00000 },
	{ "ldsmax", RMW_ATOMIC, 0x38204000, 0xc0c00000 },
	{ "ldsmin", RMW_ATOMIC, 0x38205000, 0xc0c00000 },
	{ "ldumax", RMW_ATOMIC, 0x38206000, 0xc0c00000 },
	{ "ldumin", RMW_ATOMIC, 0x38207000, 0xc0c00000 },
	{ "swp", RMW_ATOMIC, 0x38208000, 0xc0c00000 },
	{ "cas", RMW_ATOMIC, 0x08a07c00, 0xc0408000 },
	{ "casp", RMW_ATOMIC, 0x08207c00, 0x40408000 },
	{ "ldapr", RMW_LOAD, 0x38bfc000, 0xc0000000 },
	{ "ldar", RMW_LOAD, 0x08dffc00, 0xc0000000 },
	{ "ldr", RMW_LOAD, 0x39400000, 0xc0000000 },
	{ "ldr of simd registers", RMW_LOAD, 0x3d400000, 0xc0000000 },
	{ "ldxr", RMW_LOAD, 0x085f7c00, 0xc0008000 },
	{ "str", RMW_STORE, 0x39000000, 0xc0000000 },
	{ "stlr", RMW_STORE, 0x089ffc00, 0xc0000000 },
};

KUNIT_ARRAY_PARAM_DESC(rmw_op, rmw_ops, desc);

/* The next number that has no bits but those of @mask. */
static u32 rmw_vary(u32 bits, u32 mask)
{
	return ((bits | ~mask) + 1) & mask;
}

/* The registers of an instruction: loads that are ordered have 31 for Rs. */
static u32 rmw_registers(const struct rmw_op *op)
{
	u32 registers = RMW_RN << 5 | RMW_RT;

	return op->access == RMW_ATOMIC ? registers | RMW_RS << 16 : registers;
}

/* The faults on fresh pages, and private pages afterwards unless it only reads. */
static bool rmw_pages_ok(struct kunit *test, const struct rmw_op *op, u32 insn)
{
	bool twice = op->access == RMW_ATOMIC && !RMW_FORCED;
	struct rmw_fixture *f = test->priv;
	struct user_run *run = f->run;
	unsigned int i, n = 0;

	for (i = 0; i < RMW_PAGES; i++) {
		unsigned long addr = run->addr + i * PAGE_SIZE;
		pte_t pte = rmw_pte(run, addr);
		bool zero = is_zero_pfn(pte_pfn(pte));
		bool ok = true;

		if (twice)
			ok = rmw_fault_is(run, n++, addr, false);
		ok &= rmw_fault_is(run, n++, addr, op->access != RMW_LOAD);
		ok &= pte_present(pte) && zero == (op->access == RMW_LOAD) &&
		      !pte_write(pte) == zero;
		if (ok)
			continue;
		KUNIT_FAIL(test, "%08x on page %u: %u faults in all, entry %016llx",
			   insn, i, run->nr, pte_val(pte));
		return false;
	}
	KUNIT_EXPECT_EQ_MSG(test, run->nr, n, "%08x", insn);
	KUNIT_EXPECT_EQ_MSG(test, run->min_flt, n, "%08x", insn);
	return run->nr == n && run->min_flt == n;
}

/*
 * On fresh anonymous memory each page costs an atomic two faults, a read and a
 * write, or one write if that is forced; no zero page is left [atomics 1-10,
 * 28]. Loads and stores next to them in the encoding fault once, as what they
 * are, whatever the option. All sizes and orderings; the first fault of a VMA
 * is handled under the lock of the address space, the others under its own.
 */
static void anonymous_faults(struct kunit *test)
{
	const struct rmw_op *op = test->param_value;
	struct rmw_fixture *f = test->priv;
	unsigned int forms = 0;
	u32 vary = 0;

	do {
		u32 insn = op->insn | vary | rmw_registers(op);

		rmw_run(test, insn, RMW_PAGES * PAGE_SIZE, PAGE_SIZE);
		KUNIT_ASSERT_EQ_MSG(test, f->run->status, 0, "%08x", insn);
		if (!rmw_pages_ok(test, op, insn))
			return;
		/* Without an anon_vma, and with it. */
		KUNIT_EXPECT_FALSE(test, f->run->fault[f->run->nr - 1].flags &
					 FAULT_FLAG_VMA_LOCK &&
					 !IS_ENABLED(CONFIG_PER_VMA_LOCK));
		forms++;
		vary = rmw_vary(vary, op->vary);
	} while (vary);
	kunit_info(test, "%u forms, %u pages each\n", forms, RMW_PAGES);
}

/*
 * Memory that may not be written: the atomic is a read first, which succeeds,
 * and a write that does not [atomics 15, 31]. The signal and its syndrome are
 * the same whether writes are forced or not.
 */
static void read_only_signal(struct kunit *test)
{
	struct rmw_fixture *f = test->priv;
	struct user_run *run = f->run;

	f->prot = PROT_READ;
	rmw_run(test, RMW_LDADD, PAGE_SIZE, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, run->status & 0x7f, SIGSEGV);
	KUNIT_EXPECT_EQ(test, run->min_flt, 1);
	KUNIT_EXPECT_EQ(test, run->nr, 1);
	KUNIT_EXPECT_TRUE(test, rmw_fault_is(run, 0, run->addr, false));
	KUNIT_EXPECT_EQ(test, run->fault_addr, run->addr);
	KUNIT_EXPECT_TRUE(test, run->esr & ESR_ELx_WNR);
	KUNIT_EXPECT_EQ(test, run->esr & ESR_ELx_FSC_TYPE, ESR_ELx_FSC_PERM);
}

/* No access at all: no fault is handled, and the signal is for a read. [atomics 16, 32] */
static void no_access_signal(struct kunit *test)
{
	struct rmw_fixture *f = test->priv;
	struct user_run *run = f->run;

	f->prot = PROT_NONE;
	rmw_run(test, RMW_LDADD, PAGE_SIZE, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, run->status & 0x7f, SIGSEGV);
	KUNIT_EXPECT_EQ(test, run->min_flt, 0);
	KUNIT_EXPECT_EQ(test, run->nr, 0);
	KUNIT_EXPECT_FALSE(test, run->esr & ESR_ELx_WNR);
}

static struct kunit_suite atomic_rmw_fault_suite;

static int atomic_rmw_fault_init(struct kunit *test)
{
	int err = pgtable_kunit_case_init(test, &atomic_rmw_fault_suite);
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
	f->run->nr_code = ARRAY_SIZE(f->code);
	f->run->prepare = rmw_prepare;
	f->run->data = f;
	f->flags = MAP_PRIVATE | MAP_ANONYMOUS;
	f->prot = PROT_READ | PROT_WRITE;
	f->align = PMD_SIZE;
	return 0;
}

static struct kunit_case atomic_rmw_fault_cases[] = {
	KUNIT_CASE_PARAM(anonymous_faults, rmw_op_gen_params),
	KUNIT_CASE(read_only_signal),
	KUNIT_CASE(no_access_signal),
	{}
};

static struct kunit_suite atomic_rmw_fault_suite = {
	.name = "atomic_rmw_fault",
	.init = atomic_rmw_fault_init,
	.test_cases = atomic_rmw_fault_cases,
};

kunit_test_suite(atomic_rmw_fault_suite);

MODULE_DESCRIPTION("KUnit tests for page faults of atomic instructions");
MODULE_LICENSE("GPL");
