// SPDX-License-Identifier: GPL-2.0
/*
 * Truncation of a hugetlb file with a private mapping.
 *
 * Proves: if ftruncate() shortens a file, an access to a page after the new end
 * raises SIGBUS. This holds even if a process has written to this page in a
 * private mapping.
 *
 * How: a process repeats two steps. It writes to the last page of a private mapping, and truncates
 * the file so that the file ends before this page. Meanwhile another thread writes to the other
 * pages of the same mapping and drops them, which causes page faults. In the control there is no
 * other thread.
 *
 * Does not prove: what truncation does to shared mappings, or to pages of the file.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=hugetlb_cut
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "folio_did.h"
#include "folio_known.h"
#include "folio_util.h"
#include "hugetlb_pool.h"

#define PAGES 4
#define LAST (PAGES - 1)
#define SECONDS 2

FIXTURE(hugetlb_cut)
{
	struct hugetlb_pool pool;
	size_t size;
	int fd;
	char *at;
};

FIXTURE_VARIANT(hugetlb_cut)
{
	bool busy;	/* another thread causes page faults in the mapping */
};

FIXTURE_VARIANT_ADD(hugetlb_cut, alone)
{
};

FIXTURE_VARIANT_ADD(hugetlb_cut, busy)
{
	.busy = true,
};

FIXTURE_SETUP(hugetlb_cut)
{
	const char *why;

	self->fd = -1;
	self->at = MAP_FAILED;
	self->pool.folder[0] = 0;
	self->size = hugetlb_size(0);
	why = hugetlb_pool_have(&self->pool, self->size, 2 * PAGES);
	if (why)
		SKIP(return, "%s", why);
	self->fd = syscall(__NR_memfd_create, "hugetlb_cut",
			   MFD_HUGETLB | order_of(self->size) << MAP_HUGE_SHIFT);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, ftruncate(self->fd, PAGES * self->size));
	self->at = mmap(NULL, PAGES * self->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->at);
}

FIXTURE_TEARDOWN(hugetlb_cut)
{
	if (self->at != MAP_FAILED)
		munmap(self->at, PAGES * self->size);
	if (self->fd >= 0)
		close(self->fd);
	hugetlb_pool_restore(&self->pool);
}

/*
 * A thread that writes to all pages except the last page, and drops them again.
 */
static struct {
	char *at;
	size_t size;
	atomic_bool stop;
	unsigned long rounds;
} writer;

static void *write_and_drop(void *unused)
{
	for (; !atomic_load(&writer.stop); writer.rounds++) {
		for (int i = 0; i < LAST; i++)
			writer.at[i * writer.size] = 1;
		madvise(writer.at, LAST * writer.size, MADV_DONTNEED);
	}
	return unused;
}

/*
 * The process writes to the last page of a private mapping, and ftruncate() makes the file end
 * before this page. After that an access to the page raises SIGBUS. The case repeats this for two
 * seconds.
 *
 * Known issue 63: if the other thread takes page faults at the same time, an
 * access to the page can still succeed.
 */
TEST_F(hugetlb_cut, last_page_is_gone)
{
	char *last = self->at + LAST * self->size;
	unsigned long rounds = 0, gone = 0, kept = 0;
	time_t end;
	pthread_t thread;
	int number;

	writer.at = self->at;
	writer.size = self->size;
	if (variant->busy)
		ASSERT_EQ(0, pthread_create(&thread, NULL, write_and_drop, NULL));
	for (end = time(NULL) + SECONDS; time(NULL) < end; rounds++) {
		ASSERT_EQ(0, ftruncate(self->fd, PAGES * self->size));
		ASSERT_EQ(0, try_access(last, true));
		ASSERT_EQ(0, ftruncate(self->fd, LAST * self->size));
		number = try_access(last, false);
		gone += number == SIGBUS;
		kept += !number;
	}
	if (variant->busy) {
		atomic_store(&writer.stop, true);
		pthread_join(thread, NULL);
		DID(writer.rounds, "rounds of the other thread");
	}
	DID(rounds, "times that the file was cut");
	TH_LOG("the page was still there %lu times", kept);
	EXPECT_EQ(rounds, gone + kept);
	if (variant->busy && kept)
		KNOWN_ISSUE(63, "truncation leaves private hugetlb pages if the mapping is busy");
	else if (variant->busy)
		STALE_ISSUE(63);
	else
		EXPECT_EQ(0, kept);
}

TEST_HARNESS_MAIN
