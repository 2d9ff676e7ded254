// SPDX-License-Identifier: GPL-2.0
/*
 * UFFDIO_UNREGISTER wakes the threads that wait for a page of the memory.
 *
 * Proves: if a thread waits for the monitor of userfaultfd, and the monitor unregisters the memory,
 * the access of the thread takes effect, and no other byte changes. This holds for each kind of
 * registration: missing pages, write protection, protection against all accesses, and minor faults.
 *
 * How: a thread writes one byte, and waits for the monitor, which is the test. When /proc shows
 * that the thread waits, the test unregisters the memory. The call makes the thread runnable before
 * it returns. So a thread that still waits after the call was not woken, and the test wakes it with
 * UFFDIO_WAKE. As a control, one variant registers protected memory for missing pages too. In the
 * race, the thread writes while the test unregisters the memory.
 *
 * Does not prove: that the race meets each place in the kernel where a thread can begin to wait. A
 * faulty kernel may pass the race.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 KERNEL=7.3 TESTS=uffd_unregister
 */
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include "folio_did.h"
#include "folio_known.h"
#include "folio_listen.h"

#define PAGES 3
/* How long the test waits for an event. It normally takes less than a millisecond. */
#define SECONDS 30
/* The race ends when the thread has slept in this many rounds, or after RACE_SECONDS. */
#define SLEPT 100
#define RACE_SECONDS 6

/* Definitions of include/uapi/linux/userfaultfd.h in 7.3, for older headers. */
#define FEATURE_RWP BIT_ULL(17)
#define REGISTER_RWP BIT_ULL(3)
#define RWPROTECT _IOWR(UFFDIO, 0x09, struct uffdio_writeprotect)
#define FAULT_RWP BIT_ULL(3)

/*
 * @at: where the thread writes; @value: what it writes
 * @id: the thread's ID, for /proc, as soon as it runs
 * @go: the thread waits for this; @delay: how many times it then loops before it writes
 * @slept: whether the thread slept during its write
 */
struct writer {
	pthread_t thread;
	char *at;
	char value;
	int id;
	bool go;
	unsigned int delay;
	bool slept;
};

FIXTURE(uffd_unregister)
{
	struct writer writer;
	char *at;
	int uffd;
	int fd;
};

/*
 * @mode: how the memory is registered; @features: what this needs
 * @command: the ioctl() that protects the pages, or 0 if they are not mapped
 * @flags: how the fault is reported
 */
FIXTURE_VARIANT(uffd_unregister)
{
	__u64 mode;
	__u64 features;
	unsigned long command;
	__u64 flags;
};

FIXTURE_VARIANT_ADD(uffd_unregister, missing)
{
	.mode = UFFDIO_REGISTER_MODE_MISSING,
	.flags = UFFD_PAGEFAULT_FLAG_WRITE,
};

FIXTURE_VARIANT_ADD(uffd_unregister, missing_or_protected)
{
	.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
	.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	.command = UFFDIO_WRITEPROTECT,
	.flags = UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP,
};

FIXTURE_VARIANT_ADD(uffd_unregister, protected)
{
	.mode = UFFDIO_REGISTER_MODE_WP,
	.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	.command = UFFDIO_WRITEPROTECT,
	.flags = UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP,
};

FIXTURE_VARIANT_ADD(uffd_unregister, rwp)
{
	.mode = REGISTER_RWP,
	.features = FEATURE_RWP,
	.command = RWPROTECT,
	.flags = UFFD_PAGEFAULT_FLAG_WRITE | FAULT_RWP,
};

FIXTURE_VARIANT_ADD(uffd_unregister, minor)
{
	.mode = UFFDIO_REGISTER_MODE_MINOR,
	.features = UFFD_FEATURE_MINOR_SHMEM,
	.flags = UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_MINOR,
};

/* The content of the memory before the thread writes. */
static unsigned char content(const FIXTURE_VARIANT(uffd_unregister) * variant, unsigned int page)
{
	return variant->mode == UFFDIO_REGISTER_MODE_MISSING ? 0 : pattern(page);
}

