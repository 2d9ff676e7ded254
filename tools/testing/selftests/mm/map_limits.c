// SPDX-License-Identifier: GPL-2.0
/*
 * Limits on the memory that a process may map, and the count of committed memory.
 *
 * Proves: a process cannot have more private writable memory than RLIMIT_DATA, whether mmap()
 * replaces other memory or mprotect() makes memory writable. Replaced data does not count twice,
 * and RLIMIT_AS does not matter if the address space keeps its size. When a mapping with
 * MAP_GROWSDOWN has grown and is gone, Committed_AS is as before. With PR_SET_MDWE, neither mmap(),
 * mprotect() nor brk() gives memory that is writable and executable.
 *
 * How: each case also makes calls that must succeed, or that fail on each kernel. The cases of
 * growth take the median of some rounds, because other processes change Committed_AS, too. They run
 * only in the virtual machine, because known issue 106 changes Committed_AS until the next boot.
 *
 * Does not prove: that the limits hold for mremap(), or for several threads.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=map_limits
 */
#include <sys/personality.h>

#include "folio_known.h"
#include "folio_state.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

#define RW (PROT_READ | PROT_WRITE)

/* The process may have LIMIT more bytes of data. SMALL is within this limit, LARGE is not. */
#define LIMIT ((size_t)4 << 20)
#define SMALL (LIMIT / 2)
#define LARGE (4 * LIMIT)

FIXTURE(map_limits)
{
};

FIXTURE_SETUP(map_limits)
{
}

FIXTURE_TEARDOWN(map_limits)
{
}

/* Map private memory: at @at instead of what is there, or anywhere if @at is NULL. */
static char *map_at(char *at, size_t size, int prot)
{
	return mmap(at, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
}

/* Make memory writable. Returns 0 or an error. */
static int make_writable(char *at, size_t size)
{
	return mprotect(at, size, RW) ? errno : 0;
}

/*
 * Let the process have @more bytes in addition to what the line @name of /proc/self/status says.
 * Returns 0 or -1.
 */
static int limit_to(int resource, const char *name, size_t more)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return -1;
	limit.rlim_cur = bytes(status_pages(name)) + more;
	return setrlimit(resource, &limit);
}

static void no_limit(int resource)
{
	struct rlimit limit;

	if (!getrlimit(resource, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(resource, &limit);
	}
}

/*
 * A writable mapping that replaces read-only memory is new data, so RLIMIT_DATA applies to it, and
 * if it is refused, the old mapping stays. If the mapping replaces data, only the rest is new data.
 * Known issue 107: the kernel checks nothing if the new mapping replaces memory of any kind.
 */
TEST_F(map_limits, data_over_read_only)
{
	long before, after;
	char *at, *large;
	int error;

	ASSERT_EQ(0, limit_to(RLIMIT_DATA, "VmData", LIMIT));
	EXPECT_EQ(MAP_FAILED, map_at(NULL, LARGE, RW));
	EXPECT_EQ(ENOMEM, errno);
	at = map_at(NULL, LARGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, at);

	before = status_pages("VmData");
	EXPECT_EQ(at, map_at(at, SMALL, RW));
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(at, map_at(at, SMALL / 2 * 3, RW));
		EXPECT_EQ(before + SMALL / 2 * 3 / psize(), status_pages("VmData"));
	}

	large = map_at(at, LARGE, RW);
	error = errno;
	after = status_pages("VmData");
	if (large == MAP_FAILED) {
		EXPECT_EQ(ENOMEM, error);
		EXPECT_EQ(0, try_access(at, true));
		EXPECT_EQ(0, try_access(at + LARGE - 1, false));
		EXPECT_EQ(SIGSEGV, try_access(at + LARGE - 1, true));
	}
	munmap(at, LARGE);
	no_limit(RLIMIT_DATA);
	if (large == at && after == before + LARGE / psize()) {
		KNOWN_ISSUE(107, "mmap() over read-only memory exceeds RLIMIT_DATA");
		return;
	}
	EXPECT_EQ(MAP_FAILED, large);
	STALE_ISSUE(107);
}

