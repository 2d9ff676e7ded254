// SPDX-License-Identifier: GPL-2.0
/*
 * How many faults it costs to populate memory with atomic instructions.
 *
 * Proves: a store faults once per page or folio, and a load once per zero page.
 * An LSE atomic on missing memory faults twice, as a read and then as a write,
 * unless the kernel decodes the instruction
 * (CONFIG_ARM64_ATOMIC_RMW_WRITE_FAULT); then it faults once. A pair of
 * exclusives faults twice on arm64. On other architectures an atomic faults
 * once. The value is right in each case.
 *
 * Does not prove: which instructions count as atomics (KUnit: atomic_rmw_insn,
 * atomic_rmw_fault). With two emulated CPUs QEMU turns all of them into writes,
 * and the program skips its cases.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=atomic_fault
 */
#include <sys/auxv.h>

#include "folio_util.h"

/* A case uses at least this much memory. */
#define MIB 0x100000UL

FIXTURE(atomic_fault)
{
	unsigned int pages;	/* pages that one fault brings */
	bool twice;		/* whether an atomic faults twice */
	bool large;
};

FIXTURE_VARIANT(atomic_fault)
{
	enum { SINGLE, BLOCK, PMD } size;
};

FIXTURE_VARIANT_ADD(atomic_fault, single_pages)
{
	.size = SINGLE,
};

FIXTURE_VARIANT_ADD(atomic_fault, block)
{
	.size = BLOCK,
};

FIXTURE_VARIANT_ADD(atomic_fault, pmd)
{
	.size = PMD,
};

static void do_load(unsigned long *at)
{
	read_byte((char *)at);
}

static void do_store(unsigned long *at)
{
	*at = 1;
	asm volatile("" : : : "memory");
}

static void do_atomic(unsigned long *at)
{
#ifdef __aarch64__
	unsigned long one = 1, old;

	asm volatile(".arch_extension lse\n\tldadd %1, %0, %2"
		     : "=r" (old), "+r" (one), "+Q" (*at));
#else
	__atomic_fetch_add(at, 1, __ATOMIC_RELAXED);
#endif
}

static void do_exclusive(unsigned long *at)
{
#ifdef __aarch64__
	unsigned long value;
	unsigned int failed;

	do {
		asm volatile("ldxr %0, %2\n\tadd %0, %0, #1\n\tstxr %w1, %0, %2"
			     : "=&r" (value), "=&r" (failed), "+Q" (*at) : : "memory");
	} while (failed);
#else
	__atomic_fetch_add(at, 1, __ATOMIC_RELAXED);
#endif
}

#ifndef __aarch64__
static bool emulated(void)
{
	char line[256];
	bool found = false;
	FILE *f = fopen("/proc/cpuinfo", "r");

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, "QEMU TCG") || strstr(line, "QEMU Virtual");
	if (f)
		fclose(f);
	return found;
}
#endif

static void *aligned(size_t size, char **room)
{
	*room = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return *room == MAP_FAILED ? NULL :
	       (void *)(((unsigned long)*room + size - 1) & -size);
}

FIXTURE_SETUP(atomic_fault)
{
	size_t pmd = read_pmd_pagesize();
	const char *why;

	self->pages = variant->size == SINGLE ? 1 :
		      variant->size == BLOCK ? cont_ptes() : pmd / psize();
	if (bytes(self->pages) > 64 * MIB || (variant->size == PMD && !pmd))
		SKIP(return, "no huge pages that fit into this machine");
	why = folio_settings(order_of(self->pages));
	if (why)
		SKIP(return, "%s", why);
#ifdef __aarch64__
	if (!(getauxval(AT_HWCAP) & HWCAP_ATOMICS))
		SKIP(return, "the CPU has no LSE atomics");
	if (sysconf(_SC_NPROCESSORS_CONF) > 1 && !access("/tests/list", F_OK))
		SKIP(return, "with two emulated CPUs QEMU makes atomics writes");
	self->twice = !kernel_has("atomic_rmw_");
#else
	if (emulated())
		SKIP(return, "QEMU reads and then writes for an atomic");
#endif
}

FIXTURE_TEARDOWN(atomic_fault)
{
}

/*
 * The faults of an operation on each page of fresh memory. Checks the value it
 * leaves.
 */
