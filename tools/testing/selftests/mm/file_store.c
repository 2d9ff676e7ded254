// SPDX-License-Identifier: GPL-2.0
/*
 * A thread stores to a shared mapping of a file, while another thread unmaps the page, and
 * writeback cleans it.
 *
 * Proves: after fdatasync() the disk has what a thread has stored before.
 *
 * How: a store with a translation that is writable and dirty does not fault, so the kernel does not
 * notice the store. So writeback removes such translations before it writes a page. A call that
 * unmaps many pages invalidates their translations at its end. In between, writeback finds no entry
 * of the page, but a CPU may still have the translation.
 *
 *	CPU 0	unmaps pages: MADV_PAGEOUT of pages with new data, or
 *		MADV_DONTNEED of a huge page and many clean pages
 *	CPU 2	cleaner: when the first page is unmapped, writes it to
 *		the disk, and then lets the storer store a new value
 *	CPU 0	holder: has priority, and stops the call meanwhile
 *	CPU 1	storer: stores to the first page all the time
 *
 * Then the test calls fdatasync(), and reads the disk with O_DIRECT.
 *
 * Does not prove: anything on a CPU that drops translations early. On arm64, reclaim begins each
 * invalidation when it unmaps the page, and QEMU ends an invalidation at once.
 *
 * Run: make kselftest TARGETS=mm ARCH=x86_64 TESTS=file_store
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "folio_did.h"
#include "folio_known.h"
#include "folio_pmd.h"
#include "folio_state.h"
#include "folio_util.h"

/* The pages after the first page: so many dirty pages, or so many clean ones. */
#define DIRTY 511
#define CLEAN 12288
/* The test ends after so many stores or seconds. */
#define STORES 50
#define SECONDS 20
/* The holder stops the call for at most so many seconds. */
#define HELD_SECONDS 0.5

enum order { SLEEP, STORE_OLD, STORE_NEW, STORED };

/**
 * struct race - what the threads share
 * @at: the mapping; the first word is what the storer writes
 * @bytes: its length
 * @fd: the file
 * @value: the old value; the new value is one more
 * @order: what the storer shall do
 * @begun: the storer has stored the old value
 * @unmaps: whether the call that unmaps is running
 * @go: wakes the holder
 * @held: the holder shall stop the call
 * @stop: ends the threads
 * @unnoticed: after the store the page was still not mapped
 */
struct race {
	char *at;
	size_t bytes;
	int fd;
	atomic_uint value;
	atomic_int order;
	atomic_bool begun;
	atomic_bool unmaps;
	sem_t go;
	atomic_bool held;
	atomic_bool stop;
	bool unnoticed;
};

FIXTURE(file_store)
{
	struct race race;
	cpu_set_t before;
};

/*
 * Map a file. If @huge is set, its first page is a huge page. All other pages are single pages.
 * Returns NULL, or the reason why this is not possible.
 */
