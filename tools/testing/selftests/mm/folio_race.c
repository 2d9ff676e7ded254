// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that use a folded block while another thread changes part of it.
 *
 * Proves: no signal and no lost write on the pages that nobody touches, while
 * one page of their block is protected, dropped or moved again and again, and
 * so the block unfolded and folded; a child that is forked in the middle of it
 * sees each writer's counters in order; nothing is lost when the block is
 * swapped out under the writers; the lockless walk of GUP-fast reads right
 * pages.
 *
 * Does not prove: the absence of races; each case runs for two seconds. The
 * virtual machine gives this program two CPUs.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_race
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "folio_util.h"

#define SECONDS 2
#define WRITERS 2

FIXTURE(folio_race)
{
	struct memory memory;
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

FIXTURE_SETUP(folio_race)
{
	int order = order_of(cont_ptes());
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	atomic_store(&stop, false);
	if (!why)
		why = memory_map(&self->memory, variant->kind, order, 1);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(folio_race)
{
	memory_free(&self->memory);
}

static bool within(time_t begin)
{
	return time(NULL) - begin < SECONDS;
}

/* Where a writer counts in a page: the first word is 1 ahead of the last. */
struct counters {
	atomic_ulong first;
	char gap[256];
	atomic_ulong last;
};

/**
 * struct writer - a thread that counts in its own pages of the block
 * @memory: the block
 * @odd: which pages are its own: those with this remainder, not the first four
 * @rounds: how often it has counted in all of them
 * @wrong: a page that did not have what it wrote the time before, or -1
 */
struct writer {
	struct memory *memory;
	unsigned int odd;
	unsigned long rounds;
	int wrong;
	pthread_t thread;
};

/* The first pages are for the one who disturbs. */
#define DISTURBED 4

static void *count(void *argument)
{
	struct writer *w = argument;
	struct memory *m = w->memory;

	while (!atomic_load(&stop)) {
		for (unsigned int page = DISTURBED + w->odd; page < m->pages; page += WRITERS) {
			struct counters *at = (void *)(m->at + bytes(page));

			if (atomic_load(&at->first) != w->rounds ||
			    atomic_load(&at->last) != w->rounds)
				w->wrong = page;
			atomic_store(&at->first, w->rounds + 1);
			atomic_store(&at->last, w->rounds + 1);
		}
		w->rounds++;
	}
	return NULL;
}

static void start(struct writer *writers, struct memory *m)
{
	memset(m->at + bytes(DISTURBED), 0, bytes(m->pages - DISTURBED));
	for (unsigned int i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){ .memory = m, .odd = i, .wrong = -1 };
		pthread_create(&writers[i].thread, NULL, count, &writers[i]);
	}
}

/* End the writers: they have counted, and found what they wrote each time. */
static void finish(struct __test_metadata *_metadata, struct writer *writers, unsigned long times)
{
	atomic_store(&stop, true);
	for (unsigned int i = 0; i < WRITERS; i++) {
		pthread_join(writers[i].thread, NULL);
		EXPECT_EQ(-1, writers[i].wrong) {
			TH_LOG("a write to page %d was lost", writers[i].wrong);
		}
		EXPECT_LT(0, writers[i].rounds);
	}
	EXPECT_LT(0, times);
	TH_LOG("disturbed %lu times, %lu and %lu rounds", times, writers[0].rounds,
	       writers[1].rounds);
}

/* [contpte 241] One page loses its permission and gets it back. */
TEST_F(folio_race, mprotect_beside_writers)
{
	struct memory *m = &self->memory;
	struct writer writers[WRITERS];
	unsigned long times = 0;
	time_t begin;

	start(writers, m);
	for (begin = time(NULL); within(begin); times++) {
		int protection = times % 3 ? PROT_READ : PROT_NONE;

		ASSERT_EQ(0, mprotect(m->at, bytes(1), protection));
		ASSERT_EQ(0, mprotect(m->at, bytes(1), PROT_READ | PROT_WRITE));
	}
	finish(_metadata, writers, times);
	EXPECT_TRUE(page_is(m->at, pattern(0)));
}

/* [contpte 241] Some pages are dropped and come back. */
TEST_F(folio_race, madvise_dontneed_beside_writers)
{
	struct memory *m = &self->memory;
	struct writer writers[WRITERS];
	unsigned long times = 0;
	time_t begin;

	start(writers, m);
	for (begin = time(NULL); within(begin); times++) {
		char *at = m->at + bytes(times % DISTURBED);

		memset(at, 0x3c, bytes(1));
		ASSERT_EQ(0, madvise(at, bytes(1), MADV_DONTNEED));
		ASSERT_TRUE(page_is(at, variant->kind == ANON ? 0 : 0x3c));
	}
	finish(_metadata, writers, times);
}

/* [contpte 241] One page is moved away and back. */
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

		ASSERT_EQ(to, mremap(m->at, bytes(1), bytes(1), flags, to));
		ASSERT_EQ(m->at, mremap(to, bytes(1), bytes(1), flags, m->at));
	}
	finish(_metadata, writers, times);
	EXPECT_TRUE(page_is(m->at, pattern(0)));
}

