// SPDX-License-Identifier: GPL-2.0
/*
 * Threads and processes write to a large folio during forks, exits and
 * migration, and while other threads take references to pages of the folio. At
 * each write the kernel decides whether the folio belongs to one process alone.
 *
 * Proves: no process sees a write by another process, and no process loses its
 * own write. With CONFIG_DEBUG_VM=y, no check of the kernel fails.
 *
 * Does not prove: the absence of races, since each case runs for only some
 * seconds. The virtual machine gives this program two CPUs.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_reuse_race
 */
#include <stdatomic.h>
#include <time.h>

#include "folio_owner.h"

#define SECONDS 6
#define WRITERS 2
#define CHILDREN 3
/*
 * The threads use at most this many pages of a folio, so that rounds are short.
 */
#define PAGES 64

FIXTURE(folio_reuse_race)
{
	struct memory memory;
};

FIXTURE_VARIANT(folio_reuse_race)
{
	bool huge;
};

FIXTURE_VARIANT_ADD(folio_reuse_race, block)
{
	.huge = false,
};

FIXTURE_VARIANT_ADD(folio_reuse_race, huge_page)
{
	.huge = true,
};

FIXTURE_SETUP(folio_reuse_race)
{
	int order = order_of(cont_ptes());
	size_t table = read_pmd_pagesize();
	const char *why;

	self->memory.fd = -1;
	if (variant->huge && (!table || table > 4 << 20))
		SKIP(return, "no huge pages, or huge pages of more than 4 MiB");
	if (variant->huge)
		order = order_of(table / psize());
	self->memory.order = order;
	why = folio_settings(order);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(folio_reuse_race)
{
	memory_free(&self->memory);
}

/*
 * The first two words of each page. One word is the number of the process that
 * wrote to the page last. The other word is how often the parent wrote to the
 * page.
 */
struct note {
	atomic_ulong who;
	atomic_ulong times;
};

static struct note *note(const struct memory *m, unsigned int page)
{
	return (struct note *)(m->at + bytes(page));
}

#define PARENT 0

static atomic_bool stop;

/**
 * struct worker - a thread of the parent
 * @memory: the memory that it uses
 * @rest: a writer uses the pages whose index is @rest modulo WRITERS
 * @times: for a writer, how often it has written to all its pages; for the
 *	reader, how many pages it has read
 * @wrong: a page in which the thread found wrong content, or -1
 */
struct worker {
	struct memory *memory;
	unsigned int rest;
	unsigned long times;
	int wrong;
	pthread_t thread;
};

static void *write_pages(void *argument)
{
	struct worker *w = argument;
	struct memory *m = w->memory;

	while (!atomic_load(&stop)) {
		for (unsigned int page = w->rest; page < m->pages; page += WRITERS) {
			struct note *at = note(m, page);

			if (atomic_load(&at->who) != PARENT || atomic_load(&at->times) != w->times)
				w->wrong = page;
			atomic_store(&at->times, w->times + 1);
		}
		w->times++;
		sched_yield();
	}
	return NULL;
}

/*
 * Take references to pages by vmsplice() and process_vm_readv(). Check the
 * content of the pipe, and the copy that process_vm_readv() makes.
 */
static void *take_references(void *argument)
{
	struct worker *w = argument;
	struct memory *m = w->memory;
	int ends[2];

	if (pipe(ends))
		return NULL;
	for (unsigned int page = 0; !atomic_load(&stop); page = (page + 1) % m->pages) {
		struct iovec vector = { m->at + bytes(page), bytes(1) };
		struct note seen = {}, copy = {};
		struct iovec to = { &copy, sizeof(copy) };
		struct iovec from = { m->at + bytes(page), sizeof(copy) };
		size_t left = bytes(1);

		if (vmsplice(ends[1], &vector, 1, 0) != (ssize_t)bytes(1))
			break;
		while (left) {
			char buffer[1024];
			ssize_t got = read(ends[0], buffer, sizeof(buffer));

			if (got <= 0)
				break;
			if (left == bytes(1))
				memcpy(&seen, buffer, sizeof(seen));
			left -= got;
		}
		/*
		 * The pipe was read before process_vm_readv() made this copy,
		 * so the count in the pipe must not be higher than the count in
		 * the copy.
		 */
		if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != sizeof(copy))
			break;
		if (seen.who != PARENT || copy.who != PARENT || seen.times > copy.times)
			w->wrong = page;
		w->times++;
		sched_yield();
	}
	close(ends[0]);
	close(ends[1]);
	return NULL;
}

