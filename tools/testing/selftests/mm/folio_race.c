// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that use a folded block while another thread changes part of it.
 *
 * Proves: threads that write to their own pages of a block get no signal and
 * lose no write while another thread protects, drops or moves other pages of
 * the block. The changes make the kernel unfold the block. The kernel folds it
 * again unless a page was replaced. A child that is forked during the writes
 * sees a consistent snapshot of each writer's counters. No write is lost when
 * the block is swapped out during the writes. GUP-fast finds the right pages
 * while another thread unfolds and folds the block.
 *
 *	pages 0 to n - 5	pages n - 4 to n - 1
 *	written by writers	changed by another thread
 *
 * arm64 folds a block when the kernel writes the last entry of the block.
 * Therefore the test lets the other thread change the last pages.
 *
 * How: in some rounds perf shows whether the block is folded. Each case must
 * see the block both folded and unfolded. If a page of the block was replaced,
 * the block cannot be folded again. The writers then wait until the test has
 * made a new block.
 *
 * Does not prove: the absence of races, since each case runs for only two
 * seconds. The virtual machine gives this program two CPUs.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_race
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "folio_state.h"

#define SECONDS 2
#define PATIENCE 20 /* seconds to wait for a block to be in swap */
#define WRITERS 2
/* perf is slow, so look() uses it only in every LOOK-th round. */
#define LOOK 4

FIXTURE(folio_race)
{
	struct memory memory;
	bool contpte;
	unsigned long folds;	/* how often the block was seen folded */
	unsigned long unfolds;	/* how often the block was seen unfolded */
};

FIXTURE_VARIANT(folio_race)
{
	enum memory_kind kind;
};

FIXTURE_VARIANT_ADD(folio_race, anon)
{
	.kind = ANON,
};

FIXTURE_VARIANT_ADD(folio_race, shmem)
{
	.kind = SHMEM,
};

static atomic_bool stop;
/* While this number is not 0, each writer stores it in its @held, and waits. */
static atomic_ulong hold;

FIXTURE_SETUP(folio_race)
{
	int order = order_of(cont_ptes());
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	atomic_store(&stop, false);
	atomic_store(&hold, 0);
	if (!why)
		why = memory_map(&self->memory, variant->kind, order, 1);
	if (why)
		SKIP(return, "%s", why);
	self->contpte = has_contpte() && perf_tells();
}

FIXTURE_TEARDOWN(folio_race)
{
	memory_free(&self->memory);
}

static bool within(time_t begin)
{
	return time(NULL) - begin < SECONDS;
}

/* A writer has these counters in each page. @first is @last or @last + 1. */
struct counters {
	atomic_ulong first;
	char gap[256];
	atomic_ulong last;
};

/**
 * struct writer - a thread that counts in its own pages of the block
 * @memory: the block
 * @odd: it writes to the pages whose index is @odd modulo WRITERS, except the
 *   last four pages
 * @rounds: how often it has counted in all its pages since the block was made
 * @held: the last number other than 0 that it found in hold
 * @wrong: a page that had lost the last write, or -1
 */
struct writer {
	struct memory *memory;
	unsigned int odd;
	atomic_ulong rounds;
	atomic_ulong held;
	int wrong;
	pthread_t thread;
};

/* The number of pages at the end of the block that have no writer. */
#define DISTURBED 4

static unsigned int first_disturbed(const struct memory *m)
{
	return m->pages - DISTURBED;
}

static char *last_page(const struct memory *m)
{
	return m->at + bytes(m->pages - 1);
}

static void *count(void *argument)
{
	struct writer *w = argument;
	struct memory *m = w->memory;

	while (!atomic_load(&stop)) {
		unsigned long held = atomic_load(&hold), rounds = atomic_load(&w->rounds);

		if (held) {
			atomic_store(&w->held, held);
			sched_yield();
			continue;
		}
		for (unsigned int page = w->odd; page < first_disturbed(m); page += WRITERS) {
			struct counters *at = (void *)(m->at + bytes(page));

			if (atomic_load(&at->first) != rounds || atomic_load(&at->last) != rounds)
				w->wrong = page;
			atomic_store(&at->first, rounds + 1);
			atomic_store(&at->last, rounds + 1);
		}
		atomic_store(&w->rounds, rounds + 1);
	}
	return NULL;
}

static void start(struct writer *writers, struct memory *m)
{
	memset(m->at, 0, bytes(first_disturbed(m)));
	for (unsigned int i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){ .memory = m, .odd = i, .wrong = -1 };
		pthread_create(&writers[i].thread, NULL, count, &writers[i]);
	}
}

