// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults of atomic read-modify-write instructions.
 *
 * If an LSE atomic of user space accesses a page that is not mapped, the CPU
 * reports a read. A stock kernel then maps the zero page, and the instruction
 * faults a second time, as a write. With ARM64_ATOMIC_RMW_WRITE_FAULT the
 * kernel handles the first fault as a write. Each case runs a program of a few
 * instructions in its own process. The case checks each fault that reaches the
 * core (its address, and whether it is a read or a write) and the mappings
 * afterwards. The expected faults depend on the option.
 *
 * An emulator with more than one CPU reports the first fault as a write. Then
 * there is nothing to test, and the suite skips itself. Not covered: compat
 * tasks; text that cannot be read (no emulated CPU here has EPAN).
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	atomic_rmw_fault
 */

#include <kunit/test.h>
#include <linux/mman.h>
#include <linux/uaccess.h>
#include <asm/atomic_rmw.h>
#include <asm/esr.h>

#include "atomic_rmw_run.h"

/* Pages of a run: more than any batch has. */
#define RMW_PAGES	18

#define RMW_LDR		0xf9400006	/* ldr x6, [x0] */
#define RMW_LDXR	0xc85f7c06	/* ldxr x6, [x0] */
#define RMW_STXR	0xc8077c06	/* stxr w7, x6, [x0] */
#define RMW_MOV_1	0xd2800024	/* mov x4, 1 */
#define RMW_CAS		0xc8a47c06	/* cas x4, x6, [x0] */
#define RMW_CAS_0	0xc8bf7c06	/* cas xzr, x6, [x0] */

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

/* Whether fault @i was at @addr and was a write or a read, as expected. */
static bool rmw_fault_is(struct user_run *run, unsigned int i,
			 unsigned long addr, bool write)
{
	return i < run->nr && run->fault[i].addr == addr &&
	       !!(run->fault[i].flags & FAULT_FLAG_WRITE) == write;
}

/* Classes of instructions. */
enum rmw_access {
	RMW_ATOMIC,
	RMW_LOAD,
	RMW_STORE,
};

/*
 * The sizes and orderings of one instruction differ only in the bits of its
 * mask.
 */
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

/* The next larger number that has only bits of @mask. */
static u32 rmw_vary(u32 bits, u32 mask)
{
	return ((bits | ~mask) + 1) & mask;
}

/* The registers of an instruction. In ordered loads Rs is 31. */
static u32 rmw_registers(const struct rmw_op *op)
{
	u32 registers = RMW_RN << 5 | RMW_RT;

	return op->access == RMW_ATOMIC ? registers | RMW_RS << 16 : registers;
}

/*
 * Check the faults on fresh pages. Afterwards the pages are private, except if
 * the instruction only reads.
 */
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
 * On fresh anonymous memory an atomic needs two faults for each page, a read
 * and a write. With the option it needs one fault, a write. Afterwards no zero
 * page is mapped. Loads and stores with similar encodings fault once, as a load
 * or a store, with and without the option. The case tries all sizes and
 * orderings of each instruction.
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
		forms++;
		vary = rmw_vary(vary, op->vary);
	} while (vary);
	PGTABLE_KUNIT_DID(test, forms, "forms of the instruction");
}

/*
 * Run the instruction on one page, and expect that the program ends with a
 * signal after @faults faults.
 */
static struct user_run *rmw_run_to_signal(struct kunit *test, unsigned long prot,
					  unsigned int faults)
{
	struct rmw_fixture *f = test->priv;
	struct user_run *run = f->run;

	f->prot = prot;
	rmw_run(test, RMW_LDADD, PAGE_SIZE, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, run->status & 0x7f, SIGSEGV);
	KUNIT_EXPECT_EQ(test, run->min_flt, faults);
	KUNIT_EXPECT_EQ(test, run->nr, faults);
	return run;
}

/*
 * In read-only memory an atomic first causes a read fault, which succeeds, and
 * then a write fault, which fails. The signal and its syndrome are the same
 * with and without the option, and the syndrome says write.
 */
