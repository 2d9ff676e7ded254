// SPDX-License-Identifier: GPL-2.0
/*
 * The number of page faults when atomic instructions populate memory.
 *
 * Proves: a store faults once per folio. A load faults once per page. In huge
 * pages, a load faults once per huge page. On arm64 an LSE atomic on memory
 * that is not mapped yet faults twice: first as a read, then as a write. If the
 * kernel decodes the instruction (CONFIG_ARM64_ATOMIC_RMW_WRITE_FAULT), the
 * atomic faults once. On arm64 a load-exclusive with its store-exclusive causes
 * two faults, in every kernel. On other architectures an atomic instruction
 * causes one fault. Private hugetlb pages cause the same numbers of faults as
 * other memory. On shared hugetlb pages every operation faults once. Each
 * operation leaves the right value in memory. The pages are charged to the
 * memory cgroup. An atomic still works if a uprobe is set on it. The uprobe
 * causes up to four more faults. On a CPU with EPAN each atomic with a uprobe
 * may fault twice.
 *
 * Does not prove: which instructions count as atomics (KUnit: atomic_rmw_insn,
 * atomic_rmw_fault). If QEMU emulates two CPUs, it reports the fault of an
 * atomic as a write fault. The program then skips all its cases.
 *
 * atomic_file does the same on a file system.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=atomic_fault
 */
#include <sys/mount.h>
#include <sys/stat.h>

#include "atomic_ops.h"
#include "folio_did.h"
#include "hugetlb_pool.h"

/* A case uses at least this much memory, in bytes. */
#define MIB 0x100000UL

/* The number of hugetlb pages that a case uses. */
#define HUGETLB_PAGES 4UL

FIXTURE(atomic_fault)
{
	unsigned int pages;	/* pages that one fault maps */
	bool twice;		/* whether an atomic faults twice */
	int map;		/* more flags for mmap(), or 0 */
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

/*
 * Map 2 * @size bytes at @room. Within this range, map @size bytes of the
 * memory that the variant tests, aligned to @size. Returns the aligned address,
 * or NULL on failure.
 */
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
	why = atomics_inexact();
	if (why)
		SKIP(return, "%s", why);
#ifdef __aarch64__
	/*
	 * The first fault of an atomic is a read fault. On a shared hugetlb page this fault maps
	 * the page writable, so the atomic takes only one fault.
	 */
	self->twice = !kernel_has("atomic_rmw_") && !variant->shared;
#endif
}

FIXTURE_TEARDOWN(atomic_fault)
{
	hugetlb_pool_restore(&self->pool);
}

/*
 * Apply an operation to each page of fresh memory, and check the value that the
 * operation leaves in each page. Returns the number of faults that the
 * operation caused.
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

/*
 * The number of bytes to populate. The hugetlb variants populate HUGETLB_PAGES
 * pages. The other variants populate 1 MiB, or one folio if a folio is larger
 * than 1 MiB.
 */
static size_t size_of(const FIXTURE_DATA(atomic_fault) * self)
{
	if (self->map)
		return HUGETLB_PAGES * bytes(self->pages);
	return bytes(self->pages) > MIB ? bytes(self->pages) : MIB;
}

/*
 * A store to each page costs one fault per folio. The variants are single
 * pages, blocks, huge pages, private hugetlb pages and shared hugetlb pages.
 */
TEST_F(atomic_fault, store)
{
	size_t size = size_of(self);

	EXPECT_EQ(size / bytes(self->pages), faults_of(_metadata, self, do_store, size, 1));
}

/*
 * A load from each page maps the zero page and costs one fault per page. In
 * huge pages a load maps the huge zero page and costs one fault per huge page.
 * hugetlb has no zero page, so a load allocates a hugetlb page and costs one
 * fault per hugetlb page.
 */
TEST_F(atomic_fault, load)
{
	size_t size = size_of(self);
	long expected = variant->size >= PMD ? size / bytes(self->pages) : size / psize();

	EXPECT_EQ(expected, faults_of(_metadata, self, do_load, size, 0));
}