static long faults_of(struct __test_metadata *_metadata, void (*operate)(unsigned long *at),
		      size_t size, unsigned long expected)
{
	char *room, *at = aligned(size, &room);
	long before, after;

	ASSERT_NE(NULL, at);
	faults_begin(&before);
	for (size_t i = 0; i < size; i += psize())
		operate((unsigned long *)(at + i));
	after = faults();
	for (size_t i = 0; i < size; i += psize())
		EXPECT_EQ(expected, *(unsigned long *)(at + i));
	munmap(room, 2 * size);
	return after - before;
}

/* The memory to populate: 1 MiB, or one folio if that is larger. */
static size_t size_of(const FIXTURE_DATA(atomic_fault) * self)
{
	return bytes(self->pages) > MIB ? bytes(self->pages) : MIB;
}

/* [atomics 1-8, 14] A store to each page costs one fault per folio. */
TEST_F(atomic_fault, store)
{
	size_t size = size_of(self);

	EXPECT_EQ(size / bytes(self->pages), faults_of(_metadata, do_store, size, 1));
}

/*
 * [atomics 1-8, 12] A load maps the zero page and costs one fault per page. In
 * memory of huge pages it maps the huge zero page, at one fault per huge page.
 */
TEST_F(atomic_fault, load)
{
	size_t size = size_of(self);
	long expected = variant->size == PMD ? size / bytes(self->pages) : size / psize();

	EXPECT_EQ(expected, faults_of(_metadata, do_load, size, 0));
}

/*
 * [atomics 24] A pair of exclusives costs more faults than there are folios:
 * the load faults first, then the store. Other architectures use their atomic,
 * which faults once.
 */
TEST_F(atomic_fault, exclusives)
{
	size_t size = size_of(self);
	long count = faults_of(_metadata, do_exclusive, size, 1);

#ifdef __aarch64__
	EXPECT_LT(size / bytes(self->pages), count);
#else
	EXPECT_EQ(size / bytes(self->pages), count);
#endif
}

/*
 * [atomics 1-8, 12, 14, 28, 29] An atomic costs as many faults as a store, if
 * the kernel decodes the instruction. If not, it costs more, since it maps the
 * zero page first: twice as many with single pages. A newer kernel replaces the
 * huge zero page by a huge page, an older one by single pages; for larger
 * folios the case expects only "more".
 */
TEST_F(atomic_fault, atomic)
{
	size_t size = size_of(self);
	long once = size / bytes(self->pages);
	long count = faults_of(_metadata, do_atomic, size, 1);

	TH_LOG("%lu KiB in pieces of %u pages: %ld faults", size >> 10, self->pages, count);
	if (!self->twice || variant->size == SINGLE)
		EXPECT_EQ(self->twice ? 2 * once : once, count);
	if (self->twice)
		EXPECT_LT(once, count);
}

/*
 * [atomics 15] An atomic on read-only memory raises SIGSEGV, and the memory is
 * unchanged.
 */
TEST_F(atomic_fault, read_only)
{
	char *room, *at = aligned(MIB, &room);
	pid_t child;

	memset(at, 0, psize());
	ASSERT_EQ(0, mprotect(at, MIB, PROT_READ));
	child = fork();
	if (!child) {
		do_atomic((unsigned long *)at);
		_exit(0);
	}
	EXPECT_EQ(128 + SIGSEGV, child_of(child));
	EXPECT_TRUE(page_is(at, 0));
	munmap(room, 2 * MIB);
}

/*
 * [atomics 49] The kernel cannot read execute-only code to decode it. The
 * atomic in it still works, and its value is right.
 */
TEST_F(atomic_fault, execute_only)
{
#ifdef __aarch64__
	static const unsigned int code[] = {
		0xf8200021,	/* ldadd x0, x1, [x1]; the address goes, the value comes */
		0xd65f03c0,	/* ret */
	};
	char *room, *at = aligned(MIB, &room);
	void (*add)(unsigned long value, unsigned long *to);
	char *text = mmap(NULL, psize(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	memcpy(text, code, sizeof(code));
	__builtin___clear_cache(text, text + sizeof(code));
	ASSERT_EQ(0, mprotect(text, psize(), PROT_EXEC));
	add = (void *)text;
	add(1, (unsigned long *)at);
	EXPECT_EQ(1, *(unsigned long *)at);
	munmap(text, psize());
	munmap(room, 2 * MIB);
#else
	SKIP(return, "arm64 looks at instructions");
#endif
}

TEST_HARNESS_MAIN