static void read_only_signal(struct kunit *test)
{
	struct user_run *run = rmw_run_to_signal(test, PROT_READ, 1);

	KUNIT_EXPECT_TRUE(test, rmw_fault_is(run, 0, run->addr, false));
	KUNIT_EXPECT_EQ(test, run->fault_addr, run->addr);
	KUNIT_EXPECT_EQ(test, run->si_code, SEGV_ACCERR);
	KUNIT_EXPECT_TRUE(test, run->esr & ESR_ELx_WNR);
	KUNIT_EXPECT_EQ(test, run->esr & ESR_ELx_FSC_TYPE, ESR_ELx_FSC_PERM);
}

/*
 * In memory without access rights, no fault is handled, and the signal reports
 * a forbidden read.
 */
static void no_access_signal(struct kunit *test)
{
	struct user_run *run = rmw_run_to_signal(test, PROT_NONE, 0);

	KUNIT_EXPECT_EQ(test, run->si_code, SEGV_ACCERR);
	KUNIT_EXPECT_FALSE(test, run->esr & ESR_ELx_WNR);
}

/* At an address without a mapping, no fault is handled. */
static int rmw_prepare_behind(struct user_run *run)
{
	int err = rmw_prepare(run);

	if (!err)
		err = vm_munmap(run->addr, PAGE_SIZE);
	return err;
}

static void unmapped_signal(struct kunit *test)
{
	struct rmw_fixture *f = test->priv;
	struct user_run *run;

	f->run->prepare = rmw_prepare_behind;
	run = rmw_run_to_signal(test, PROT_READ | PROT_WRITE, 0);
	KUNIT_EXPECT_EQ(test, run->fault_addr, run->addr);
	KUNIT_EXPECT_FALSE(test, run->esr & ESR_ELx_WNR);
	KUNIT_EXPECT_EQ(test, run->si_code, SEGV_MAPERR);
	KUNIT_EXPECT_TRUE(test, esr_fsc_is_translation_fault(run->esr));
}

/*
 * The program accesses 64 MiB page by page, like the first accesses of a
 * garbage collector. With the option there are exactly half as many faults as
 * without it.
 */
static void anonymous_64m_halves_faults(struct kunit *test)
{
	const unsigned int pages = SZ_64M / PAGE_SIZE;

	pgtable_kunit_thp_set(test, 0, true);
	rmw_run(test, RMW_LDADD, SZ_64M, PAGE_SIZE);
	rmw_expect(test, RMW_FORCED ? 0 : pages, pages);
}

/* Memory with PROT_WRITE alone can be read too. */
static void write_only_faults(struct kunit *test)
{
	struct rmw_fixture *f = test->priv;

	f->prot = PROT_WRITE;
	rmw_run(test, RMW_LDADD, RMW_PAGES * PAGE_SIZE, PAGE_SIZE);
	rmw_expect(test, RMW_FORCED ? 0 : RMW_PAGES, RMW_PAGES);
}

/*
 * The number of anonymous pages of the address space before the program runs.
 */
static int rmw_prepare_counted(struct user_run *run)
{
	struct rmw_fixture *f = run->data;
	int err = rmw_prepare(run);

	*(unsigned long *)f->data = get_mm_counter_sum(current->mm, MM_ANONPAGES);
	return err;
}

/*
 * An atomic adds each page to the process's count of anonymous pages once. A
 * load maps the zero page and adds no page. If a store follows this load, it
 * copies the zero page, and the copy counts. An exclusive pair causes this load
 * and this store on every kernel, and an atomic causes them without the option.
 * The case sums the counter over all CPUs, since each CPU may keep changes of
 * more than 18 pages to itself.
 */
