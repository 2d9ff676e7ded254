// SPDX-License-Identifier: GPL-2.0
/*
 * A thread stores to a shared mapping of a file, while reclaim unmaps the page and writeback cleans
 * it.
 *
 * Proves: after fdatasync() the disk has what a thread has stored before.
 *
 * How: a store with a translation that is writable and dirty does not fault, so the kernel does not
 * notice the store. So writeback removes such translations before it writes a page. Reclaim unmaps
 * many pages, and then invalidates their translations on all CPUs at once. In between, writeback
 * finds no entry of the page, but a CPU may still have the translation.
 *
 *	CPU 0	reclaim: MADV_PAGEOUT of PAGES pages that the process has written to
 *	CPU 2	watcher: wakes the cleaner when reclaim has unmapped the first page
 *	CPU 0	cleaner: has priority, so reclaim stops; writes the first page to the disk; then
 *		lets the storer store a new value
 *	CPU 1	storer: has the translation of the first page, since it has stored to it before
 *
 * Then the test calls fdatasync(), and reads the disk with O_DIRECT.
 *
 * Does not prove: anything on a CPU that drops translations early. On arm64, reclaim begins each
 * invalidation when it unmaps the page. QEMU ends an invalidation at once.
 *
 * Run: make kselftest TARGETS=mm ARCH=x86_64 TESTS=file_store
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "folio_did.h"
#include "folio_known.h"
#include "folio_state.h"
#include "folio_util.h"

#define PAGES 512
/* The test ends after so many stores or seconds. */
#define STORES 50
#define SECONDS 20
/* How long the cleaner waits for the disk, and at most for the storer. */
#define DISK_SECONDS 0.005
#define STORE_SECONDS 0.2

enum order { SLEEP, STORE_OLD, STORE_NEW, STORED };

/**
 * struct race - what the threads share
 * @at: the mapping; the first word is what the storer writes
 * @fd: the file
 * @value: the old value; the new value is one more
 * @order: what the storer shall do
 * @begun: the storer has stored the old value
 * @reclaim: whether reclaim is running
 * @go: the watcher wakes the cleaner
 * @stop: ends the threads
 * @unnoticed: after the store the page was still not mapped
 */
struct race {
	char *at;
	int fd;
	atomic_uint value;
	atomic_int order;
	atomic_bool begun;
	atomic_bool reclaim;
	sem_t go;
	atomic_bool stop;
	bool unnoticed;
};

FIXTURE(file_store)
{
	struct race race;
	int direct;
	cpu_set_t before;
};

static bool run_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return !sched_setaffinity(0, sizeof(one), &one);
}

FIXTURE_SETUP(file_store)
{
	struct race *r = &self->race;
	char path[32];

	memset(r, 0, sizeof(*r));
	self->direct = -1;
	ASSERT_EQ(0, sched_getaffinity(0, sizeof(self->before), &self->before));
	r->fd = memory_file(XFS, PAGES);
	r->at = MAP_FAILED;
	if (r->fd < 0)
		SKIP(return, "no XFS at " FOLIO_FILES);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 3)
		SKIP(return, "needs three CPUs");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", r->fd);
	self->direct = open(path, O_RDONLY | O_DIRECT);
	ASSERT_LE(0, self->direct);
	/* MADV_RANDOM: the file gets folios of one page. */
	posix_fadvise(r->fd, 0, 0, POSIX_FADV_DONTNEED);
	r->at = mmap(NULL, bytes(PAGES), PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	ASSERT_NE(MAP_FAILED, r->at);
	ASSERT_EQ(0, madvise(r->at, bytes(PAGES), MADV_RANDOM));
	sem_init(&r->go, 0, 0);
	/* A new page is in a list of the CPU that read it. Reclaim on this CPU empties the list. */
	ASSERT_TRUE(run_on(0));
	for (unsigned int page = 0; page < PAGES; page++)
		read_byte(r->at + bytes(page));
}

