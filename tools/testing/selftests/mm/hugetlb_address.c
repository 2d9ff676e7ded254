// SPDX-License-Identifier: GPL-2.0
/*
 * A process takes a hugetlb page back, and another mapping has this page at another address.
 *
 * If the owner of a private hugetlb mapping writes to a page that it shares with a child, and the
 * pool has no page for a copy, the kernel removes the page from the other mappings of the file. The
 * same page of the file has a different address in each mapping.
 *
 * Proves: the owner keeps the content of its page if it has a second mapping of the file. The write
 * ends although the child has moved its mapping, and the child loses the page.
 *
 * How: each test maps one page of a hugetlb file, and forks a child that shares this page. Then the
 * parent writes to it. As a control, some variants have a page for the copy.
 *
 * Does not prove: what happens to a third mapping that has another page (hugetlb_taken).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=hugetlb_address
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "folio_did.h"
#include "folio_known.h"
#include "hugetlb_tables.h"

/* The content at first, and what the parent writes. */
#define FIRST 1
#define WRITTEN 2

/* A write that uses this much CPU time does not end. A copy takes a few milliseconds. */
#define SECONDS 2

/* A child waits until the parent has closed the pipe @go. Before that, it reports by @ready. */
FIXTURE(hugetlb_address)
{
	struct hugetlb_pool pool;
	size_t size;
	int fd;
	char *at;
	char *other;	/* an unused, aligned address */
	int go[2];
	int ready[2];
};

/* @spare: how many pages the pool has for the copy */
FIXTURE_VARIANT(hugetlb_address)
{
	unsigned int spare;
};

FIXTURE_VARIANT_ADD(hugetlb_address, taken)
{
};

FIXTURE_VARIANT_ADD(hugetlb_address, copied)
{
	.spare = 1,
};

FIXTURE_SETUP(hugetlb_address)
{
	const char *why;
	char *room;

	self->at = MAP_FAILED;
	self->fd = -1;
	self->size = hugetlb_size_always_forked();
	why = hugetlb_pool_have_just(&self->pool, self->size, 1 + variant->spare);
	if (why)
		SKIP(return, "%s", why);
	self->fd = memfd_create("hugetlb_address",
				MFD_HUGETLB | order_of(self->size) << MAP_HUGE_SHIFT);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, ftruncate(self->fd, self->size));
	self->at = mmap(NULL, self->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->at);
	room = mmap(NULL, 2 * self->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, room);
	self->other = (char *)(((unsigned long)room + self->size - 1) & -self->size);
	ASSERT_EQ(0, pipe(self->go));
	ASSERT_EQ(0, pipe(self->ready));
}

FIXTURE_TEARDOWN(hugetlb_address)
{
	if (self->at != MAP_FAILED)
		munmap(self->at, self->size);
	if (self->fd >= 0)
		close(self->fd);
	hugetlb_pool_restore(&self->pool);
}

/* What a child finds in the page. */
enum { CONTENT, LOST, WRONG };

static int look(char *at, size_t size)
{
	int caught = try_access(at, false);

	if (caught)
		return caught == SIGBUS ? LOST : WRONG;
	return hugetlb_is(at, size, 0, FIRST) ? CONTENT : WRONG;
}

/* In a child: report what it finds, wait, and find out what it has then. */
static int wait_and_look(const FIXTURE_DATA(hugetlb_address) * self, bool moved)
{
	char *at = self->at, byte, has;

	close(self->go[1]);
	if (moved)
		at = mremap(at, self->size, self->size, MREMAP_MAYMOVE | MREMAP_FIXED,
			    self->other);
	has = at == MAP_FAILED ? WRONG : look(at, self->size);
	if (write(self->ready[1], &has, 1) != 1 || has != CONTENT ||
	    read(self->go[0], &byte, 1))
		return WRONG;
	return look(at, self->size);
}

/*
 * Fork a child that shares the page. Returns its process, or -1.
 */
