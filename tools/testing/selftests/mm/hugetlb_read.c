// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel reads hugetlb pages that the process cannot read.
 *
 * Proves, for each size of hugetlb pages: after mprotect(PROT_NONE), a debugger still reads the
 * page (/proc/PID/mem), and move_pages() still knows its node. If userfaultfd protects the page
 * against all accesses (RWP), a system call that reads it fails, as a load of the CPU does.
 *
 * How: a child plays the debugger. If its read does not end, it gets SIGKILL after it has used
 * SECONDS of CPU time. Each case looks at PROBES places of the page. Before the protection, and
 * after it, all of them can be read: this is the control.
 *
 * Does not prove: anything about asynchronous protection, or about core files.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=hugetlb_read
 */
#include <sys/ptrace.h>
#include <time.h>

#include "folio_listen.h"
#include "hugetlb_pool.h"

/* How many places of the page the cases look at. */
#define PROBES 16

/* A read that uses this much CPU time does not end. The usual one takes a few milliseconds. */
#define SECONDS 2

/* Definitions of include/uapi/linux/userfaultfd.h in 7.3, for older headers. */
#define FEATURE_RWP BIT_ULL(17)
#define REGISTER_RWP BIT_ULL(3)
#define RWPROTECT _IOWR(UFFDIO, 0x09, struct uffdio_writeprotect)

FIXTURE(hugetlb_read)
{
	struct hugetlb_pool pool;
	size_t size;
	char *at;
	int uffd;
};

/* @rank: 0 is the smallest size of hugetlb pages, 1 the next, and so on. */
FIXTURE_VARIANT(hugetlb_read)
{
	int rank;
};

FIXTURE_VARIANT_ADD(hugetlb_read, smallest)
{
	.rank = 0,
};

FIXTURE_VARIANT_ADD(hugetlb_read, second)
{
	.rank = 1,
};

FIXTURE_VARIANT_ADD(hugetlb_read, third)
{
	.rank = 2,
};

FIXTURE_VARIANT_ADD(hugetlb_read, fourth)
{
	.rank = 3,
};

/* One of the PROBES places of the page. Their offsets in small pages differ. */
static char *place(const FIXTURE_DATA(hugetlb_read) * self, int probe)
{
	return self->at + probe * (self->size / PROBES) + 8 * probe + 8;
}

/* The value at this place. */
static unsigned int value_at(int probe)
{
	return 0x12345678 + probe;
}

FIXTURE_SETUP(hugetlb_read)
{
	const char *why;

	self->at = MAP_FAILED;
	self->uffd = -1;
	self->size = hugetlb_size(variant->rank);
	self->pool.folder[0] = 0;
	if (!self->size)
		SKIP(return, "no such size of hugetlb");
	why = hugetlb_pool_have(&self->pool, self->size, 1);
	if (why)
		SKIP(return, "%zuK: %s", self->size >> 10, why);
	self->at = mmap(NULL, self->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
			MAP_HUGETLB | order_of(self->size) << MAP_HUGE_SHIFT, -1, 0);
	if (self->at == MAP_FAILED)
		SKIP(return, "all hugetlb pages of %zuK are in use", self->size >> 10);
	for (int probe = 0; probe < PROBES; probe++)
		*(unsigned int *)place(self, probe) = value_at(probe);
}

FIXTURE_TEARDOWN(hugetlb_read)
{
	if (self->uffd >= 0)
		close(self->uffd);
	if (self->at != MAP_FAILED)
		munmap(self->at, self->size);
	hugetlb_pool_restore(&self->pool);
}

/* Whether an entry of the third level of page tables maps the page. */
static bool by_pud(const FIXTURE_DATA(hugetlb_read) * self)
{
	return psize() == 4096 && self->size == 1UL << 30;
}

/*
 * In the child: trace the parent without stopping it, and read all places of its page. Returns how
 * many are right. Only a tracer may read memory that the process cannot read.
 */
static int debug(const FIXTURE_DATA(hugetlb_read) * self, pid_t parent)
{
	unsigned int value;
	int right = 0, fd;
	char path[32];

	if (ptrace(PTRACE_SEIZE, parent, NULL, NULL))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", parent);
	fd = open(path, O_RDONLY);
	for (int probe = 0; probe < PROBES; probe++) {
		if (pread(fd, &value, sizeof(value), (unsigned long)place(self, probe)) ==
		    sizeof(value))
			right += value == value_at(probe);
	}
	close(fd);
	return right;
}

/*
 * Let a child read all places of the page with /proc/PID/mem. Returns how many are right, or -1 if
 * the read did not end. Meanwhile, the child may hold the mmap lock of this process for reading.
 */
