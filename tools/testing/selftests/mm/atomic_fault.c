// SPDX-License-Identifier: GPL-2.0
/*
 * How many faults it costs to populate memory with atomic instructions.
 *
 * Proves: a load faults once a page or folio, a store too; an atomic of LSE
 * that meets no memory faults twice, as a read and then as a write, unless the
 * kernel looks at the instruction (CONFIG_ARM64_ATOMIC_RMW_WRITE_FAULT), and
 * always once where memory is mapped by a pair of exclusives, or on another
 * architecture. The value is right in each case.
 *
 * Does not prove: which instructions count as such (KUnit: atomic_rmw_insn,
 * atomic_rmw_fault). With two emulated CPUs QEMU makes all of them writes: the
 * test measures that first.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=atomic_fault
 */
#include <sys/auxv.h>

#include "folio_util.h"

/* The least memory of a case. */
#define MIB 0x100000UL

FIXTURE(atomic_fault)
{
	unsigned int pages;	/* that come with one fault */
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

/* Faults of an operation on each page of fresh memory, and the value left. */
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

/* Memory to populate: 1 MiB, or one folio that is larger. */
static size_t size_of(const FIXTURE_DATA(atomic_fault) * self)
{
	return bytes(self->pages) > MIB ? bytes(self->pages) : MIB;
}

/* [atomics 1-8, 14] A store: one fault for what comes together. */
TEST_F(atomic_fault, store)
{
	size_t size = size_of(self);

	EXPECT_EQ(size / bytes(self->pages), faults_of(_metadata, do_store, size, 1));
}

/*
 * [atomics 1-8, 12] A load maps the zero page, page by page, or the huge one if
 * there is one.
 */
TEST_F(atomic_fault, load)
{
	size_t size = size_of(self);
	long expected = variant->size == PMD ? size / bytes(self->pages) : size / psize();

	EXPECT_EQ(expected, faults_of(_metadata, do_load, size, 0));
}

/* [atomics 24] A pair of exclusives: the load faults first, then the store. */
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
 * [atomics 1-8, 12, 14, 28, 29] An atomic: as few faults as a store, where the kernel looks
 * at the instruction. Else twice as many: the zero page is mapped first, and
 * of a huge zero page a newer kernel makes a huge page, an older one single pages.
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

/* [atomics 15] Memory that may only be read: SIGSEGV, and it stays as it is. */
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
 * [atomics 49] Code that can be executed and not read: the kernel cannot look
 * at it, and the atomic does its work all the same.
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