FIXTURE_SETUP(uffd_unregister)
{
	bool file = variant->mode == UFFDIO_REGISTER_MODE_MINOR;
	int flags = file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	const char *why = folio_settings(0);

	self->fd = -1;
	self->uffd = listener(variant->features);
	if (!why && self->uffd < 0)
		why = variant->mode == REGISTER_RWP ? "userfaultfd cannot protect against reads" :
						      "userfaultfd lacks a feature";
	if (why)
		SKIP(return, "%s", why);
	if (file) {
		self->fd = memory_file(SHMEM, PAGES);
		ASSERT_LE(0, self->fd);
	}
	self->at = mmap(NULL, bytes(PAGES), PROT_READ | PROT_WRITE, flags, self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->at);
	for (unsigned int page = 0; page < PAGES; page++)
		memset(self->at + bytes(page), pattern(page), bytes(1));
}

FIXTURE_TEARDOWN(uffd_unregister)
{
	/* If the thread still waits, this wakes it. The end of the process unmaps the memory. */
	if (self->uffd >= 0)
		close(self->uffd);
	if (self->fd >= 0)
		close(self->fd);
}

static void spin(unsigned int count)
{
	while (count--)
		asm volatile("" : : : "memory");
}

static void *write_byte(void *argument)
{
	struct writer *writer = argument;
	struct rusage before, after;

	__atomic_store_n(&writer->id, syscall(__NR_gettid), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&writer->go, __ATOMIC_ACQUIRE))
		sched_yield();
	spin(writer->delay);
	getrusage(RUSAGE_THREAD, &before);
	*writer->at = writer->value;
	getrusage(RUSAGE_THREAD, &after);
	writer->slept = after.ru_nvcsw > before.ru_nvcsw;
	return NULL;
}

/* Register the memory, and let each write to it fault. Returns 0 or -errno. */
static int watch(const FIXTURE_DATA(uffd_unregister) * self,
		 const FIXTURE_VARIANT(uffd_unregister) * variant, struct uffdio_range range)
{
	struct uffdio_register where = { .range = range, .mode = variant->mode };
	struct uffdio_writeprotect on = { .range = range, .mode = 1 };
	int error = ioctl(self->uffd, UFFDIO_REGISTER, &where);

	if (!error)
		error = variant->command ? ioctl(self->uffd, variant->command, &on) :
					   madvise(self->at, bytes(PAGES), MADV_DONTNEED);
	return error ? -errno : 0;
}

/* Whether the kernel reports a fault at @at with these flags before the time is over. */
static bool reported(int uffd, char *at, __u64 flags)
{
	struct pollfd ready = { .fd = uffd, .events = POLLIN };
	struct uffd_msg event = {};

	return poll(&ready, 1, SECONDS * 1000) == 1 &&
	       read(uffd, &event, sizeof(event)) == sizeof(event) &&
	       event.event == UFFD_EVENT_PAGEFAULT && event.arg.pagefault.flags == flags &&
	       event.arg.pagefault.address == (unsigned long)at;
}

/*
 * Whether the thread sleeps and waits for the monitor. The file names the kernel
 * function in which a thread sleeps. It is "0" if the thread is runnable.
 */
static bool waits(const struct writer *writer)
{
	char path[64], where[64] = "";

	snprintf(path, sizeof(path), "/proc/self/task/%d/wchan",
		 __atomic_load_n(&writer->id, __ATOMIC_ACQUIRE));
	return read_file(path, where, sizeof(where)) && !strcmp(where, "handle_userfault");
}

/* Whether the thread begins to wait for the monitor before the time is over. */
static bool begins_to_wait(const struct writer *writer)
{
	for (int i = 0; i < SECONDS * 1000; i++) {
		if (waits(writer))
			return true;
		usleep(1000);
	}
	return false;
}

/*
 * Wait until the thread has ended. Returns whether the call has woken the
 * thread. If not, the thread waits for the monitor, and UFFDIO_WAKE ends this.
 */