static void anonymous_pages_counted(struct kunit *test)
{
	struct rmw_fixture *f = test->priv;
	unsigned long before, counted;

	f->run->prepare = rmw_prepare_counted;
	f->data = &before;

	rmw_run(test, RMW_LDR, RMW_PAGES * PAGE_SIZE, PAGE_SIZE);
	rmw_expect(test, RMW_PAGES, 0);
	KUNIT_EXPECT_EQ(test, before,
			get_mm_counter_sum(f->run->mm, MM_ANONPAGES));

	rmw_run(test, RMW_LDADD, RMW_PAGES * PAGE_SIZE, PAGE_SIZE);
	rmw_expect(test, RMW_FORCED ? 0 : RMW_PAGES, RMW_PAGES);
	counted = get_mm_counter_sum(f->run->mm, MM_ANONPAGES) - before;
	KUNIT_EXPECT_EQ(test, counted, RMW_PAGES);
	PGTABLE_KUNIT_DID(test, counted, "pages counted after an atomic");

	rmw_run_pair(test, RMW_LDXR, RMW_STXR, RMW_PAGES * PAGE_SIZE, PAGE_SIZE);
	rmw_expect(test, RMW_PAGES, RMW_PAGES);
	KUNIT_EXPECT_EQ(test, RMW_PAGES,
			get_mm_counter_sum(f->run->mm, MM_ANONPAGES) - before);
}

/*
 * The word that CAS would write, and the first word of pages that have content
 * before the run. Each page has its own word, and each run has new words.
 * Otherwise, if the kernel did not fill a copy, its memory could still contain
 * the right word from an earlier run.
 */
#define RMW_NEW		0x600dULL
static u64 rmw_old = 0x01d0000;

static int rmw_prepare_cas(struct user_run *run)
{
	int err = rmw_prepare(run);

	run->regs[6] = RMW_NEW;
	return err;
}

static int rmw_prepare_cas_old(struct user_run *run)
{
	unsigned long at;
	int err = rmw_prepare_cas(run);

	rmw_old += RMW_PAGES;
	for (at = run->addr; !err && at < run->addr + run->size; at += PAGE_SIZE)
		err = put_user(rmw_old + (at - run->addr) / PAGE_SIZE,
			       (u64 __user *)at);
	return err;
}

/*
 * Returns how many pages begin with the right word: @value on the first page,
 * and @step more on each following page.
 */
static unsigned int rmw_words(struct user_run *run, u64 value, u64 step)
{
	unsigned int i, found = 0;
	u64 word;

	for (i = 0; i < RMW_PAGES; i++) {
		if (access_remote_vm(run->mm, run->addr + i * PAGE_SIZE, &word,
				     sizeof(word), FOLL_FORCE) == sizeof(word))
			found += word == value + i * step;
	}
	return found;
}

/*
 * If the comparison of a CAS fails, the CAS writes nothing, but the kernel
 * handles its fault as a write. Fresh memory stays 0. Pages that a child shares
 * are copied, and the copies have the same words. The emulator stores the old
 * word again, so such a CAS faults like a CAS that writes. A real CPU may
 * behave differently. As a control, if the comparison succeeds, the CAS changes
 * all words.
 */
static void cas_fails(struct kunit *test)
{
	struct rmw_fixture *f = test->priv;

	f->run->prepare = rmw_prepare_cas;
	rmw_run_pair(test, RMW_MOV_1, RMW_CAS, RMW_PAGES * PAGE_SIZE, PAGE_SIZE);
	rmw_expect(test, RMW_FORCED ? 0 : RMW_PAGES, RMW_PAGES);
	KUNIT_EXPECT_EQ(test, rmw_words(f->run, 0, 0), RMW_PAGES);

	rmw_run(test, RMW_CAS_0, RMW_PAGES * PAGE_SIZE, PAGE_SIZE);
	rmw_expect(test, RMW_FORCED ? 0 : RMW_PAGES, RMW_PAGES);
	PGTABLE_KUNIT_DID(test, rmw_words(f->run, RMW_NEW, 0),
			  "words changed by a CAS that succeeds");
	KUNIT_EXPECT_EQ(test, rmw_words(f->run, RMW_NEW, 0), RMW_PAGES);

	f->run->prepare = rmw_prepare_cas_old;
	rmw_run_forked(test, RMW_CAS_0, RMW_PAGES * PAGE_SIZE, PAGE_SIZE);
	rmw_expect(test, 0, RMW_PAGES);
	KUNIT_EXPECT_EQ(test, rmw_words(f->run, rmw_old, 1), RMW_PAGES);
}

