// SPDX-License-Identifier: GPL-2.0
/*
 * The content of anonymous memory in a core file.
 *
 * Proves: a core file has the content of all pages, single pages and huge pages. This also holds
 * for pages that userfaultfd protects, against writes or against all accesses, synchronously or
 * asynchronously. And it holds for pages that another process moves to another node while the
 * kernel writes the core file.
 *
 * How: a child fills memory, and dumps core. The test compares the core file with what the child
 * has written. Memory that nobody protects, and single pages that move, are the controls.
 *
 * Does not prove: anything about hugetlb pages (mte_core has their tags) and files.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=core_memory
 */
#include "core_file.h"
#include "folio_listen.h"
#include "folio_owner.h"
#include "folio_pmd.h"

/* Definitions of the kernel's headers in 7.3, for older headers. */
#define FEATURE_RWP BIT_ULL(17)
#define FEATURE_RWP_ASYNC BIT_ULL(18)
#define REGISTER_RWP BIT_ULL(3)
#define RWPROTECT _IOWR(UFFDIO, 0x09, struct uffdio_writeprotect)

/* The bit of an entry of pagemap that says that userfaultfd protects the page. */
#define PROTECTED BIT_ULL(57)

/* How much memory moves, at least. */
#define MOVING (16UL << 20)

/* So many core files are written while the memory moves. */
#define ROUNDS 5

/*
 * struct shared - what the processes of a test share
 * @memory: the memory of the child
 * @ready: the child has filled its memory, and waits
 * @moves: how many folios have moved so far
 */
struct shared {
	struct memory memory;
	bool ready;
	unsigned long moves;
};

/* @order: of the folios; @go: the child dumps core when this pipe is closed */
struct dumper {
	char folder[sizeof(CORE_FOLDER)];
	struct shared *shared;
	int order;
	int go[2];
};