/* Wait until each writer has incremented the counters in all of its pages once more. */
static void let_count(struct writer *writers)
{
	for (unsigned int i = 0; i < WRITERS; i++) {
		unsigned long before = atomic_load(&writers[i].rounds);

		/*
		 * The current round may have begun before this call, so wait
		 * until two rounds have ended.
		 */
		while (atomic_load(&writers[i].rounds) < before + 2)
			sched_yield();
	}
}

/*
 * Pause the writers, make a new block of zeros, and let the writers continue.
 * They increment the counters in the new block from 0 again. Returns whether
 * the block is one folio.
 */
static bool renew(struct writer *writers, struct memory *m)
{
	static unsigned long number;
	bool right;

	atomic_store(&hold, ++number);
	for (unsigned int i = 0; i < WRITERS; i++)
		while (atomic_load(&writers[i].held) != number)
			sched_yield();
	right = !madvise(m->at, bytes(m->pages), m->fd < 0 ? MADV_DONTNEED : MADV_REMOVE);
	memset(m->at, 0, bytes(m->pages));
	right &= is_folio(m, 0);
	for (unsigned int i = 0; i < WRITERS; i++)
		atomic_store(&writers[i].rounds, 0);
	atomic_store(&hold, 0);
	let_count(writers);
	return right;
}

/*
 * Check the block in every LOOK-th round. If @whole is true, the block must be
 * folded. If @whole is false, the block must be unfolded.
 */
static void look(struct __test_metadata *_metadata, FIXTURE_DATA(folio_race) * self,
		 unsigned long round, bool whole)
{
	size_t size;

	if (!self->contpte || round % LOOK)
		return;
	size = mapped_size(self->memory.at);
	/* perf may drop a sample. */
	if (!size)
		return;
	EXPECT_EQ(whole, size == bytes(cont_ptes())) {
		TH_LOG("in round %lu the block is mapped by entries of %zu bytes", round, size);
	}
	*(whole ? &self->folds : &self->unfolds) += 1;
}

/*
 * Stop the writers. Each writer must have incremented the counters in all of
 * its pages at least once, and must not have found a lost write.
 */
static void finish(struct __test_metadata *_metadata, FIXTURE_DATA(folio_race) * self,
		   struct writer *writers, unsigned long times)
{
	unsigned long rounds = 0;

	atomic_store(&stop, true);
	for (unsigned int i = 0; i < WRITERS; i++) {
		pthread_join(writers[i].thread, NULL);
		EXPECT_EQ(-1, writers[i].wrong) {
			TH_LOG("a write to page %d was lost", writers[i].wrong);
		}
		EXPECT_LT(0, atomic_load(&writers[i].rounds));
		rounds += atomic_load(&writers[i].rounds);
	}
	DID(times, "changes while the writers ran");
	DID(rounds, "rounds of the writers in the last block");
	if (self->contpte) {
		DID(self->folds, "times that the block was seen folded");
		DID(self->unfolds, "times that the block was seen unfolded");
	}
}

/*
 * mprotect() changes the last page of the block to PROT_NONE or PROT_READ and
 * back, many times. The threads that write to other pages of the block lose no
 * write.
 */
TEST_F(folio_race, mprotect_beside_writers)
{
	struct memory *m = &self->memory;
	struct writer writers[WRITERS];
	unsigned long times = 0;
	time_t begin;

	start(writers, m);
	for (begin = time(NULL); within(begin); times++) {
		int protection = times % 3 ? PROT_READ : PROT_NONE;

		look(_metadata, self, times, true);
		ASSERT_EQ(0, mprotect(last_page(m), bytes(1), protection));
		look(_metadata, self, times, false);
		ASSERT_EQ(0, mprotect(last_page(m), bytes(1), PROT_READ | PROT_WRITE));
	}
	finish(_metadata, self, writers, times);
	EXPECT_TRUE(page_is(last_page(m), pattern(m->pages - 1)));
	if (perf_missing(_metadata, has_contpte()))
		SKIP(return, NO_PERF);
}

/*
 * In each round MADV_DONTNEED drops one of the last four pages. Then a read at
 * the address of this page faults, and the fault maps a page again. The threads
 * that write to other pages of the block lose no write. In shared memory the
 * same page comes back, and a fault on the last page folds the block again.
 * Anonymous memory gets another page, so each round begins with a new block.
 */