/*
 * Memory that mprotect() makes writable is new data, so RLIMIT_DATA applies to it. RLIMIT_AS does
 * not, because the address space stays as large as it is. Known issue 107: if the process has
 * almost reached RLIMIT_AS, the kernel does not check RLIMIT_DATA either.
 */
TEST_F(map_limits, data_by_mprotect)
{
	long before, after;
	int error;
	char *at;

	ASSERT_EQ(0, limit_to(RLIMIT_DATA, "VmData", LIMIT));
	at = map_at(NULL, LARGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(ENOMEM, make_writable(at, LARGE));

	ASSERT_EQ(0, limit_to(RLIMIT_AS, "VmSize", SMALL / 2));
	before = status_pages("VmData");
	EXPECT_EQ(0, make_writable(at, SMALL));
	EXPECT_EQ(before + SMALL / psize(), status_pages("VmData"));
	error = make_writable(at, LARGE);
	after = status_pages("VmData");
	munmap(at, LARGE);
	no_limit(RLIMIT_AS);
	no_limit(RLIMIT_DATA);
	if (!error && after == before + LARGE / psize()) {
		KNOWN_ISSUE(107, "mprotect() near RLIMIT_AS exceeds RLIMIT_DATA");
		return;
	}
	EXPECT_EQ(ENOMEM, error);
	STALE_ISSUE(107);
}

/*
 * Write the permissions of the mapping that contains @at, such as "rw-p", or "" if nothing is
 * mapped there. This function allocates no memory, so it does not change the heap.
 */
static void permissions_of(unsigned long at, char *permissions)
{
	static char text[1 << 16];
	int fd = open("/proc/self/maps", O_RDONLY);
	ssize_t length = 0, more;

	permissions[0] = 0;
	while ((more = read(fd, text + length, sizeof(text) - 1 - length)) > 0)
		length += more;
	close(fd);
	text[length] = 0;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		unsigned long start, end;
		char found[5];

		if (sscanf(line, "%lx-%lx %4s", &start, &end, found) == 3 && start <= at &&
		    at < end)
			memcpy(permissions, found, sizeof(found));
	}
}

/*
 * Find the permissions of new memory of brk(), or "" if brk() gives no memory. @implies:
 * READ_IMPLIES_EXEC or 0. @error: the error of mmap(PROT_READ | PROT_WRITE), or 0.
 */
static void heap_permissions(unsigned long implies, char *permissions, int *error)
{
	unsigned long old, end;
	int before = personality(0xffffffff);
	char *at;

	personality(before | implies);
	at = map_at(NULL, psize(), RW);
	*error = at == MAP_FAILED ? errno : 0;
	old = syscall(__NR_brk, 0);
	end = (old + psize() - 1) & -psize();
	syscall(__NR_brk, end + psize());
	permissions_of(end, permissions);
	syscall(__NR_brk, old);
	personality(before);
	if (at != MAP_FAILED)
		munmap(at, psize());
}

/*
 * With PR_SET_MDWE, a process gets no memory that is writable and executable, also if its
 * personality says that each readable mapping is executable. Without PR_SET_MDWE, such a process
 * gets it: this is the control. Known issue 109: brk() does not check PR_SET_MDWE.
 */
