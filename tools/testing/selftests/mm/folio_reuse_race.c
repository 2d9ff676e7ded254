// SPDX-License-Identifier: GPL-2.0
/*
 * Writes to a large folio while processes that share it come and go, while it is
 * migrated, and while others take references to its pages. Each write makes the
 * kernel decide whether the folio belongs to one process alone.
 *
 * Proves: no process ever sees what another one wrote, and loses nothing that it
 * wrote itself; and no check of the kernel fails, with CONFIG_DEBUG_VM=y.
 *
 * Does not prove: the absence of races; each case runs for some seconds. The
 * virtual machine gives this program two CPUs.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_reuse_race
 */
#include <stdatomic.h>
#include <time.h>

#include "folio_owner.h"

#define SECONDS 6
#define WRITERS 2
#define CHILDREN 3
/* As many of a huge page are worked on, so that rounds are short. */
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
		SKIP(return, "no huge pages, or of more than 4 MiB");
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

/* What each page begins with: the process that wrote it last, and how often it did. */
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
 * @memory: what is worked on
 * @rest: its pages are those with this remainder
 * @times: how often it has written to them, or read
 * @wrong: a page that did not have what it should, or -1
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

/* Take references to pages by all lockless ways, and read what they hold. */
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
		/* What was in the pipe is older than what is here now, or the same. */
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

/* In a child: what it sees stands still, until it writes itself; and again then. */
static int live(const struct memory *m, unsigned int number)
{
	unsigned long *times = mmap(NULL, m->pages * sizeof(*times), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int page;

	for (page = 0; page < m->pages; page++)
		times[page] = note(m, page)->times;
	/* Some give back what they will not look at. */
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
 * [mapped 38] [bug B36] Two threads write, one takes references, and three
 * children share the folio for a while; then the same with another folio.
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
				TH_LOG("a child saw: 1 another's write, 2 not its own ones");
			}
		/* After the children: now it is the parent's alone, again and again. */
		usleep(2000);
		atomic_store(&stop, true);
		for (int i = 0; i <= WRITERS; i++) {
			pthread_join(workers[i].thread, NULL);
			ASSERT_EQ(-1, workers[i].wrong) {
				TH_LOG("%s: page %u", i < WRITERS ? "a writer" : "the reader",
				       workers[i].wrong);
			}
		}
		referred += workers[WRITERS].times;
		memory_free(m);
	}
	DID(rounds, "folios shared and not any more");
	DID(referred, "references taken beside that");
}

#define SECTOR 512

/**
 * struct direct - a thread that reads a file past the page cache, into one page
 * @at: the page; the file's pages have their patterns
 * @fd: the file
 * @reads: how often it has read a sector
 * @wrong: reads after which something else was in the page
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
 * [mapped 32] One thread reads a file into the begin of a page, past the page
 * cache: the page is pinned while that is under way. Another writes to the end
 * of the page, and children come and go. What was read is there each time: the
 * write did not go to a copy meanwhile.
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
		SKIP(return, "no file system at " FOLIO_FILES " that reads past the page cache");
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
		TH_LOG("so many reads went to a page that was not the process's any more");
	}
	DID(direct.reads, "reads past the page cache");
	DID(forks, "children beside them");
	close(direct.fd);
}

#define FOLIOS 16

/**
 * struct beside - what a writer and the process that migrates share
 * @turn: the folio that is migrated, from 1; LAST ends the writer
 * @done: the folio that the writer has written to
 * @longest: nanoseconds that a migration takes
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

/* Write to one page of each folio, at some time while it is migrated. */
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

/* The first page that has not what it should; -1 if all have. @wrote: by this process. */
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
 * [mapped 38] A folio that two processes share is migrated. The entries of one
 * process are back before those of the other: for a moment the folio looks like
 * that process's own. It writes just then. The kernel looks twice whether the
 * folio is shared, the second time with all counts stable; without that the
 * write reaches the other process. Parent and child write in turn, since either
 * may be the first to have its entries back. One write for each folio: the
 * second migration of a folio splits it (known issue 8).
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
		SKIP(return, "one huge page is mapped by one entry: another function decides");
	if (access("/sys/devices/system/node/node1", F_OK))
		SKIP(return, "needs two nodes to migrate between");
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
			TH_LOG("page %d of the parent is not as it was", wrong);
		}
		close(go[0]);
		close(go[1]);
		ASSERT_EQ(0, child_of(child)) {
			TH_LOG("1: a page of the child is not as it was");
		}
		memory_free(m);
	}
	TH_LOG("%lu rounds of %d folios", rounds, FOLIOS);
	DID(moved, "shared folios migrated");
	munmap(b, bytes(1));
}

TEST_HARNESS_MAIN