/*
 * The test executes a load-exclusive and a store-exclusive on each page. The
 * number of faults is larger than the number of folios, because both the load
 * and the store fault. In shared hugetlb memory the load maps the page
 * writable, so each page costs one fault. On other architectures the test
 * executes an atomic instruction instead, which costs one fault per folio.
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
 * If the kernel decodes the instruction, an atomic on each page costs as many
 * faults as a store. Otherwise the first fault maps the zero page, and single
 * pages cost two faults each. For larger folios the case only checks that there
 * are more faults than folios. The exact number of faults depends on the
 * kernel, because newer kernels replace the huge zero page with a huge page.
 * Each private hugetlb page costs two faults, because the first fault maps the
 * page read-only. Shared hugetlb pages cost one fault each in every kernel.
 */
TEST_F(atomic_fault, atomic)
{
	size_t size = size_of(self);
	long once = size / bytes(self->pages);
	long count = faults_of(_metadata, self, do_atomic, size, 1);

	TH_LOG("%lu KiB in folios of %u pages: %ld faults", size >> 10, self->pages, count);
	if (!self->twice || variant->size == SINGLE || variant->size == HUGETLB)
		EXPECT_EQ(self->twice ? 2 * once : once, count);
	if (self->twice)
		EXPECT_LT(once, count);
}

/*
 * A child executes an atomic on read-only memory. SIGSEGV ends the child, and
 * the memory is unchanged.
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

/*
 * Apply an operation to each page of fresh memory. Returns the number of pages
 * that are charged to the memory cgroup with the inode number @group.
 */
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
 * An atomic on a page charges the page to the memory cgroup of the process, as
 * a store does. Another cgroup controller counts hugetlb pages. For these pages
 * the case only checks that an atomic and a store charge the same number of
 * pages.
 */
TEST_F(atomic_fault, charged)
{
	size_t stored, pages = size_of(self) / psize();
	struct stat group;

	if (write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory") ||
	    (mkdir(GROUP, 0755) && errno != EEXIST) || access("/proc/kpagecgroup", R_OK))
		SKIP(return, "CONFIG_MEMCG=n, or cgroup v2 is not mounted");
	ASSERT_EQ(0, write_text(GROUP "/cgroup.procs", "0"));
	ASSERT_EQ(0, stat(GROUP, &group));
	stored = charged_by(_metadata, self, do_store, group.st_ino);
	EXPECT_EQ(stored, charged_by(_metadata, self, do_atomic, group.st_ino));
	if (!self->map)
		EXPECT_EQ(pages, stored);
	DID(self->map ? pages : stored, self->map ? "pages checked" :
						    "pages charged to the group");
	write_text("/sys/fs/cgroup/cgroup.procs", "0");
	rmdir(GROUP);
}

#ifdef __aarch64__
#define TRACING "/sys/kernel/tracing"

/* The code of a function that executes one atomic: ldadd x0, x1, [x1]; ret. */
static const unsigned int add_code[] = { 0xf8200021, 0xd65f03c0 };
static void (*add)(unsigned long value, unsigned long *to);

static void do_add(unsigned long *at)
{
	add(1, at);
	asm volatile("" : : : "memory");
}

/* Whether the kernel can read a page that is execute-only for user space. */
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

/* The number of hits of the uprobe. */
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
 * A uprobe is set on an atomic, so the kernel executes the atomic out of line,
 * at another address. The test calls the atomic once for each page. Each call
 * hits the uprobe once and leaves the right value in memory. The uprobe causes
 * at most four more faults. These faults copy the page that contains the code,
 * and map a second page. The kernel executes the atomic in the second page.
 * This page is execute-only for user space. On a CPU with EPAN the kernel then
 * cannot read the instruction, so each atomic may fault twice.
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
	DID(probe_hits(), "atomics with a uprobe");
	write_text(TRACING "/events/atomic_fault/here/enable", "0");
	write_text(TRACING "/uprobe_events", "-:atomic_fault/here");
	EXPECT_TRUE(there);
	TH_LOG("%ld faults without a uprobe, %ld with it", plain, probed);
	EXPECT_LE(plain, probed);
	EXPECT_GE((text_is_readable() ? plain : 2 * (long)(size / psize())) + 4, probed);
	munmap(text, psize());
	unlink(path);
#else
	SKIP(return, "only arm64 decodes the instruction");
#endif
}

/*
 * The atomic is in execute-only code, which the kernel may be unable to read.
 * The atomic still works, and leaves the right value in memory.
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
	SKIP(return, "only arm64 decodes the instruction");
#endif
}

TEST_HARNESS_MAIN