static bool woken(struct __test_metadata *_metadata, const FIXTURE_DATA(uffd_unregister) * self,
		  struct uffdio_range range)
{
	while (!waits(&self->writer)) {
		if (!pthread_tryjoin_np(self->writer.thread, NULL))
			return true;
		usleep(100);
	}
	EXPECT_EQ(0, ioctl(self->uffd, UFFDIO_WAKE, &range));
	EXPECT_EQ(0, pthread_join(self->writer.thread, NULL));
	return false;
}

/*
 * The thread writes to the second of three pages: the call must wake waiting
 * threads in the whole range, not only at its ends.
 *
 * Known issue 78: the call wakes threads only if the memory is registered for
 * missing pages.
 */
TEST_F_TIMEOUT(uffd_unregister, wakes, 120)
{
	const bool issue = !(variant->mode & UFFDIO_REGISTER_MODE_MISSING);
	struct uffdio_range range = { (unsigned long)self->at, bytes(PAGES) };
	struct writer *writer = &self->writer;
	bool woke;

	*writer = (struct writer){ .at = self->at + bytes(1), .value = 0x77, .go = true };
	ASSERT_EQ(0, watch(self, variant, range));
	ASSERT_EQ(0, pthread_create(&writer->thread, NULL, write_byte, writer));
	ASSERT_TRUE(reported(self->uffd, writer->at, variant->flags));
	ASSERT_TRUE(begins_to_wait(writer)) {
		TH_LOG("wchan does not show that the thread waits in handle_userfault()");
	}
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_UNREGISTER, &range));
	woke = woken(_metadata, self, range);
	DID(1, "threads that waited");
	EXPECT_EQ(writer->value, *writer->at);
	*writer->at = content(variant, 1);
	for (unsigned int page = 0; page < PAGES; page++)
		EXPECT_TRUE(page_is(self->at + bytes(page), content(variant, page)));
	if (!woke && issue) {
		KNOWN_ISSUE(78, "a thread waits for a page that is not registered any more");
		return;
	}
	EXPECT_TRUE(woke);
	if (issue)
		STALE_ISSUE(78);
}

/*
 * A thread writes at about the time of the call, a little later or earlier in
 * each round, and in some rounds much earlier. If it waits, the call must wake it.
 *
 * Known issue 78: if a thread begins to wait while the call clears the
 * registration, the call does not wake it. If the memory is not registered for
 * missing pages, this case meets the other part of issue 78, as the case wakes
 * does.
 */
TEST_F_TIMEOUT(uffd_unregister, race, 120)
{
	struct uffdio_range range = { (unsigned long)self->at, bytes(PAGES) };
	const time_t end = time(NULL) + RACE_SECONDS;
	struct writer *writer = &self->writer;
	unsigned int round, slept = 0;
	bool woke = true;

	for (round = 0; woke && slept < SLEPT && time(NULL) < end; round++) {
		*writer = (struct writer){ .at = self->at + bytes(1), .value = 1 + round % 100,
					   .delay = round % 20 * 20 };
		ASSERT_EQ(0, watch(self, variant, range));
		ASSERT_EQ(0, pthread_create(&writer->thread, NULL, write_byte, writer));
		while (!__atomic_load_n(&writer->id, __ATOMIC_ACQUIRE))
			sched_yield();
		__atomic_store_n(&writer->go, true, __ATOMIC_RELEASE);
		if (round % 8)
			spin(round % 23 * 17);
		else
			ASSERT_TRUE(begins_to_wait(writer));
		ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_UNREGISTER, &range));
		woke = woken(_metadata, self, range);
		ASSERT_EQ(writer->value, *writer->at);
		slept += writer->slept;
	}
	TH_LOG("%u rounds", round);
	DID(slept, "rounds in which the thread slept");
	if (!woke)
		KNOWN_ISSUE(78, "a thread waits for a page that is not registered any more");
}

TEST_HARNESS_MAIN