/* Returns NULL, or the reason why a child cannot dump core into a new folder. */
static const char *dumper_setup(struct dumper *d, bool huge)
{
	const char *why;

	d->folder[0] = 0;
	if (huge && !pmd_pages())
		return NO_HUGE_PAGES;
	d->order = huge ? order_of(pmd_pages()) : 0;
	why = folio_settings(d->order) ?: core_elsewhere();
	d->shared = mmap(NULL, sizeof(*d->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!why && d->shared == MAP_FAILED)
		why = "out of memory";
	if (why)
		return why;
	memcpy(d->folder, CORE_FOLDER, sizeof(CORE_FOLDER));
	return mkdtemp(d->folder) ? NULL : "no folder for core files";
}

static void dumper_free(struct dumper *d)
{
	if (d->folder[0])
		rmdir(d->folder);
}

/* How userfaultfd protects the memory: not at all, against writes, or against all accesses. */
enum how { NONE, WRITES, ALL, ALL_ASYNC };

/* Open userfaultfd for this kind of protection. Returns its descriptor, or -1. */
static int watcher(enum how how)
{
	return listener(how == WRITES ? UFFD_FEATURE_PAGEFAULT_FLAG_WP :
			how == ALL ? FEATURE_RWP : FEATURE_RWP | FEATURE_RWP_ASYNC);
}

/* Protect all of the memory. Returns true on success. */
static bool protect_memory(const struct memory *m, enum how how)
{
	struct uffdio_writeprotect arguments = {
		.range = { (unsigned long)m->at, bytes(m->pages) },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	struct uffdio_register where = {
		.range = arguments.range,
		.mode = how == WRITES ? UFFDIO_REGISTER_MODE_WP : REGISTER_RWP,
	};
	int uffd = watcher(how);

	if (uffd < 0 || ioctl(uffd, UFFDIO_REGISTER, &where) ||
	    ioctl(uffd, how == WRITES ? UFFDIO_WRITEPROTECT : RWPROTECT, &arguments))
		return false;
	for (unsigned int page = 0; page < m->pages; page++)
		if (!pagemap_has(m->at + bytes(page), PROTECTED))
			return false;
	return true;
}

/* In a child: fill memory, protect it, wait until the parent closes the pipe, and dump core. */
static void fill_and_dump(struct dumper *d, unsigned int folios, enum how how)
{
	struct memory *m = &d->shared->memory;
	const long huge = d->order ? folios << d->order : 0;
	char byte;

	close(d->go[1]);
	if (!core_prepare(d->folder) || memory_map(m, ANON, d->order, folios) ||
	    smaps_pages(m->at, "AnonHugePages") != huge ||
	    (how != NONE && !protect_memory(m, how)))
		_exit(1);
	__atomic_store_n(&d->shared->ready, true, __ATOMIC_RELEASE);
	if (read(d->go[0], &byte, 1))
		_exit(1);
	core_dump();
}

/* Start such a child, and wait until it has filled its memory. Returns its process, or -1. */
static pid_t dumper_start(struct dumper *d, unsigned int folios, enum how how)
{
	pid_t child;

	d->shared->ready = false;
	if (pipe(d->go))
		return -1;
	child = fork();
	if (!child)
		fill_and_dump(d, folios, how);
	close(d->go[0]);
	while (child > 0 && !__atomic_load_n(&d->shared->ready, __ATOMIC_ACQUIRE)) {
		if (waitpid(child, NULL, WNOHANG))
			return -1;
		usleep(1000);
	}
	return child;
}

/* How many pages of the memory are as they should be in a core file, and how many contain zeros. */
struct found {
	unsigned int right;
	unsigned int zeros;
};

/* Let the child dump core, and compare its memory with the core file. Returns false on failure. */
static bool dumper_finish(struct dumper *d, pid_t child, struct found *found)
{
	const struct memory *m = &d->shared->memory;
	const char *memory = NULL;
	struct core core;
	int status = 0;

	*found = (struct found){};
	close(d->go[1]);
	waitpid(child, &status, 0);
	core_take(d->folder, &core);
	if (core_written(status) && core.at)
		memory = core_memory(&core, m->at, bytes(m->pages));
	for (unsigned int page = 0; memory && page < m->pages; page++) {
		found->right += page_is(memory + bytes(page), pattern(page));
		found->zeros += page_is(memory + bytes(page), 0);
	}
	core_free(&core);
	return memory;
}

FIXTURE(core_protected)
{
	struct dumper dumper;
};

FIXTURE_VARIANT(core_protected)
{
	bool huge;
	enum how how;
};

FIXTURE_VARIANT_ADD(core_protected, single)
{
	.how = NONE,
};

FIXTURE_VARIANT_ADD(core_protected, single_writes)
{
	.how = WRITES,
};

FIXTURE_VARIANT_ADD(core_protected, single_all)
{
	.how = ALL,
};

FIXTURE_VARIANT_ADD(core_protected, single_all_async)
{
	.how = ALL_ASYNC,
};

FIXTURE_VARIANT_ADD(core_protected, huge)
{
	.huge = true,
	.how = NONE,
};

FIXTURE_VARIANT_ADD(core_protected, huge_writes)
{
	.huge = true,
	.how = WRITES,
};

FIXTURE_VARIANT_ADD(core_protected, huge_all)
{
	.huge = true,
	.how = ALL,
};

FIXTURE_VARIANT_ADD(core_protected, huge_all_async)
{
	.huge = true,
	.how = ALL_ASYNC,
};

FIXTURE_SETUP(core_protected)
{
	const char *why = dumper_setup(&self->dumper, variant->huge);
	int uffd = why || variant->how == NONE ? -1 : watcher(variant->how);

	if (!why && variant->how != NONE && uffd < 0)
		why = variant->how == WRITES ? "userfaultfd cannot protect against writes" :
		      "userfaultfd cannot protect against reads";
	close(uffd);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(core_protected)
{
	dumper_free(&self->dumper);
}

/*
 * A core file has the content of protected pages.
 *
 * Known issue 98: if the pages are protected against all accesses, it has zeros instead. With
 * asynchronous protection, only huge pages are affected.
 */
TEST_F(core_protected, has_content)
{
	const bool issue = variant->how == ALL || (variant->how == ALL_ASYNC && variant->huge);
	const unsigned int folios = variant->huge ? 1 : 64;
	struct found found;
	unsigned int pages;
	pid_t child;

	child = dumper_start(&self->dumper, folios, variant->how);
	ASSERT_LT(0, child);
	ASSERT_TRUE(dumper_finish(&self->dumper, child, &found));
	pages = self->dumper.shared->memory.pages;
	DID(pages, "pages compared");
	if (issue && found.zeros == pages) {
		KNOWN_ISSUE(98, "a core file has zeros instead of protected memory");
		return;
	}
	EXPECT_EQ(pages, found.right) {
		TH_LOG("%u pages contain zeros", found.zeros);
	}
	if (issue)
		STALE_ISSUE(98);
}

FIXTURE(core_moving)
{
	struct dumper dumper;
};

FIXTURE_VARIANT(core_moving)
{
	bool huge;
};

FIXTURE_VARIANT_ADD(core_moving, single)
{
	.huge = false,
};

FIXTURE_VARIANT_ADD(core_moving, huge)
{
	.huge = true,
};

FIXTURE_SETUP(core_moving)
{
	const char *why = dumper_setup(&self->dumper, variant->huge);
	static char here;
	int other;

	here = 1;
	other = !move_page(&here, NULL);
	if (!why && move_page(&here, &other) == -ENODEV)
		why = "needs two NUMA nodes";
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(core_moving)
{
	dumper_free(&self->dumper);
}

/* In another process: move the first page of each folio to and fro, until the child has ended. */
static void move_forever(const struct dumper *d, pid_t child, unsigned int folios)
{
	const struct memory *m = &d->shared->memory;
	char **list = malloc(folios * sizeof(*list));
	int *nodes = malloc(folios * sizeof(*nodes)), *status = malloc(folios * sizeof(*status));

	close(d->go[1]);
	for (int to = 0;; to = !to) {
		for (unsigned int i = 0; i < folios; i++) {
			list[i] = m->at + bytes(i << m->order);
			nodes[i] = to;
		}
		if (syscall(__NR_move_pages, child, (long)folios, list, nodes, status,
			    MPOL_MF_MOVE) < 0)
			_exit(0);
		for (unsigned int i = 0; i < folios; i++)
			__atomic_fetch_add(&d->shared->moves, status[i] == to, __ATOMIC_RELAXED);
	}
}

/*
 * A child dumps core while another process moves its folios to and fro. The core file has the
 * content of each page.
 *
 * Known issue 97: a page has zeros in the core file if its huge page is moving when the kernel
 * wants to write it.
 */
TEST_F_TIMEOUT(core_moving, has_content, 120)
{
	struct shared *shared = self->dumper.shared;
	const unsigned int folios = variant->huge ? (MOVING / read_pmd_pagesize() ?: 1) : 1024;
	unsigned long before, moves = 0;
	struct found found = {};
	unsigned int pages = 0;

	for (int round = 0; round < ROUNDS && found.right == pages; round++) {
		pid_t child = dumper_start(&self->dumper, folios, NONE), mover;

		ASSERT_LT(0, child);
		pages = shared->memory.pages;
		mover = fork();
		if (!mover)
			move_forever(&self->dumper, child, folios);
		ASSERT_LT(0, mover);
		before = __atomic_load_n(&shared->moves, __ATOMIC_RELAXED);
		ASSERT_TRUE(dumper_finish(&self->dumper, child, &found));
		moves += __atomic_load_n(&shared->moves, __ATOMIC_RELAXED) - before;
		kill(mover, SIGKILL);
		waitpid(mover, NULL, 0);
	}
	DID(moves, "folios moved during a core dump");
	TH_LOG("%u of %u pages are right, %u contain zeros", found.right, pages, found.zeros);
	if (variant->huge && found.zeros && found.right + found.zeros == pages) {
		KNOWN_ISSUE(97, "a core file has zeros instead of a huge page that moves");
		return;
	}
	EXPECT_EQ(pages, found.right);
	if (variant->huge)
		STALE_ISSUE(97);
}

TEST_HARNESS_MAIN