/*
 * In a child: check pages and write to some of them. The child must see no
 * changes except its own writes. Returns 1 if a page had wrong content before
 * the child wrote to it, 2 if a page had wrong content afterwards, else 0.
 */
static int live(const struct memory *m, unsigned int number)
{
	unsigned long *times = mmap(NULL, m->pages * sizeof(*times), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int page;

	for (page = 0; page < m->pages; page++)
		times[page] = note(m, page)->times;
	/* Child 1 unmaps the second half of the pages, which no child checks. */
	if (number == 1)
		munmap(m->at + bytes(m->pages / 2), bytes(m->pages / 2));
	for (page = 0; page < m->pages / 2; page++) {
		if (note(m, page)->who != PARENT || note(m, page)->times != times[page])
			return 1;
		if (page % 3 == number)
			note(m, page)->who = number + 1;
	}
	sched_yield();
	for (page = 0; page < m->pages / 2; page++)
		if (note(m, page)->who != (page % 3 == number ? number + 1 : PARENT) ||
		    note(m, page)->times != times[page])
			return 2;
	return 0;
}

/*
 * Two threads write to a folio and a third thread takes references to pages of
 * the folio, while three children are forked and exit. Each round has a fresh
 * folio. The children see no write that the parent makes after fork(), and the
 * parent sees no write by a child. Commit 8bdea2fce980 ("mm/memory: move sanity
 * checks in do_wp_page() after mapcount vs. refcount stabilization") fixed a
 * bug here.
 */
TEST_F_TIMEOUT(folio_reuse_race, writes_forks_references, 60)
{
	struct memory *m = &self->memory, part;
	int order = m->order;
	unsigned long rounds = 0, referred = 0;
	time_t begin = time(NULL);

	for (; time(NULL) - begin < SECONDS; rounds++) {
		struct worker workers[WRITERS + 1];
		pid_t children[CHILDREN];
		const char *why = memory_map(m, ANON, order, 1);

		if (why)
			SKIP(return, "%s", why);
		part = *m;
		if (part.pages > PAGES)
			part.pages = PAGES;
		for (unsigned int page = 0; page < part.pages; page++)
			*note(m, page) = (struct note){ .who = PARENT, .times = 0 };
		atomic_store(&stop, false);
		for (int i = 0; i <= WRITERS; i++) {
			workers[i] = (struct worker){ .memory = &part, .rest = i, .wrong = -1 };
			ASSERT_EQ(0, pthread_create(&workers[i].thread, NULL,
						    i < WRITERS ? write_pages : take_references,
						    &workers[i]));
		}
		for (int i = 0; i < CHILDREN; i++) {
			children[i] = fork();
			if (!children[i])
				_exit(live(&part, i));
			ASSERT_LT(0, children[i]);
		}
		for (int i = 0; i < CHILDREN; i++)
			EXPECT_EQ(0, child_of(children[i])) {
				TH_LOG("status 1: a page is wrong before the writes; 2: after");
			}
		/*
		 * After the children have exited, only the parent maps the
		 * folio, and a write may reuse the folio.
		 */
		usleep(2000);
		atomic_store(&stop, true);
		for (int i = 0; i <= WRITERS; i++) {
			pthread_join(workers[i].thread, NULL);
			ASSERT_EQ(-1, workers[i].wrong) {
				TH_LOG("%s found wrong content in page %u",
				       i < WRITERS ? "a writer" : "the reader", workers[i].wrong);
			}
		}
		referred += workers[WRITERS].times;
		memory_free(m);
	}
	DID(rounds, "folios shared and then owned by one process");
	DID(referred, "references taken to pages");
}

#define SECTOR 512

/**
 * struct direct - a thread that reads a file into one page with O_DIRECT
 * @at: the page
 * @fd: the file; each of its pages has a pattern
 * @reads: how many sectors it has read
 * @wrong: how many reads left wrong content in the page
 */
struct direct {
	char *at;
	int fd;
	unsigned long reads, wrong;
	pthread_t thread;
};

static void *read_directly(void *argument)
{
	struct direct *d = argument;

	while (!atomic_load(&stop)) {
		unsigned int page = d->reads % PAGES;

		if (pread(d->fd, d->at, SECTOR, bytes(page)) != SECTOR)
			break;
		for (unsigned int i = 0; i < SECTOR; i++) {
			if ((unsigned char)d->at[i] != pattern(page)) {
				d->wrong++;
				break;
			}
		}
		d->reads++;
	}
	return NULL;
}

static void *write_beside(void *argument)
{
	struct direct *d = argument;

	while (!atomic_load(&stop))
		*(atomic_char *)(d->at + bytes(1) - 1) += 1;
	return NULL;
}

/*
 * One thread reads a file with O_DIRECT into the start of a page. Each read
 * pins the page until the read is done. Meanwhile another thread writes to the
 * end of the page, and the process forks children, which exit. After each read
 * the page holds the data that was read. If a write during the read gave the
 * process a copy of the page, this data would be missing in the copy.
 */
TEST_F_TIMEOUT(folio_reuse_race, direct_read_beside_forks, 60)
{
	struct memory *m = &self->memory;
	struct direct direct = { .fd = memory_file(XFS, PAGES) };
	const char *why = memory_map(m, ANON, m->order, 1);
	unsigned long forks = 0;
	time_t begin = time(NULL);
	pthread_t writer;

	if (direct.fd < 0 || fcntl(direct.fd, F_SETFL, O_DIRECT))
		SKIP(return, "no file system at " FOLIO_FILES " with O_DIRECT");
	if (why)
		SKIP(return, "%s", why);
	direct.at = m->at + bytes(m->pages / 2);
	atomic_store(&stop, false);
	ASSERT_EQ(0, pthread_create(&direct.thread, NULL, read_directly, &direct));
	ASSERT_EQ(0, pthread_create(&writer, NULL, write_beside, &direct));
	for (; time(NULL) - begin < SECONDS / 2; forks++) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		ASSERT_EQ(0, child_of(child));
	}
	atomic_store(&stop, true);
	pthread_join(direct.thread, NULL);
	pthread_join(writer, NULL);
	EXPECT_EQ(0, direct.wrong) {
		TH_LOG("a read went to a page that the process no longer mapped");
	}
	DID(direct.reads, "reads with O_DIRECT");
	DID(forks, "children forked during the reads");
	close(direct.fd);
}

