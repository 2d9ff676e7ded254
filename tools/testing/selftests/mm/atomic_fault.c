// SPDX-License-Identifier: GPL-2.0
/*
 * How many faults it costs to populate memory with atomic instructions.
 *
 * Proves: a store faults once per page or folio, and a load once per zero page.
 * An LSE atomic on missing memory faults twice, as a read and then as a write,
 * unless the kernel decodes the instruction
 * (CONFIG_ARM64_ATOMIC_RMW_WRITE_FAULT); then it faults once. A pair of
 * exclusives faults twice on arm64. On other architectures an atomic faults
 * once. The value is right in each case. The same holds for private pages of
 * hugetlb; shared ones fault once in any case. The memory cgroup is charged for
 * the pages. An atomic with a uprobe works, and costs only a few more faults.
 *
 * Does not prove: which instructions count as atomics (KUnit: atomic_rmw_insn,
 * atomic_rmw_fault). With two emulated CPUs QEMU turns all of them into writes,
 * and the program skips its cases.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=atomic_fault
 */
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "folio_did.h"
#include "hugetlb_pool.h"

/* A case uses at least this much memory. */
#define MIB 0x100000UL

/* Pages of hugetlb in a case. */
#define HUGETLB_PAGES 4UL

FIXTURE(atomic_fault)
{
	unsigned int pages;	/* pages that one fault brings */
	bool twice;		/* whether an atomic faults twice */
	int map;		/* how memory is mapped: MAP_* */
	struct hugetlb_pool pool;
};