/* If all pages are mapped already, there is no fault. */
static void populated_no_faults(struct kunit *test)
{
	struct rmw_fixture *f = test->priv;

	f->flags |= MAP_POPULATE;
	rmw_run(test, RMW_LDADD, RMW_PAGES * PAGE_SIZE, PAGE_SIZE);
	rmw_expect(test, 0, 0);
}

/*
 * After a fork all pages are mapped, but write-protected, since the child
 * shares them. Each page causes one write fault on any kernel.
 */
static void forked_memory_faults(struct kunit *test)
{
	struct rmw_fixture *f = test->priv;

	f->flags |= MAP_POPULATE;
	rmw_run_forked(test, RMW_LDADD, RMW_PAGES * PAGE_SIZE, PAGE_SIZE);
	rmw_expect(test, 0, RMW_PAGES);
}

/*
 * If the highest byte of an address is a tag, the faults have the address
 * without the tag.
 */
static int rmw_prepare_tagged(struct user_run *run)
{
	int err = rmw_prepare(run);

	run->regs[0] |= 0xa5UL << 56;
	return err;
}

static void tagged_address_faults(struct kunit *test)
{
	struct rmw_fixture *f = test->priv;
	unsigned int i;

	f->run->prepare = rmw_prepare_tagged;
	rmw_run(test, RMW_LDADD, RMW_PAGES * PAGE_SIZE, PAGE_SIZE);
	rmw_expect(test, RMW_FORCED ? 0 : RMW_PAGES, RMW_PAGES);
	for (i = 0; i < f->run->nr; i++)
		KUNIT_EXPECT_EQ(test, f->run->fault[i].addr & ~PAGE_MASK, 0);
}

/*
 * If memory grows down like a stack, the kernel handles a fault below its start
 * under the lock of the address space. The VMA has one page, and grows by one
 * page.
 */
static int rmw_prepare_stack(struct user_run *run)
{
	struct rmw_fixture *f = run->data;
	int err;

	f->flags |= MAP_GROWSDOWN;
	run->size = PAGE_SIZE;
	err = rmw_prepare(run);
	run->addr -= PAGE_SIZE;
	run->regs[0] = run->addr;
	return err;
}

static void stack_grows(struct kunit *test)
{
	struct rmw_fixture *f = test->priv;

	f->run->prepare = rmw_prepare_stack;
	rmw_run(test, RMW_LDADD, PAGE_SIZE, PAGE_SIZE);
	rmw_expect(test, RMW_FORCED ? 0 : 1, 1);
	KUNIT_EXPECT_FALSE(test, f->run->fault[0].vma_locked);
}

/*
 * Faults with and without a read of the instruction by the kernel, and the
 * resulting flags.
 */
static const struct rmw_decode {
	const char *desc;
	u32 insn;
	u64 pstate;
	unsigned int flags;
	unsigned long vm_flags;
	long pc;		/* relative to the instruction */
	bool write;
} rmw_decodes[] = {
	{ "atomic", RMW_LDADD, PSR_MODE_EL0t, FAULT_FLAG_USER, VM_WRITE, 0,
	  true },
	{ "load", 0xf9400006, PSR_MODE_EL0t, FAULT_FLAG_USER, VM_WRITE },
	{ "bytes swapped", 0x060024f8, PSR_MODE_EL0t, FAULT_FLAG_USER,
	  VM_WRITE },
	{ "read-only memory", RMW_LDADD, PSR_MODE_EL0t, FAULT_FLAG_USER,
	  VM_READ },
	{ "fetch of an instruction", RMW_LDADD, PSR_MODE_EL0t,
	  FAULT_FLAG_USER | FAULT_FLAG_INSTRUCTION, VM_WRITE },
	{ "kernel mode", RMW_LDADD, PSR_MODE_EL1h, 0, VM_WRITE },
	{ "kernel mode, flags of user mode", RMW_LDADD, PSR_MODE_EL1h,
	  FAULT_FLAG_USER, VM_WRITE },
	{ "user mode, flags of kernel mode", RMW_LDADD, PSR_MODE_EL0t, 0,
	  VM_WRITE },
	/* ldmlt r1!, {r0, r2} is an atomic if it is decoded as A64 */
	{ "compat task", 0xb8b10005, PSR_MODE32_BIT, FAULT_FLAG_USER,
	  VM_WRITE },
	{ "the same word as A64", 0xb8b10005, PSR_MODE_EL0t, FAULT_FLAG_USER,
	  VM_WRITE, 0, true },
	{ "text that is not mapped", RMW_LDADD, PSR_MODE_EL0t, FAULT_FLAG_USER,
	  VM_WRITE, 64 * PAGE_SIZE },
	{ "text that is not there yet", RMW_LDADD, PSR_MODE_EL0t,
	  FAULT_FLAG_USER, VM_WRITE, PAGE_SIZE },
};