static int debugged(const FIXTURE_DATA(hugetlb_read) * self)
{
	pid_t parent = getpid(), child = fork();
	struct timespec used = {};
	clockid_t clock;
	int status;

	if (!child)
		_exit(debug(self, parent));
	if (child < 0 || clock_getcpuclockid(child, &clock))
		return child_of(child);
	while (!waitpid(child, &status, WNOHANG)) {
		usleep(10000);
		if (clock_gettime(clock, &used) || used.tv_sec < SECONDS)
			continue;
		kill(child, SIGKILL);
		return child_of(child) == 128 + SIGKILL ? -1 : PROBES + 1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : PROBES + 1;
}

/*
 * A debugger reads the page, although the process itself cannot access it.
 *
 * Known issue 103: on x86_64, the read of a page of 1G does not end.
 */
TEST_F_TIMEOUT(hugetlb_read, debugger_reads_protnone, 120)
{
#ifdef __x86_64__
	const bool issue = by_pud(self);
#else
	const bool issue = false;
#endif
	int right;

	ASSERT_EQ(PROBES, debugged(self));
	ASSERT_EQ(0, mprotect(self->at, self->size, PROT_NONE));
	ASSERT_EQ(SIGSEGV, try_access(place(self, 0), false));
	right = debugged(self);
	ASSERT_EQ(0, mprotect(self->at, self->size, PROT_READ));
	EXPECT_EQ(PROBES, debugged(self));
	DID(PROBES, "places read");
	if (issue && right == -1) {
		KNOWN_ISSUE(103, "a read of a page with PROT_NONE by a debugger does not end");
		return;
	}
	EXPECT_EQ(PROBES, right);
	if (issue)
		STALE_ISSUE(103);
}

/*
 * move_pages() knows the node of the page, although the process itself cannot access it.
 *
 * Known issue 103: on x86_64, it finds no page of 1G.
 */
TEST_F(hugetlb_read, node_of_protnone)
{
#ifdef __x86_64__
	const bool issue = by_pud(self);
#else
	const bool issue = false;
#endif
	int before = move_page(self->at, NULL), during;

	ASSERT_LE(0, before);
	ASSERT_EQ(0, mprotect(self->at, self->size, PROT_NONE));
	during = move_page(self->at, NULL);
	ASSERT_EQ(0, mprotect(self->at, self->size, PROT_READ));
	EXPECT_EQ(before, move_page(self->at, NULL));
	DID(1, "pages found");
	if (issue && during == -ENOENT) {
		KNOWN_ISSUE(103, "move_pages() does not find a page with PROT_NONE");
		return;
	}
	EXPECT_EQ(before, during);
	if (issue)
		STALE_ISSUE(103);
}

/* How many places a system call can read, or -1 if it reads a wrong value. */
static int readable(const FIXTURE_DATA(hugetlb_read) * self)
{
	int count = 0;

	for (int probe = 0; probe < PROBES; probe++) {
		unsigned int value = 0;
		struct iovec to = { &value, sizeof(value) };
		struct iovec from = { place(self, probe), sizeof(value) };

		if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)sizeof(value))
			continue;
		if (value != value_at(probe))
			return -1;
		count++;
	}
	return count;
}

/* At how many places a load raises SIGBUS. */
static int traps_at(const FIXTURE_DATA(hugetlb_read) * self)
{
	int count = 0;

	for (int probe = 0; probe < PROBES; probe++)
		count += try_access(place(self, probe), false) == SIGBUS;
	return count;
}

/*
 * userfaultfd protects the page against all accesses. A load raises SIGBUS, and a system call
 * cannot read the page either. After the protection ends, both can.
 *
 * Known issue 102: on arm64, a system call reads a page of 1G.
 */
TEST_F(hugetlb_read, call_is_noticed)
{
	struct uffdio_register where = {
		.range = { (unsigned long)self->at, self->size },
		.mode = REGISTER_RWP,
	};
	struct uffdio_writeprotect how = {
		.range = where.range,
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
#ifdef __aarch64__
	const bool issue = by_pud(self);
#else
	const bool issue = false;
#endif
	int found;

	self->uffd = listener(UFFD_FEATURE_SIGBUS | FEATURE_RWP);
	if (self->uffd < 0)
		SKIP(return, "userfaultfd cannot protect against reads");
	ASSERT_EQ(PROBES, readable(self));
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &where));
	ASSERT_EQ(PROBES, readable(self));
	ASSERT_EQ(0, ioctl(self->uffd, RWPROTECT, &how));
	ASSERT_EQ(PROBES, traps_at(self));
	found = readable(self);
	EXPECT_EQ(PROBES, traps_at(self));
	how.mode = 0;
	ASSERT_EQ(0, ioctl(self->uffd, RWPROTECT, &how));
	EXPECT_EQ(0, traps_at(self));
	EXPECT_EQ(PROBES, readable(self));
	DID(PROBES, "places read");
	if (issue && found == PROBES) {
		KNOWN_ISSUE(102, "a system call reads a page that is protected against reads");
		return;
	}
	EXPECT_EQ(0, found);
	if (issue)
		STALE_ISSUE(102);
}

TEST_HARNESS_MAIN