TEST_F(map_limits, no_writable_code)
{
	char heap[5], *at;
	int error;
	pid_t child = fork();

	if (!child) {
		heap_permissions(READ_IMPLIES_EXEC, heap, &error);
		_exit(error || strcmp(heap, "rwxp"));
	}
	ASSERT_EQ(0, child_of(child));

	ASSERT_EQ(0, prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0));
	EXPECT_EQ(MAP_FAILED, map_at(NULL, psize(), RW | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	at = map_at(NULL, psize(), RW);
	ASSERT_NE(MAP_FAILED, at);
	EXPECT_EQ(-1, mprotect(at, psize(), PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	heap_permissions(0, heap, &error);
	EXPECT_EQ(0, error);
	EXPECT_STREQ("rw-p", heap);

	heap_permissions(READ_IMPLIES_EXEC, heap, &error);
	EXPECT_EQ(EACCES, error);
	if (!strcmp(heap, "rwxp")) {
		KNOWN_ISSUE(109, "brk() gives writable and executable memory");
		return;
	}
	EXPECT_TRUE(!heap[0] || !strcmp(heap, "rw-p"))
		TH_LOG("permissions of the heap: %s", heap);
	STALE_ISSUE(109);
}

/*
 * A mapping of one page grows by GROWTH pages, in each of ROUNDS rounds. No mapping may be closer
 * than the stack guard gap, so there is nothing in ROOM pages.
 */
#define GROWTH 16
#define ROUNDS 9
#define ROOM 1024

FIXTURE(growth)
{
	char *top;	/* the page that is mapped first */
};

FIXTURE_VARIANT(growth)
{
	int prot;
	int flags;
	bool charged;	/* whether Committed_AS counts such a mapping */
};

FIXTURE_VARIANT_ADD(growth, writable)
{
	.prot = RW,
	.charged = true,
};

FIXTURE_VARIANT_ADD(growth, read_only)
{
	.prot = PROT_READ,
};

FIXTURE_VARIANT_ADD(growth, no_reserve)
{
	.prot = RW,
	.flags = MAP_NORESERVE,
};

FIXTURE_SETUP(growth)
{
	char *room;

	if (access("/tests/list", F_OK))
		SKIP(return, "runs only in the virtual machine");
	room = map_at(NULL, bytes(ROOM), PROT_NONE);
	ASSERT_NE(MAP_FAILED, room);
	munmap(room, bytes(ROOM));
	self->top = room + bytes(ROOM / 2);
}

FIXTURE_TEARDOWN(growth)
{
}

static long committed(void)
{
	return size_in("/proc/meminfo", "Committed_AS");
}

static int compare(const void *a, const void *b)
{
	return *(const long *)a < *(const long *)b ? -1 : *(const long *)a > *(const long *)b;
}

static long median(long *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare);
	return values[ROUNDS / 2];
}

/* Map the page at @top, and read a page far below. Returns how much Committed_AS grew, or -1. */
static long grow(char *top, int prot, int flags)
{
	long before;

	if (mmap(top, psize(), prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN |
		 MAP_FIXED_NOREPLACE | flags, -1, 0) != top)
		return -1;
	before = committed();
	return try_access(top - bytes(GROWTH), false) ? -1 : committed() - before;
}

/*
 * The growth of a mapping counts as committed only if the mapping itself counts. When munmap() has
 * removed the mapping, Committed_AS is as before. Known issue 106: the growth always counts, and
 * if the mapping does not count, munmap() gives nothing back.
 */
TEST_F(growth, ends_with_munmap)
{
	long grown[ROUNDS], left[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		long before = committed();

		grown[i] = grow(self->top, variant->prot, variant->flags);
		ASSERT_EQ(0, munmap(self->top - bytes(GROWTH), bytes(GROWTH + 1)));
		left[i] = committed() - before;
	}
	DID(ROUNDS, "mappings that grew");
	if (!variant->charged && median(grown) == GROWTH && median(left) == GROWTH) {
		KNOWN_ISSUE(106, "after munmap(), Committed_AS still counts what was grown");
		return;
	}
	EXPECT_EQ(variant->charged ? GROWTH : 0, median(grown));
	EXPECT_EQ(0, median(left));
	if (!variant->charged)
		STALE_ISSUE(106);
}

/*
 * When the process of the mapping has ended, Committed_AS is as before, too.
 */
TEST_F(growth, ends_with_process)
{
	long left[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		long before = committed();
		pid_t child = fork();

		if (!child)
			_exit(grow(self->top, variant->prot, variant->flags) < 0);
		ASSERT_EQ(0, child_of(child));
		left[i] = committed() - before;
	}
	DID(ROUNDS, "processes that ended");
	if (!variant->charged && median(left) == GROWTH) {
		KNOWN_ISSUE(106, "after the exit, Committed_AS still counts what was grown");
		return;
	}
	EXPECT_EQ(0, median(left));
	if (!variant->charged)
		STALE_ISSUE(106);
}

TEST_HARNESS_MAIN