#define FOLIOS 16

/**
 * struct beside - what the migrating process and the writer share
 * @turn: the number of the folio that is migrated now; the first number is 1
 * @done: the number of the last folio that the writer wrote to
 * @longest: how long the last migration took, in nanoseconds
 */
struct beside {
	atomic_int turn;
	atomic_int done;
	atomic_long longest;
};

#define LAST (FOLIOS + 1)
#define WRITTEN 1

static long nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* Write to one page of each folio, at a random time during its migration. */
static void write_in_turn(const struct memory *m, struct beside *b)
{
	unsigned int seed = getpid();

	for (int turn = 1; turn < LAST; turn++) {
		unsigned int page = ((turn - 1) << m->order) + WRITTEN;
		long begin, wait;

		while (atomic_load(&b->turn) < turn)
			;
		begin = nanoseconds();
		wait = rand_r(&seed) % (atomic_load(&b->longest) + 1);
		while (nanoseconds() - begin < wait)
			;
		memset(m->at + bytes(page), 0xee, bytes(1));
		atomic_store(&b->done, turn);
	}
}

struct in_turn {
	const struct memory *memory;
	struct beside *beside;
};

static void *write_in_turn_thread(void *argument)
{
	struct in_turn *w = argument;

	write_in_turn(w->memory, w->beside);
	return NULL;
}