/*
 * [contpte 242] The block is swapped out under the writers: what hardware noted
 * as dirty while entries were read and cleared must not be lost.
 */
TEST_F(folio_race, pageout_under_writers)
{
	struct memory *m = &self->memory;
	struct writer writers[WRITERS];
	unsigned long times = 0;
	time_t begin;

	if (!have_swap())
		SKIP(return, "no swap");
	start(writers, m);
	for (begin = time(NULL); within(begin); times++) {
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
		usleep(1000);
	}
	finish(_metadata, writers, times);
}

/*
 * [contpte 243] Children are forked while the writers count: each child sees,
 * in all pages of a writer, two neighbouring rounds at most, the later one in
 * the first pages; and nothing that changes under its eyes.
 */
TEST_F_TIMEOUT(folio_race, fork_under_writers, 60)
{
	struct memory *m = &self->memory;
	struct writer writers[WRITERS];
	unsigned long times = 0;
	time_t begin;

	if (variant->kind != ANON)
		SKIP(return, "shared memory is not copied");
	start(writers, m);
	for (begin = time(NULL); within(begin); times++) {
		pid_t child = fork();

		if (!child) {
			for (unsigned int i = 0; i < WRITERS; i++) {
				struct counters *head = (void *)(m->at + bytes(DISTURBED + i));
				unsigned long before = head->first, round = before;

				for (unsigned int page = DISTURBED + i; page < m->pages;
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
		ASSERT_EQ(0, child_of(child)) {
			TH_LOG("1 out of order, 2 changed");
		}
	}
	finish(_metadata, writers, times);
}

/*
 * [contpte 64] process_vm_readv() finds pages without the lock of the table
 * while one of them comes and goes: never another page's content.
 */
TEST_F(folio_race, gup_fast_beside_changes)
{
	struct memory *m = &self->memory;
	struct writer writers[WRITERS];
	unsigned char *copy = malloc(bytes(m->pages));
	unsigned long times = 0;
	time_t begin;

	start(writers, m);
	for (begin = time(NULL); within(begin); times++) {
		struct iovec to = { copy, bytes(2) };
		struct iovec from = { m->at + bytes(1), bytes(2) };

		ASSERT_EQ(0, mprotect(m->at, bytes(1), PROT_READ));
		ASSERT_EQ(bytes(2), process_vm_readv(getpid(), &to, 1, &from, 1, 0));
		ASSERT_TRUE(page_is((char *)copy, pattern(1)));
		ASSERT_TRUE(page_is((char *)copy + bytes(1), pattern(2)));
		ASSERT_EQ(0, mprotect(m->at, bytes(1), PROT_READ | PROT_WRITE));
	}
	finish(_metadata, writers, times);
	free(copy);
}

TEST_HARNESS_MAIN