FIXTURE_VARIANT(atomic_fault)
{
	enum { SINGLE, BLOCK, PMD, HUGETLB } size;
	bool shared;
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

FIXTURE_VARIANT_ADD(atomic_fault, hugetlb)
{
	.size = HUGETLB,
};

FIXTURE_VARIANT_ADD(atomic_fault, hugetlb_shared)
{
	.size = HUGETLB,
	.shared = true,
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

/* Memory of the variant's kind, aligned to its size, in a mapping of twice the size. */
static void *aligned(const FIXTURE_DATA(atomic_fault) * self, size_t size, char **room)
{
	void *at;

	*room = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (*room == MAP_FAILED)
		return NULL;
	at = (void *)(((unsigned long)*room + size - 1) & -size);
	if (!self->map)
		return at;
	at = mmap(at, size, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_ANONYMOUS | self->map, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

FIXTURE_SETUP(atomic_fault)
{
	size_t pmd = read_pmd_pagesize();
	const char *why;

	self->pages = variant->size == SINGLE ? 1 :
		      variant->size == BLOCK ? cont_ptes() : pmd / psize();
	if (bytes(self->pages) > 64 * MIB || (variant->size >= PMD && !pmd))
		SKIP(return, "no huge pages that fit into this machine");
	why = variant->size == HUGETLB ? hugetlb_pool_have(&self->pool, pmd, HUGETLB_PAGES) :
					 folio_settings(order_of(self->pages));
	if (why)
		SKIP(return, "%s", why);
	if (variant->size == HUGETLB)
		self->map = MAP_HUGETLB | order_of(bytes(self->pages)) << MAP_HUGE_SHIFT |
			    (variant->shared ? MAP_SHARED : MAP_PRIVATE);
#ifdef __aarch64__
	if (!(getauxval(AT_HWCAP) & HWCAP_ATOMICS))
		SKIP(return, "the CPU has no LSE atomics");
	if (sysconf(_SC_NPROCESSORS_CONF) > 1 && !access("/tests/list", F_OK))
		SKIP(return, "with two emulated CPUs QEMU makes atomics writes");
	/* A load maps shared pages of hugetlb writable. */
	self->twice = !kernel_has("atomic_rmw_") && !variant->shared;
#else
	if (emulated())
		SKIP(return, "QEMU reads and then writes for an atomic");
#endif
}

FIXTURE_TEARDOWN(atomic_fault)
{
	hugetlb_pool_restore(&self->pool);
}

/*
 * The faults of an operation on each page of fresh memory. Checks the value it
 * leaves.
 */
static long faults_of(struct __test_metadata *_metadata, const FIXTURE_DATA(atomic_fault) * self,
		      void (*operate)(unsigned long *at), size_t size, unsigned long expected)
{
	char *room, *at = aligned(self, size, &room);
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

/* The memory to populate: 1 MiB, or one folio if that is larger, or some pages of hugetlb. */
static size_t size_of(const FIXTURE_DATA(atomic_fault) * self)
{
	if (self->map)
		return HUGETLB_PAGES * bytes(self->pages);
	return bytes(self->pages) > MIB ? bytes(self->pages) : MIB;
}

/*
 * [atomics 1-8, 14] A store to each page costs one fault per folio. The
 * variants are single pages, blocks, huge pages, and private and shared pages
 * of hugetlb.
 */
TEST_F(atomic_fault, store)
{
	size_t size = size_of(self);

	EXPECT_EQ(size / bytes(self->pages), faults_of(_metadata, self, do_store, size, 1));
}

/*
 * [atomics 1-8, 12] A load maps the zero page and costs one fault per page. In
 * memory of huge pages it maps the huge zero page, at one fault per huge page.
 * hugetlb has no zero page: a load maps a page of its own, at one fault, too.
 */
TEST_F(atomic_fault, load)
{
	size_t size = size_of(self);
	long expected = variant->size >= PMD ? size / bytes(self->pages) : size / psize();

	EXPECT_EQ(expected, faults_of(_metadata, self, do_load, size, 0));
}

/*
 * [atomics 24] A pair of exclusives costs more faults than there are folios:
 * the load faults first, then the store. If the load maps a writable page, as in
 * shared memory of hugetlb, it costs one fault. Other architectures use their
 * atomic, which faults once.
 */
TEST_F(atomic_fault, exclusives)
{
	size_t size = size_of(self);
	long count = faults_of(_metadata, self, do_exclusive, size, 1);

#ifdef __aarch64__
	if (!variant->shared)
		EXPECT_LT(size / bytes(self->pages), count);
	if (variant->shared)
		EXPECT_EQ(size / bytes(self->pages), count);
#else
	EXPECT_EQ(size / bytes(self->pages), count);
#endif
}

/*
 * [atomics 1-8, 12, 14, 28, 29] An atomic costs as many faults as a store if
 * the kernel decodes the instruction. If not, it maps the zero page first:
 * twice as many faults with single pages. For larger folios the case expects
 * just "more", since only newer kernels replace the huge zero page by a huge
 * page. [atomics 21] Private pages of hugetlb cost twice as many too: the first
 * fault maps a page read-only. Shared ones cost one fault in any kernel.
 */
TEST_F(atomic_fault, atomic)
{
	size_t size = size_of(self);
	long once = size / bytes(self->pages);
	long count = faults_of(_metadata, self, do_atomic, size, 1);

	TH_LOG("%lu KiB in pieces of %u pages: %ld faults", size >> 10, self->pages, count);
	if (!self->twice || variant->size == SINGLE || variant->size == HUGETLB)
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
	size_t size = size_of(self);
	char *room, *at = aligned(self, size, &room);
	pid_t child;

	ASSERT_NE(NULL, at);
	memset(at, 0, psize());
	ASSERT_EQ(0, mprotect(at, size, PROT_READ));
	child = fork();
	if (!child) {
		do_atomic((unsigned long *)at);
		_exit(0);
	}
	EXPECT_EQ(128 + SIGSEGV, child_of(child));
	EXPECT_TRUE(page_is(at, 0));
	munmap(room, 2 * size);
}

#define GROUP "/sys/fs/cgroup/atomic_fault"

/* How many pages are charged to the group after an operation on each page of fresh memory. */
static size_t charged_by(struct __test_metadata *_metadata,
			 const FIXTURE_DATA(atomic_fault) * self,
			 void (*operate)(unsigned long *at), unsigned long long group)
{
	int fd = open("/proc/kpagecgroup", O_RDONLY);
	size_t size = size_of(self), charged = 0;
	char *room, *at = aligned(self, size, &room);
	unsigned long long inode;

	ASSERT_NE(NULL, at);
	for (size_t i = 0; i < size; i += psize())
		operate((unsigned long *)(at + i));
	for (size_t i = 0; i < size; i += psize()) {
		ASSERT_EQ(sizeof(inode), pread(fd, &inode, sizeof(inode),
					       pfn_of(at + i) * sizeof(inode)));
		charged += inode == group;
	}
	munmap(room, 2 * size);
	close(fd);
	return charged;
}

/*
 * [atomics 48] The memory cgroup of the process is charged for each page that an
 * atomic brings, as for a store. Another controller counts pages of hugetlb: the
 * case compares the charges of atomic and store.
 */
TEST_F(atomic_fault, charged)
{
	size_t stored, pages = size_of(self) / psize();
	struct stat group;

	if (write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory") ||
	    (mkdir(GROUP, 0755) && errno != EEXIST) || access("/proc/kpagecgroup", R_OK))
		SKIP(return, "CONFIG_MEMCG=n, or no control group 2");
	ASSERT_EQ(0, write_text(GROUP "/cgroup.procs", "0"));
	ASSERT_EQ(0, stat(GROUP, &group));
	stored = charged_by(_metadata, self, do_store, group.st_ino);
	EXPECT_EQ(stored, charged_by(_metadata, self, do_atomic, group.st_ino));
	if (!self->map)
		EXPECT_EQ(pages, stored);
	DID(self->map ? pages : stored, self->map ? "pages looked at" :
						    "pages charged to the group");
	write_text("/sys/fs/cgroup/cgroup.procs", "0");
	rmdir(GROUP);
}

#ifdef __aarch64__
#define TRACING "/sys/kernel/tracing"

/* A function that is one atomic: ldadd x0, x1, [x1]; ret. */
static const unsigned int add_code[] = { 0xf8200021, 0xd65f03c0 };
static void (*add)(unsigned long value, unsigned long *to);

static void do_add(unsigned long *at)
{
	add(1, at);
	asm volatile("" : : : "memory");
}

/* Whether the kernel can read text that user space may only execute. */
static bool text_is_readable(void)
{
	void *text = mmap(NULL, psize(), PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool readable = false;
	int ends[2];

	if (text != MAP_FAILED && !pipe(ends)) {
		readable = write(ends[1], text, 1) == 1;
		close(ends[0]);
		close(ends[1]);
	}
	munmap(text, psize());
	return readable;
}

/* How often the uprobe was hit. */
static unsigned long probe_hits(void)
{
	FILE *profile = fopen(TRACING "/uprobe_profile", "r");
	char line[512], name[64];
	unsigned long hits = 0;

	while (profile && fgets(line, sizeof(line), profile)) {
		if (sscanf(line, "%*s %63s %lu", name, &hits) == 2 && !strcmp(name, "here"))
			break;
		hits = 0;
	}
	if (profile)
		fclose(profile);
	return hits;
}
#endif

/*
 * [atomics 44] The kernel executes an atomic with a uprobe out of line, at another
 * address. The atomic works once per call, and costs as many faults as without the
 * probe, plus a few: for the copy of the text, and for the page from which the
 * atomic is executed. That page is execute-only: on a CPU with EPAN the kernel
 * cannot read the instruction there, and the atomic faults twice.
 */
TEST_F(atomic_fault, uprobe)
{
#ifdef __aarch64__
	char path[] = "/tmp/atomic_fault.XXXXXX", probe[64];
	size_t size = size_of(self);
	long plain, probed;
	bool there;
	void *text;
	int fd;

	if (access(TRACING "/uprobe_events", W_OK))
		mount("none", TRACING, "tracefs", 0, NULL);
	if (access(TRACING "/uprobe_events", W_OK))
		SKIP(return, "CONFIG_UPROBE_EVENTS=n, or not root");
	fd = mkstemp(path);
	ASSERT_EQ(sizeof(add_code), write(fd, add_code, sizeof(add_code)));
	text = mmap(NULL, psize(), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, text);
	close(fd);
	add = text;
	plain = faults_of(_metadata, self, do_add, size, 1);

	snprintf(probe, sizeof(probe), "p:atomic_fault/here %s:0x0", path);
	there = !write_text(TRACING "/uprobe_events", probe) &&
		!write_text(TRACING "/events/atomic_fault/here/enable", "1");
	probed = faults_of(_metadata, self, do_add, size, 1);
	EXPECT_EQ(size / psize(), probe_hits());
	DID(probe_hits(), "atomics with a probe");
	write_text(TRACING "/events/atomic_fault/here/enable", "0");
	write_text(TRACING "/uprobe_events", "-:atomic_fault/here");
	EXPECT_TRUE(there);
	TH_LOG("%ld faults, with a probe %ld", plain, probed);
	EXPECT_LE(plain, probed);
	EXPECT_GE((text_is_readable() ? plain : 2 * plain) + 4, probed);
	munmap(text, psize());
	unlink(path);
#else
	SKIP(return, "arm64 looks at instructions");
#endif
}

/*
 * [atomics 49] The kernel cannot read execute-only code to decode it. The
 * atomic in it still works, and its value is right.
 */
TEST_F(atomic_fault, execute_only)
{
#ifdef __aarch64__
	size_t size = size_of(self);
	char *room, *at = aligned(self, size, &room);
	char *text = mmap(NULL, psize(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	ASSERT_NE(NULL, at);
	memcpy(text, add_code, sizeof(add_code));
	__builtin___clear_cache(text, text + sizeof(add_code));
	ASSERT_EQ(0, mprotect(text, psize(), PROT_EXEC));
	add = (void *)text;
	add(1, (unsigned long *)at);
	EXPECT_EQ(1, *(unsigned long *)at);
	munmap(text, psize());
	munmap(room, 2 * size);
#else
	SKIP(return, "arm64 looks at instructions");
#endif
}

TEST_HARNESS_MAIN