TEST_F(folio_race, madvise_dontneed_beside_writers)
{
	struct memory *m = &self->memory;
	struct writer writers[WRITERS];
	unsigned long times = 0;
	time_t begin;

	start(writers, m);
	for (begin = time(NULL); within(begin); times++) {
		char *at = m->at + bytes(first_disturbed(m) + times % DISTURBED);

		if (variant->kind == ANON)
			ASSERT_TRUE(renew(writers, m));
		memset(at, 0x3c, bytes(1));
		look(_metadata, self, times, true);
		ASSERT_EQ(0, madvise(at, bytes(1), MADV_DONTNEED));
		look(_metadata, self, times, false);
		ASSERT_TRUE(page_is(at, variant->kind == ANON ? 0 : 0x3c));
		if (variant->kind == SHMEM) {
			ASSERT_EQ(0, madvise(last_page(m), bytes(1), MADV_DONTNEED));
			read_byte(last_page(m));
		}
	}
	finish(_metadata, self, writers, times);
	if (perf_missing(_metadata, has_contpte()))
		SKIP(return, NO_PERF);
}

/*
 * mremap() moves the last page of the block away and back, many times. The
 * threads that write to other pages of the block lose no write, and the moved
 * page keeps its content.
 */
TEST_F(folio_race, mremap_beside_writers)
{
	struct memory *m = &self->memory;
	struct writer writers[WRITERS];
	unsigned long times = 0;
	time_t begin;
	char *to;

	to = mmap(NULL, bytes(1), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	start(writers, m);
	for (begin = time(NULL); within(begin); times++) {
		int flags = MREMAP_MAYMOVE | MREMAP_FIXED;

		look(_metadata, self, times, true);
		ASSERT_EQ(to, mremap(last_page(m), bytes(1), bytes(1), flags, to));
		look(_metadata, self, times, false);
		ASSERT_EQ(last_page(m), mremap(to, bytes(1), bytes(1), flags, last_page(m)));
	}
	finish(_metadata, self, writers, times);
	EXPECT_TRUE(page_is(last_page(m), pattern(m->pages - 1)));
	if (perf_missing(_metadata, has_contpte()))
		SKIP(return, NO_PERF);
}

/*
 * A block is swapped out three times while writers use it, and no write is
 * lost. The block comes back from swap clean, and the next writes make it
 * dirty. The kernel must not lose these dirty bits when it reads and clears the
 * entries. No writer touches the last page. So if the memory is anonymous and
 * the last page is in swap, the block was swapped out. The writers often map
 * the block again before the block is in swap, so the case may need more
 * rounds.
 */
TEST_F(folio_race, pageout_under_writers)
{
	struct memory *m = &self->memory;
	unsigned long times = 0, away = 0;
	struct writer writers[WRITERS];
	time_t begin;

	if (!have_swap())
		SKIP(return, "no swap");
	if (variant->kind == ANON && !swaps_large())
		SKIP(return, "the kernel splits the folio before it swaps it out");
	start(writers, m);
	for (begin = time(NULL); within(begin) || (!away && time(NULL) - begin < PATIENCE);
	     times++) {
		ASSERT_TRUE(renew(writers, m));
		look(_metadata, self, times, true);
		for (int i = 0; i < 3; i++) {
			ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
			/*
			 * If a page of shared memory is in swap, the page table
			 * has no swap entry for this page. But smaps counts the
			 * pages of the file that are in swap.
			 */
			if (variant->kind == ANON)
				away += pagemap_has(last_page(m), PM_SWAP);
			else
				away += smaps_pages(m->at, "Swap") > 0;
			self->unfolds += !pagemap_has(last_page(m), PM_PRESENT);
			let_count(writers);
			read_byte(last_page(m));
		}
	}
	finish(_metadata, self, writers, times);
	DID(away, "times that the block was swapped out while writers used it");
	if (perf_missing(_metadata, has_contpte()))
		SKIP(return, NO_PERF);
}

/*
 * Children are forked while the writers increment counters in a folded block.
 * fork() may run in the middle of a writer's round. In this case the writer's
 * first pages already have the new count, and its other pages have the old
 * count. The child sees these counts. The counts do not change in the child.
 */
TEST_F_TIMEOUT(folio_race, fork_under_writers, 60)
{
	struct memory *m = &self->memory;
	struct writer writers[WRITERS];
	unsigned long times = 0;
	time_t begin;

	if (variant->kind != ANON)
		SKIP(return, "fork() does not copy shared memory");
	start(writers, m);
	for (begin = time(NULL); within(begin); times++) {
		pid_t child;

		ASSERT_TRUE(renew(writers, m));
		look(_metadata, self, times, true);
		child = fork();
		if (!child) {
			for (unsigned int i = 0; i < WRITERS; i++) {
				struct counters *head = (void *)(m->at + bytes(i));
				unsigned long before = head->first, round = before;

				for (unsigned int page = i; page < first_disturbed(m);
				     page += WRITERS) {
					struct counters *at = (void *)(m->at + bytes(page));

					if (at->first > before || at->last > at->first ||
					    at->last + 1 < at->first || at->last + 1 < round)
						_exit(1);
					before = at->last;
				}
				if (head->first != round)
					_exit(2);
			}
			_exit(0);
		}
		/*
		 * The first write after fork() makes the kernel copy a page,
		 * which unfolds the block.
		 */
		let_count(writers);
		look(_metadata, self, times, false);
		ASSERT_EQ(0, child_of(child)) {
			TH_LOG("status 1: counts out of order; 2: a count changed in the child");
		}
	}
	finish(_metadata, self, writers, times);
	if (perf_missing(_metadata, has_contpte()))
		SKIP(return, NO_PERF);
}

/**
 * struct changer - a thread that unfolds and folds the block
 * @memory: the block
 * @contpte: whether perf can show if the block is folded
 * @moves: how often the last page was moved away and back
 * @protects: how often the last page was made read-only and writable again
 * @folds: how often the block was seen folded
 * @unfolds: how often the block was seen unfolded
 * @failed: whether a call failed, or the block was in the wrong state. The
 *	block must be folded before each change. After the change, the block
 *	must be unfolded until the change is undone.
 */
struct changer {
	struct memory *memory;
	bool contpte;
	unsigned long moves, protects, folds, unfolds;
	bool failed;
};

static void *change(void *argument)
{
	struct changer *c = argument;
	char *last = last_page(c->memory), *to;
	unsigned long round;

	to = mmap(NULL, bytes(1), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (round = 0; !atomic_load(&stop) && !c->failed; round++) {
		int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
		bool asks = c->contpte && round % (4 * LOOK) < 2, moves = round % 2;

		if (asks) {
			c->failed |= !folded(c->memory, 0);
			c->folds++;
		}
		if (moves)
			c->failed |= mremap(last, bytes(1), bytes(1), flags, to) != to;
		else
			c->failed |= mprotect(last, bytes(1), PROT_READ);
		if (asks) {
			c->failed |= folded(c->memory, 0);
			c->unfolds++;
		}
		if (moves)
			c->failed |= mremap(to, bytes(1), bytes(1), flags, last) != last;
		else
			c->failed |= mprotect(last, bytes(1), PROT_READ | PROT_WRITE);
		*(moves ? &c->moves : &c->protects) += 1;
	}
	return NULL;
}

/*
 * vmsplice() finds the pages of a block by GUP-fast, without the page-table
 * lock, while another thread unfolds and folds the block. The pipe then holds
 * the content of the right pages. All pages have different content, so the test
 * would notice a wrong page. GUP-fast may miss the last page, which the other
 * thread changes. GUP-fast must not miss any other page.
 */
TEST_F(folio_race, gup_fast_beside_changes)
{
	struct memory *m = &self->memory;
	struct changer changer = { .memory = m, .contpte = self->contpte };
	char *copy = malloc(bytes(m->pages));
	unsigned long pages = 0, last = 0;
	pthread_t thread;
	time_t begin;
	int ends[2];

	ASSERT_NE(NULL, copy);
	ASSERT_EQ(0, pipe(ends));
	ASSERT_EQ(0, pthread_create(&thread, NULL, change, &changer));
	for (begin = time(NULL); within(begin);) {
		struct iovec block = { m->at, bytes(m->pages) };
		ssize_t came = vmsplice(ends[1], &block, 1, SPLICE_F_NONBLOCK);

		ASSERT_LE((ssize_t)bytes(m->pages < 16 ? m->pages - 1 : 15), came) {
			TH_LOG("GUP-fast did not find pages that no thread changed");
		}
		ASSERT_EQ(came, read(ends[0], copy, came));
		for (unsigned int page = 0; page < came / bytes(1); page++) {
			ASSERT_TRUE(page_is(copy + bytes(page), pattern(page))) {
				TH_LOG("page %u has the content of another page", page);
			}
		}
		pages += came / bytes(1);
		came = vmsplice(ends[1], &(struct iovec){ last_page(m), bytes(1) }, 1, 0);
		if (came > 0) {
			ASSERT_EQ(bytes(1), read(ends[0], copy, bytes(1)));
			ASSERT_TRUE(page_is(copy, pattern(m->pages - 1)));
			last++;
		}
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	EXPECT_FALSE(changer.failed);
	DID(pages, "pages found by GUP-fast");
	DID(last, "times that GUP-fast found the last page, which the other thread changes");
	DID(changer.moves, "moves by the other thread");
	DID(changer.protects, "changes of protection by the other thread");
	if (self->contpte) {
		DID(changer.folds, "times that the block was seen folded");
		DID(changer.unfolds, "times that the block was seen unfolded");
	}
	free(copy);
	if (perf_missing(_metadata, has_contpte()))
		SKIP(return, NO_PERF);
}

TEST_HARNESS_MAIN