static pid_t fork_sharing(const FIXTURE_DATA(hugetlb_address) * self, bool moved)
{
	pid_t child = fork();
	char has = WRONG;

	if (!child)
		_exit(wait_and_look(self, moved));
	return child > 0 && read(self->ready[0], &has, 1) == 1 && has == CONTENT ? child : -1;
}

/*
 * The process has a second mapping of the same page of the file. MAP_NORESERVE: this mapping has no
 * reservation, so the kernel may take pages from it. But it has no page.
 *
 * Known issue 84: the kernel takes the page from the first mapping, and the write goes to a page of
 * zeros.
 */
TEST_F(hugetlb_address, own_page_stays)
{
	char *second = mmap(self->other, self->size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, self->fd, 0);
	pid_t child;

	ASSERT_EQ(self->other, second);
	memset(self->at, FIRST, self->size);
	ASSERT_EQ(variant->spare, hugetlb_pool_left(&self->pool));
	child = fork_sharing(self, false);
	ASSERT_LT(0, child);
	memset(self->at, WRITTEN, psize());
	close(self->go[1]);
	ASSERT_EQ(variant->spare ? CONTENT : LOST, child_of(child));
	DID(1, "pages taken or copied");
	EXPECT_TRUE(page_is(self->at, WRITTEN));
	if (!variant->spare && hugetlb_is(self->at, self->size, 1, 0)) {
		KNOWN_ISSUE(84, "a process loses its own hugetlb page");
		return;
	}
	EXPECT_TRUE(hugetlb_is(self->at, self->size, 1, FIRST));
	if (!variant->spare)
		STALE_ISSUE(84);
}

/* Kills @child if the thread with the clock @used needs too much CPU time before @done is set. */
struct watch {
	pid_t child;
	clockid_t used;
	time_t from;
	atomic_bool done;
	bool killed;
};

static void *watch(void *data)
{
	struct watch *w = data;
	struct timespec now = {};

	while (!atomic_load(&w->done) && !w->killed) {
		usleep(10000);
		clock_gettime(w->used, &now);
		if (now.tv_sec - w->from > SECONDS) {
			w->killed = true;
			kill(w->child, SIGKILL);
		}
	}
	return NULL;
}

/*
 * The child has moved its mapping. The write of the parent ends, and the child loses the page.
 *
 * Known issue 84: the kernel looks at the old address for the page of the child. It finds nothing,
 * and tries again until the child ends.
 */
TEST_F(hugetlb_address, write_ends)
{
	struct timespec now = {};
	struct watch w = {};
	pthread_t watcher;
	int end;

	memset(self->at, FIRST, self->size);
	ASSERT_EQ(variant->spare, hugetlb_pool_left(&self->pool));
	w.child = fork_sharing(self, true);
	ASSERT_LT(0, w.child);
	ASSERT_EQ(0, pthread_getcpuclockid(pthread_self(), &w.used));
	ASSERT_EQ(0, clock_gettime(w.used, &now));
	w.from = now.tv_sec;
	ASSERT_EQ(0, pthread_create(&watcher, NULL, watch, &w));
	memset(self->at, WRITTEN, psize());
	atomic_store(&w.done, true);
	ASSERT_EQ(0, pthread_join(watcher, NULL));
	close(self->go[1]);
	end = child_of(w.child);
	EXPECT_TRUE(page_is(self->at, WRITTEN));
	EXPECT_TRUE(hugetlb_is(self->at, self->size, 1, FIRST));
	if (!variant->spare && w.killed && end == 128 + SIGKILL) {
		KNOWN_ISSUE(84, "a write ends only when the child ends");
		return;
	}
	EXPECT_FALSE(w.killed);
	EXPECT_EQ(variant->spare ? CONTENT : LOST, end);
	DID(1, "pages taken or copied");
	if (!variant->spare)
		STALE_ISSUE(84);
}

TEST_HARNESS_MAIN