/*
 * The first page with wrong content, or -1. @wrote: whether this process was
 * the writer.
 */
static int wrong_page(const struct memory *m, bool wrote)
{
	unsigned int mask = (1U << m->order) - 1;

	for (unsigned int page = 0; page < m->pages; page++) {
		bool own = wrote && (page & mask) == WRITTEN;

		if (!page_is(m->at + bytes(page), own ? 0xee : pattern(page)))
			return page;
	}
	return -1;
}

/*
 * A parent and its child share a folio. The parent migrates the folio, and
 * meanwhile one of the two processes writes to it. The kernel restores the
 * entries of one process first, so for a moment the folio looks as if only this
 * process mapped it. The kernel checks twice whether the folio is shared.
 * During the second check, the map counts of the folio no longer change.
 * Without the second check, the write would reach the other process. In each
 * round only one process writes: the parent and the child take turns. The case
 * migrates each folio only once, since a second migration would split the folio
 * (known issue 8).
 */
TEST_F_TIMEOUT(folio_reuse_race, write_beside_migration, 60)
{
	struct memory *m = &self->memory;
	struct beside *b = mmap(NULL, bytes(1), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned long moved = 0, rounds = 0;
	time_t begin = time(NULL);
	int order = m->order;

	ASSERT_NE(MAP_FAILED, b);
	if (variant->huge)
		SKIP(return, "one entry maps a huge page: another function handles the write");
	if (access("/sys/devices/system/node/node1", F_OK))
		SKIP(return, "needs two NUMA nodes");
	for (; time(NULL) - begin < SECONDS; rounds++) {
		struct in_turn writer = { m, b };
		bool child_writes = rounds & 1;
		pthread_t thread;
		int go[2], wrong;
		pid_t child;

		ASSERT_EQ(NULL, memory_map(m, ANON, order, FOLIOS));
		atomic_store(&b->turn, 0);
		atomic_store(&b->done, 0);
		ASSERT_EQ(0, pipe(go));
		child = fork();
		if (!child) {
			char byte;

			close(go[1]);
			if (child_writes)
				write_in_turn(m, b);
			if (read(go[0], &byte, 1))
				_exit(2);
			_exit(wrong_page(m, child_writes) >= 0);
		}
		ASSERT_LT(0, child);
		wrong = child_writes ? 0 :
			pthread_create(&thread, NULL, write_in_turn_thread, &writer);
		ASSERT_EQ(0, wrong);
		for (int turn = 1; turn < LAST; turn++) {
			void *at = m->at + bytes((turn - 1) << order);
			int node = move_page(at, NULL), status = -1, other = !node;
			long started;

			ASSERT_LE(0, node);
			atomic_store(&b->turn, turn);
			started = nanoseconds();
			syscall(__NR_move_pages, 0, 1L, &at, &other, &status, MPOL_MF_MOVE_ALL);
			atomic_store(&b->longest, nanoseconds() - started);
			moved += status == other;
			while (atomic_load(&b->done) < turn)
				;
		}
		if (!child_writes)
			pthread_join(thread, NULL);
		wrong = wrong_page(m, !child_writes);
		EXPECT_EQ(-1, wrong) {
			TH_LOG("page %d of the parent has wrong content", wrong);
		}
		close(go[0]);
		close(go[1]);
		ASSERT_EQ(0, child_of(child)) {
			TH_LOG("status 1: a page of the child has wrong content");
		}
		memory_free(m);
	}
	TH_LOG("%lu rounds of %d folios", rounds, FOLIOS);
	DID(moved, "shared folios migrated");
	munmap(b, bytes(1));
}

TEST_HARNESS_MAIN