FIXTURE_TEARDOWN(file_store)
{
	sched_setaffinity(0, sizeof(self->before), &self->before);
	if (self->race.at != MAP_FAILED)
		munmap(self->race.at, bytes(PAGES));
	close(self->direct);
	close(self->race.fd);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* Run this thread on @cpu, before other tasks. */
static void run_first_on(int cpu)
{
	const struct sched_param first = { .sched_priority = 1 };

	if (!run_on(cpu) || sched_setscheduler(0, SCHED_FIFO, &first))
		ksft_exit_fail_perror("sched_setscheduler");
}

/*
 * Store the old value again and again, and then the new value once. The switch to another task may
 * end translations, so this thread sleeps only between two rounds.
 */
static void *store(void *data)
{
	struct race *r = data;
	atomic_uint *word = (atomic_uint *)r->at;

	run_first_on(1);
	while (!r->stop) {
		int order = r->order;

		if (order == STORE_OLD) {
			*word = r->value;
			r->begun = true;
		} else if (order == STORE_NEW) {
			*word = r->value + 1;
			r->order = STORED;
		} else {
			usleep(100);
		}
	}
	return NULL;
}

/* Write the first page to the disk, then let the storer store the new value. */
static void *clean(void *data)
{
	struct race *r = data;

	run_first_on(0);
	while (!sem_wait(&r->go) && !r->stop) {
		double end;

		if (sync_file_range(r->fd, 0, psize(), SYNC_FILE_RANGE_WRITE))
			ksft_exit_fail_perror("sync_file_range");
		for (end = seconds() + DISK_SECONDS; seconds() < end;)
			;
		r->order = STORE_NEW;
		for (end = seconds() + STORE_SECONDS; r->order == STORE_NEW && seconds() < end;)
			;
		r->unnoticed = !pagemap_has(r->at, PM_PRESENT);
	}
	return NULL;
}

/* Wake the cleaner when reclaim has unmapped the first page. */
static void *watch(void *data)
{
	struct race *r = data;
	unsigned int last = 0;

	if (!run_on(2))
		ksft_exit_fail_perror("the thread that watches");
	while (!r->stop) {
		if (!r->reclaim || r->value == last || pagemap_has(r->at, PM_PRESENT))
			continue;
		last = r->value;
		sem_post(&r->go);
	}
	return NULL;
}

static unsigned int on_disk(int direct)
{
	unsigned int value = 0;
	void *page;

	if (!posix_memalign(&page, psize(), psize()) && pread(direct, page, psize(), 0) > 0)
		value = *(unsigned int *)page;
	free(page);
	return value;
}

/* Store, and reclaim all pages. Returns whether the storer has stored the new value meanwhile. */
static bool round_of(struct race *r)
{
	bool stored;

	r->unnoticed = false;
	r->value += 2;
	for (unsigned int page = 1; page < PAGES; page++)
		r->at[bytes(page)]++;
	r->begun = false;
	r->order = STORE_OLD;
	while (!r->begun)
		sched_yield();
	r->reclaim = true;
	madvise(r->at, bytes(PAGES), MADV_PAGEOUT);
	r->reclaim = false;
	while (r->order == STORE_NEW)
		sched_yield();
	stored = r->order == STORED;
	r->order = SLEEP;
	return stored;
}

/*
 * Known issue 88: the page is clean when the storer stores, and no entry says that it is dirty. So
 * the store never reaches the disk. When the page leaves the page cache, the store is lost.
 */
TEST_F_TIMEOUT(file_store, reaches_disk, 90)
{
	void *(*work[])(void *) = { store, watch, clean };
	const double end = seconds() + SECONDS;
	struct race *r = &self->race;
	pthread_t threads[ARRAY_SIZE(work)];
	unsigned long stores = 0, lost = 0, unnoticed = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(work); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, work[i], r));
	while (stores < STORES && seconds() < end) {
		unsigned int found;

		if (!round_of(r))
			continue;
		stores++;
		unnoticed += r->unnoticed;
		ASSERT_EQ(0, fdatasync(r->fd));
		found = on_disk(self->direct);
		if (found == r->value && r->unnoticed)
			lost++;
		else
			EXPECT_EQ(r->value + 1, found);
	}
	r->stop = true;
	sem_post(&r->go);
	for (unsigned int i = 0; i < ARRAY_SIZE(work); i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	TH_LOG("%lu of %lu stores did not fault; %lu stores are lost", unnoticed, stores, lost);
	DID(stores, "stores to a page that reclaim had unmapped and writeback had cleaned");
#ifdef __aarch64__
	EXPECT_EQ(0, lost);
#else
	if (lost)
		KNOWN_ISSUE(88, "a store to a shared mapping of a file is lost");
	else
		STALE_ISSUE(88);
#endif
}

TEST_HARNESS_MAIN