KUNIT_ARRAY_PARAM_DESC(rmw_decode, rmw_decodes, desc);

/*
 * The kernel reads the instruction only if user space reads data in memory that
 * it could write to, and only in A64 code. If the text cannot be read without a
 * fault, the kernel gives up without an error, and enables page faults again.
 */
static void fault_flags_decoded(struct kunit *test)
{
	const struct rmw_decode *decode = test->param_value;
	unsigned long text, addr;
	struct vm_area_struct vma = {};
	struct pt_regs regs = {};
	unsigned int flags;

	if (!RMW_FORCED)
		kunit_skip(test, "needs CONFIG_ARM64_ATOMIC_RMW_WRITE_FAULT (FEATURES=atomic_rmw)");
	text = kunit_vm_mmap(test, NULL, 0, 2 * PAGE_SIZE,
			     PROT_READ | PROT_WRITE,
			     MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, text, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(text));
	/*
	 * The kernel does not read the same address twice in a row if the
	 * instruction there is not an atomic, so each case has its own address.
	 */
	addr = text + (decode - rmw_decodes) * sizeof(decode->insn);
	KUNIT_ASSERT_EQ(test, 0, put_user((__force u32)cpu_to_le32(decode->insn),
					  (u32 __user *)addr));
	vma.vm_mm = current->mm;
	vm_flags_init(&vma, decode->vm_flags);
	regs.pstate = decode->pstate;
	regs.pc = addr + decode->pc;

	flags = atomic_rmw_fault_flags(&vma, decode->flags, &regs);
	KUNIT_EXPECT_EQ(test, flags, decode->flags |
				     (decode->write ? FAULT_FLAG_WRITE : 0));
	KUNIT_EXPECT_FALSE(test, pagefault_disabled());
}

static struct kunit_case atomic_rmw_fault_cases[] = {
	KUNIT_CASE_PARAM(anonymous_faults, rmw_op_gen_params),
	KUNIT_CASE(anonymous_64m_halves_faults),
	KUNIT_CASE(write_only_faults),
	KUNIT_CASE(anonymous_pages_counted),
	KUNIT_CASE(cas_fails),
	KUNIT_CASE(populated_no_faults),
	KUNIT_CASE(forked_memory_faults),
	KUNIT_CASE(tagged_address_faults),
	KUNIT_CASE(stack_grows),
	KUNIT_CASE(read_only_signal),
	KUNIT_CASE(no_access_signal),
	KUNIT_CASE(unmapped_signal),
	KUNIT_CASE_PARAM(fault_flags_decoded, rmw_decode_gen_params),
	{}
};

static struct kunit_suite atomic_rmw_fault_suite = {
	.name = "atomic_rmw_fault",
	.suite_init = pgtable_kunit_suite_init,
	.init = rmw_init,
	.test_cases = atomic_rmw_fault_cases,
};

kunit_test_suite(atomic_rmw_fault_suite);

MODULE_DESCRIPTION("KUnit tests for page faults of atomic instructions");
MODULE_LICENSE("GPL");
