// SPDX-License-Identifier: GPL-2.0
/*
 * Two threads fault on the same new folio at the same time.
 *
 * Proves: if each thread allocates a folio, the kernel keeps one folio and
 * frees the other folio. The kept folio contains the writes of both threads,
 * and zeros everywhere else. Its frames held other bytes before.
 *
 * How: the threads wait for each other without sleeping, then write. A round
 * counts if both threads took a fault. If no round counts, the case is skipped.
 * The virtual machine gives this program two CPUs.
 *
 * Does not prove: the absence of races. The amount of free memory varies, so
 * the case notices lost folios only if dozens of huge pages are lost.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_clear_race
 */
#include <stdatomic.h>
#include <time.h>

#include "folio_clear.h"

/*
 * The test stops after MEETINGS rounds in which both threads faulted, or after
 * SECONDS seconds.
 */
#define MEETINGS 100
#define SECONDS 10

/* Free memory can shrink by this much even if no folio is lost. */
#define NOISE (32L << 20)

/* Two threads that wait for each other and then write at the same time. */
static struct {
	pthread_barrier_t barrier;
	atomic_uint here;
	atomic_bool end;
	char *at[2];
	long faults[2];
} together;

static void *write_together(void *argument)
{
	unsigned int own = (unsigned long)argument;

	for (unsigned int round = 1;; round++) {
		long before;

		pthread_barrier_wait(&together.barrier);
		if (atomic_load(&together.end))
			return NULL;
		faults_begin(&before);
		atomic_fetch_add(&together.here, 1);
		while (atomic_load(&together.here) < 2 * round)
			;
		*together.at[own] = own + 1;
		together.faults[own] = faults() - before;
		pthread_barrier_wait(&together.barrier);
	}
}

/*
 * If both threads allocate a folio in a round, later rounds can reuse the
 * frames of both folios. So the test remembers the frames of the last few
 * rounds.
 */
#define REMEMBERED 4

FIXTURE(folio_clear_race)
{
	struct memory memory;
	struct filled filled[REMEMBERED];
	pthread_t thread[2];
};

FIXTURE_VARIANT(folio_clear_race)
{
	bool huge;
};

/*
 * The folio is half as large as a huge page. PTEs map it, and the kernel takes
 * a long time to clear it.
 */
FIXTURE_VARIANT_ADD(folio_clear_race, folio)
{
	.huge = false,
};

FIXTURE_VARIANT_ADD(folio_clear_race, huge_page)
{
	.huge = true,
};

FIXTURE_SETUP(folio_clear_race)
{
	self->memory.fd = -1;
	atomic_store(&together.here, 0);
	atomic_store(&together.end, false);
	ASSERT_EQ(0, pthread_barrier_init(&together.barrier, NULL, 3));
	for (unsigned long i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&self->thread[i], NULL, write_together, (void *)i));
}

FIXTURE_TEARDOWN(folio_clear_race)
{
	atomic_store(&together.end, true);
	pthread_barrier_wait(&together.barrier);
	pthread_join(self->thread[0], NULL);
	pthread_join(self->thread[1], NULL);
	memory_free(&self->memory);
	for (int i = 0; i < REMEMBERED; i++)
		filled_free(&self->filled[i]);
}

/* The free memory of the machine in bytes. */
static long free_memory(void)
{
	return sysconf(_SC_AVPHYS_PAGES) * bytes(1);
}

/*
 * In each round, two threads write to a new folio at once: one to the first
 * byte, and one to the last byte. The rounds take up to 10 seconds in all.
 * After each round one folio is mapped. It contains both written bytes, and
 * zeros everywhere else. If each thread allocated a folio, the kernel frees one
 * of the two folios, so free memory does not shrink. If the two threads never
 * fault in the same round, the case is skipped.
 */
TEST_F_TIMEOUT(folio_clear_race, two_threads_fault, 240)
{
	int order = order_of(read_pmd_pagesize() / psize()) - !variant->huge;
	unsigned int round, met = 0, again = 0;
	struct memory *m = &self->memory;
	unsigned long allocated = 0;
	const char *why = folio_settings(order);
	time_t begin = time(NULL);
	char path[128];
	long had = 0, lost;

	if (!why && bytes(1UL << order) > 64UL << 20)
		why = "no huge pages that fit into this machine";
	if (why)
		SKIP(return, "%s", why);
	snprintf(path, sizeof(path), FOLIO_THP "/hugepages-%zukB/stats/anon_fault_alloc",
		 bytes(1U << order) >> 10);
	/*
	 * The first round does not count, since in that round the process also
	 * allocates other memory.
	 */
	for (round = 0; met < MEETINGS && time(NULL) < begin + SECONDS; round++) {
		ASSERT_TRUE(fresh_map(m, order, 1, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1));
		if (round == 1) {
			had = free_memory();
			allocated = read_num(path);
		}
		together.at[0] = m->at;
		together.at[1] = m->at + bytes(m->pages) - 1;
		pthread_barrier_wait(&together.barrier);
		pthread_barrier_wait(&together.barrier);
		met += round && together.faults[0] && together.faults[1];
		for (int i = 0; i < 2; i++) {
			EXPECT_EQ(i + 1, *together.at[i]) {
				TH_LOG("round %u: the write of thread %d is lost", round, i);
			}
			*together.at[i] = 0;
		}
		EXPECT_EQ(0, not_zero(m->at, m->pages));
		EXPECT_TRUE(are_folios(m->at, m->pages, order));
		for (int i = 0; round && i < REMEMBERED; i++) {
			if (were_filled(&self->filled[i], m->at, m->pages) == m->pages) {
				again++;
				break;
			}
		}
		ASSERT_TRUE(fill(&self->filled[round % REMEMBERED], m->at, m->pages));
		memory_free(m);
	}
	EXPECT_EQ(round - 1, read_num(path) - allocated);
	DID(again, "folios in frames that were filled before");
	lost = had - free_memory();
	EXPECT_GT((long)(met * bytes(1U << order) / 2 + NOISE), lost) {
		TH_LOG("both threads faulted in %u rounds, and %ld bytes of memory are lost", met,
		       lost);
	}
	if (!met && __test_passed(_metadata))
		SKIP(return, "no round with two faults in %d seconds: needs two CPUs", SECONDS);
	DID(met, "rounds in which both threads faulted");
}

TEST_HARNESS_MAIN
