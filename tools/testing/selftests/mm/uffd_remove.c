// SPDX-License-Identifier: GPL-2.0
/*
 * A monitor receives an event for each madvise() call that removes the content
 * of pages.
 *
 * Proves: madvise() sends UFFD_EVENT_REMOVE with the range of the call, and
 * waits until the monitor has read the event. This holds for advice that
 * discards the pages, punches a hole into their file, or replaces them by guard
 * pages.
 *
 * How: a range is registered for faults on missing pages. A thread calls madvise() for half of the
 * range, and the test reads the event. As a control the test accesses the pages: a discarded page
 * raises SIGBUS, like a missing page, and a guard page raises SIGSEGV.
 *
 * Does not prove: the events of other calls (munmap(), mremap(), fork()).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 KERNEL=7.3 TESTS=uffd_remove
 */
#include <poll.h>

#include "folio_did.h"
#include "folio_known.h"
#include "folio_listen.h"

#define PAGES 16
#define REMOVED (PAGES / 2)
/*
 * The time after which an event counts as missing. An event normally arrives
 * within a millisecond.
 */
#define MILLISECONDS 2000
/* The time for which the test lets the thread wait */
#define WAIT_US 100000

/* From include/uapi/asm-generic/mman-common.h, since older headers lack this constant. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

FIXTURE(uffd_remove)
{
	char *area;
	char *at;
	int uffd;
	int fd;
};

/*
 * @file: whether the memory is a shared file in memory; @advice: the advice
 * that the thread gives
 */
FIXTURE_VARIANT(uffd_remove)
{
	bool file;
	int advice;
};

FIXTURE_VARIANT_ADD(uffd_remove, discard)
{
	.advice = MADV_DONTNEED,
};

FIXTURE_VARIANT_ADD(uffd_remove, hole)
{
	.file = true,
	.advice = MADV_REMOVE,
};

FIXTURE_VARIANT_ADD(uffd_remove, guard)
{
	.advice = MADV_GUARD_INSTALL,
};

FIXTURE_VARIANT_ADD(uffd_remove, guard_file)
{
	.file = true,
	.advice = MADV_GUARD_INSTALL,
};

/*
 * The call that the thread makes. @error: 0, or the errno of this call;
 * @returned: whether this call has returned
 */
struct call {
	pthread_t thread;
	char *at;
	int advice;
	int error;
	bool returned;
};

FIXTURE_SETUP(uffd_remove)
{
	struct uffdio_register where = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int flags = MAP_FIXED | (variant->file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
	const char *why = folio_settings(0);

	self->area = NULL;
	self->fd = -1;
	self->uffd = listener(UFFD_FEATURE_SIGBUS | UFFD_FEATURE_EVENT_REMOVE |
			      UFFD_FEATURE_MISSING_SHMEM);
	if (!why && self->uffd < 0)
		why = "userfaultfd sends no events";
	if (why)
		SKIP(return, "%s", why);
	/*
	 * The pages before and after the memory cannot be accessed, so the
	 * kernel merges no other mapping with the memory.
	 */
	self->area = mmap(NULL, bytes(PAGES + 2), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->area);
	self->at = self->area + bytes(1);
	if (variant->file) {
		self->fd = memory_file(SHMEM, PAGES);
		ASSERT_LE(0, self->fd);
	}
	ASSERT_EQ(self->at, mmap(self->at, bytes(PAGES), PROT_READ | PROT_WRITE, flags,
				 self->fd, 0));
	for (unsigned int page = 0; page < PAGES; page++)
		memset(self->at + bytes(page), pattern(page), bytes(1));
	where.range = (struct uffdio_range){ (unsigned long)self->at, bytes(PAGES) };
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &where));
}

FIXTURE_TEARDOWN(uffd_remove)
{
	if (self->uffd >= 0)
		close(self->uffd);
	if (self->area)
		munmap(self->area, bytes(PAGES + 2));
	if (self->fd >= 0)
		close(self->fd);
}

static void *advise(void *arguments)
{
	struct call *call = arguments;

	call->error = madvise(call->at, bytes(REMOVED), call->advice) ? errno : 0;
	__atomic_store_n(&call->returned, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Wait for an event. Returns whether an event came in time. */
static bool have_event(int uffd)
{
	struct pollfd ready = { .fd = uffd, .events = POLLIN };

	return poll(&ready, 1, MILLISECONDS) == 1;
}

/*
 * 16 pages are enough. The call covers only the first half of the mapping, so
 * the range of the call ends before the mapping ends.
 *
 * Known issue 43: MADV_GUARD_INSTALL removes the pages, but sends no event.
 */
TEST_F(uffd_remove, event)
{
	const bool guard = variant->advice == MADV_GUARD_INSTALL;
	struct call call = { .at = self->at, .advice = variant->advice };
	struct uffd_msg event = {};
	unsigned int page, gone = 0;
	bool got, waits = false;

	ASSERT_EQ(0, pthread_create(&call.thread, NULL, advise, &call));
	got = have_event(self->uffd);
	if (got) {
		/* The call returns within a millisecond if it does not wait. */
		usleep(WAIT_US);
		waits = !__atomic_load_n(&call.returned, __ATOMIC_ACQUIRE);
		got = read(self->uffd, &event, sizeof(event)) > 0;
	}
	pthread_join(call.thread, NULL);
	if (call.error == EINVAL && guard)
		SKIP(return, "no guard pages, or none in files");
	ASSERT_EQ(0, call.error);
	for (page = 0; page < PAGES; page++) {
		char *at = self->at + bytes(page);

		if (page < REMOVED)
			gone += try_access(at, false) == (guard ? SIGSEGV : SIGBUS);
		else
			EXPECT_TRUE(page_is(at, pattern(page)));
	}
	DID(gone, "pages removed");
	EXPECT_EQ(REMOVED, gone);
	if (!got && guard) {
		KNOWN_ISSUE(43, "guard pages replace pages without an event");
		return;
	}
	ASSERT_TRUE(got);
	EXPECT_TRUE(waits);
	EXPECT_EQ(UFFD_EVENT_REMOVE, event.event);
	EXPECT_EQ((unsigned long)self->at, event.arg.remove.start);
	EXPECT_EQ((unsigned long)self->at + bytes(REMOVED), event.arg.remove.end);
	if (guard)
		STALE_ISSUE(43);
}

TEST_HARNESS_MAIN