static const char *map_file(struct race *r, bool huge)
{
	size_t first = bytes(huge ? pmd_pages() : 1);
	char *room;

	r->bytes = first + bytes(huge ? CLEAN : DIRTY);
	r->fd = memory_file(XFS, r->bytes / psize());
	if (r->fd < 0)
		return "no XFS at " FOLIO_FILES;
	/* These pages leave memory. MADV_RANDOM brings back single pages. */
	posix_fadvise(r->fd, huge ? first : 0, 0, POSIX_FADV_DONTNEED);
	room = mmap(NULL, r->bytes + first, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		return "out of memory";
	r->at = (char *)(((unsigned long)room + first - 1) & -first);
	r->at = mmap(r->at, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, r->fd, 0);
	if (r->at == MAP_FAILED || madvise(r->at, r->bytes, MADV_RANDOM))
		return "out of memory";
	/* A new page is in a list of the CPU that read it. Reclaim on this CPU empties the list. */
	for (size_t at = 0; at < r->bytes; at += at ? psize() : first)
		read_byte(r->at + at);
	if (huge && smaps_pages(r->at, "FilePmdMapped") != pmd_pages())
		return "the page cache has no huge page";
	return NULL;
}

FIXTURE_SETUP(file_store)
{
	struct race *r = &self->race;

	memset(r, 0, sizeof(*r));
	r->fd = -1;
	r->at = MAP_FAILED;
	ASSERT_EQ(0, sched_getaffinity(0, sizeof(self->before), &self->before));
	if (sysconf(_SC_NPROCESSORS_ONLN) < 3)
		SKIP(return, "needs three CPUs");
	sem_init(&r->go, 0, 0);
	ASSERT_TRUE(run_on(0));
}

FIXTURE_TEARDOWN(file_store)
{
	sched_setaffinity(0, sizeof(self->before), &self->before);
	if (self->race.at != MAP_FAILED)
		munmap(self->race.at, self->race.bytes);
	close(self->race.fd);
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

/* Stop the call that unmaps pages. */
static void *hold(void *data)
{
	struct race *r = data;

	run_first_on(0);
	while (!sem_wait(&r->go) && !r->stop) {
		double end = seconds() + HELD_SECONDS;

		while (r->held && seconds() < end)
			;
	}
	return NULL;
}

/* When the first page is unmapped, write it to the disk, and let the storer store the new value. */
static void *clean(void *data)
{
	const unsigned int wait = SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
	struct race *r = data;
	unsigned int last = 0;

	if (!run_on(2))
		ksft_exit_fail_perror("the thread that cleans");
	while (!r->stop) {
		if (!r->unmaps || r->value == last || pagemap_has(r->at, PM_PRESENT))
			continue;
		r->held = true;
		if (!r->unmaps) {	/* the call has ended meanwhile, and this round too */
			r->held = false;
			continue;
		}
		last = r->value;
		sem_post(&r->go);
		if (sync_file_range(r->fd, 0, psize(), wait))
			ksft_exit_fail_perror("sync_file_range");
		r->order = STORE_NEW;
		while (r->order == STORE_NEW)
			;
		r->unnoticed = !pagemap_has(r->at, PM_PRESENT);
		r->held = false;
	}
	return NULL;
}

static unsigned int on_disk(const struct race *r)
{
	unsigned int value = 0;
	char path[32];
	void *page;
	int direct;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", r->fd);
	direct = open(path, O_RDONLY | O_DIRECT);
	if (posix_memalign(&page, psize(), psize()) || pread(direct, page, psize(), 0) <= 0)
		ksft_exit_fail_perror("O_DIRECT");
	value = *(unsigned int *)page;
	free(page);
	close(direct);
	return value;
}

/* Store, and unmap all pages. Returns whether the storer has stored the new value meanwhile. */
static bool round_of(struct race *r, bool huge)
{
	bool stored;

	r->unnoticed = false;
	r->value += 2;
	for (size_t at = huge ? bytes(pmd_pages()) : psize(); at < r->bytes; at += psize()) {
		if (huge)
			read_byte(r->at + at);
		else
			r->at[at]++;
	}
	r->begun = false;
	r->order = STORE_OLD;
	while (!r->begun)
		sched_yield();
	r->unmaps = true;
	madvise(r->at, r->bytes, huge ? MADV_DONTNEED : MADV_PAGEOUT);
	r->unmaps = false;
	while (r->held)
		sched_yield();
	stored = r->order == STORED;
	r->order = SLEEP;
	return stored;
}

/* Returns how many stores are lost. */
static unsigned long lost_stores(struct __test_metadata *_metadata, struct race *r, bool huge)
{
	void *(*work[])(void *) = { store, clean, hold };
	const double end = seconds() + SECONDS;
	pthread_t threads[ARRAY_SIZE(work)];
	unsigned long stores = 0, lost = 0, unnoticed = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(work); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, work[i], r));
	while (stores < STORES && seconds() < end) {
		unsigned int found;

		if (!round_of(r, huge))
			continue;
		stores++;
		unnoticed += r->unnoticed;
		ASSERT_EQ(0, fdatasync(r->fd));
		found = on_disk(r);
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
	DID(stores, "stores to a page that was unmapped, and that writeback had cleaned");
	return lost;
}

/*
 * Reclaim unmaps pages. 511 other pages keep it busy.
 *
 * Known issue 88: the page is clean when the storer stores, and no entry says that it is dirty. So
 * the store never reaches the disk. When the page leaves the page cache, the store is lost. On
 * arm64, reclaim begins to invalidate each translation when it removes the entry.
 */
TEST_F_TIMEOUT(file_store, of_reclaimed_page, 90)
{
	const char *why = map_file(&self->race, false);
	unsigned long lost;

	if (why)
		SKIP(return, "%s", why);
	lost = lost_stores(_metadata, &self->race, false);
#ifdef __aarch64__
	EXPECT_EQ(0, lost);
#else
	if (lost)
		KNOWN_ISSUE(88, "a store to a shared mapping of a file is lost");
	else
		STALE_ISSUE(88);
#endif
}

/*
 * MADV_DONTNEED unmaps a huge page, and then many clean pages, whose entries need no invalidation
 * before the end of the call.
 *
 * Known issue 89: as known issue 88.
 */
TEST_F_TIMEOUT(file_store, of_zapped_huge_page, 90)
{
	const char *why = map_file(&self->race, true);
	unsigned long lost;

	if (why)
		SKIP(return, "%s", why);
	lost = lost_stores(_metadata, &self->race, true);
	if (lost)
		KNOWN_ISSUE(89, "a store to a huge page of a file is lost");
	else
		STALE_ISSUE(89);
}

TEST_HARNESS_MAIN
