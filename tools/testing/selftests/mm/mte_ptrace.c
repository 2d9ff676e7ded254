// SPDX-License-Identifier: GPL-2.0
/*
 * A debugger reads and writes the tags of another process (MTE, arm64).
 *
 * Proves: a debugger reads tags of value 0 in new memory with PROT_MTE, even if
 * the frames of this memory had other tags before. This also holds if the
 * process itself has no permission to read the memory. When the process gets
 * this permission, the tags that the debugger wrote are not lost
 * (mte_ptrace_first). The debugger may use a tagged or an untagged address
 * (mte_ptrace_address).
 *
 * How: the test sets the tags of some memory and frees the memory. A child gets the same frames,
 * and stops. The debugger uses PTRACE_PEEKMTETAGS and PTRACE_POKEMTETAGS. Known issues 60 and 62
 * also make the kernel warn; see quiet_begin().
 *
 * Does not prove: tag checks (selftests/arm64/mte tests them), or tags of files and of hugetlb.
 * QEMU 7.2 keeps only two tags of each page, so the test gives all granules of a page the same tag.
 * See folio_clear_tags.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=mte_ptrace
 */
#include <sys/ptrace.h>

#include "folio_clear.h"
#include "folio_did.h"
#include "folio_known.h"
#include "folio_state.h"
#include "folio_tags.h"

#define PEEK 33 /* PTRACE_PEEKMTETAGS */
#define POKE 34 /* PTRACE_POKEMTETAGS */

#define PAGES 256
#define ROOM (4 * PAGES)

/*
 * LEFT is the tag that the test leaves in free memory. The debugger writes
 * MARK.
 */
#define LEFT 10
#define MARK 5

/* How the child maps the memory when the debugger accesses it. */
enum state { READABLE, NONE, NONE_AFTER_USE };

/*
 * The child records which of its pages are in frames that had tags before, and
 * the number of these pages.
 */
struct reused {
	bool page[PAGES];
	unsigned int count;
};

/*
 * Make a request for the tags of a child. Returns 0, the error, or -1 if the
 * kernel handled only some of the tags.
 */
static int tags_request(int request, pid_t child, char *at, unsigned char *tags, size_t nr)
{
	struct iovec io = { tags, nr };
	int result;

	quiet_begin(has_issue(60) || has_issue(62));
	result = ptrace(request, child, at, &io) ? errno : io.iov_len == nr ? 0 : -1;
	quiet_end();
	return result;
}

/* Let a child continue until it stops itself. Returns whether it stopped. */
static bool stops(pid_t child, bool resume)
{
	int status;

	if (resume && ptrace(PTRACE_CONT, child, NULL, NULL))
		return false;
	return waitpid(child, &status, 0) == child && WIFSTOPPED(status) &&
	       WSTOPSIG(status) == SIGSTOP;
}

static void end(pid_t child)
{
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
}

FIXTURE(mte_ptrace_first)
{
	struct memory memory;
	struct filled filled;
	struct reused *reused;
	unsigned char *tags;
	size_t nr;
	pid_t child;
};

FIXTURE_VARIANT(mte_ptrace_first)
{
	enum state state;
};

FIXTURE_VARIANT_ADD(mte_ptrace_first, readable)
{
	.state = READABLE,
};

FIXTURE_VARIANT_ADD(mte_ptrace_first, none)
{
	.state = NONE,
};

FIXTURE_VARIANT_ADD(mte_ptrace_first, none_after_use)
{
	.state = NONE_AFTER_USE,
};

FIXTURE_SETUP(mte_ptrace_first)
{
	const char *why;

	self->memory.fd = -1;
	if (!have_tags())
		SKIP(return, "memory has no tags here: needs arm64 with MTE");
	why = folio_settings(0);
	if (why)
		SKIP(return, "%s", why);
	ASSERT_TRUE(stay_on_cpu());
	self->nr = bytes(PAGES) / GRANULE;
	self->tags = malloc(self->nr);
	ASSERT_NE(NULL, self->tags);
	self->reused = mmap(NULL, sizeof(*self->reused), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->reused);
}

FIXTURE_TEARDOWN(mte_ptrace_first)
{
	quiet_end();
	end(self->child);
	memory_free(&self->memory);
	filled_free(&self->filled);
	free(self->tags);
}

/* Give memory the tag LEFT, note its frames, and free it. Returns true on success. */
static bool leave_tags(FIXTURE_DATA(mte_ptrace_first) * self)
{
	struct memory *m = &self->memory;
	bool right = fresh_map(m, 0, ROOM, PROT_READ | PROT_WRITE | PROT_MTE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1) &&
		     fill(&self->filled, m->at, m->pages);

	if (right)
		set_tags(m->at, bytes(m->pages), LEFT);
	memory_free(m);
	return right;
}

/*
 * The child uses memory without PROT_MTE, sets PROT_MTE, and stops. Then it
 * makes the memory readable, and stops again.
 */
static void be_debugged(FIXTURE_DATA(mte_ptrace_first) * self, enum state state)
{
	struct reused *reused = self->reused;
	char *at = self->memory.at;
	unsigned int page;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(1);
	for (page = 0; page < PAGES; page++)
		memset(at + bytes(page), pattern(page), bytes(1));
	for (page = 0; page < PAGES; page++) {
		reused->page[page] = were_filled(&self->filled, at + bytes(page), 1);
		reused->count += reused->page[page];
	}
	if (state != NONE && mprotect(at, bytes(PAGES), PROT_READ | PROT_MTE))
		_exit(1);
	if (state != READABLE && mprotect(at, bytes(PAGES), PROT_NONE | PROT_MTE))
		_exit(1);
	raise(SIGSTOP);
	if (mprotect(at, bytes(PAGES), PROT_READ | PROT_MTE))
		_exit(1);
	raise(SIGSTOP);
	_exit(0);
}

/*
 * Start a child that gets frames which had tags before. Returns whether at
 * least half of the child's pages are in such frames.
 */
static bool debug_child(FIXTURE_DATA(mte_ptrace_first) * self, enum state state)
{
	for (int tries = 0; tries < TRIES; tries++) {
		end(self->child);
		self->reused->count = 0;
		if (!leave_tags(self) ||
		    !fresh_map(&self->memory, 0, PAGES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1))
			return false;
		self->child = fork();
		if (!self->child)
			be_debugged(self, state);
		if (self->child < 0 || !stops(self->child, false))
			return false;
		if (2 * self->reused->count >= PAGES)
			return true;
		memory_free(&self->memory);
	}
	return false;
}

/*
 * The number of pages in which each granule has tag @tag. @all: also count
 * pages in frames that had no tags before.
 */
static unsigned int pages_with(FIXTURE_DATA(mte_ptrace_first) * self, unsigned char tag, bool all)
{
	const size_t nr = self->nr / PAGES;
	unsigned int count = 0;

	for (unsigned int page = 0; page < PAGES; page++) {
		const unsigned char *tags = self->tags + page * nr;

		if (all || self->reused->page[page])
			count += tags[0] == tag && !memcmp(tags, tags + 1, nr - 1);
	}
	return count;
}

/*
 * A child has memory in frames with old tags, and maps it with PROT_MTE. A debugger reads the tags
 * of the memory, which have the value 0. The debugger writes other tags and reads them again. The
 * child makes the memory readable. The debugger finds the tags that it has written.
 *
 * Known issue 60: as long as the child has not made the memory readable, the debugger reads the
 * tags that another process left in the frames. When the memory becomes readable, the kernel sets
 * all tags to 0, so it drops the tags that the debugger wrote.
 */
TEST_F_TIMEOUT(mte_ptrace_first, tags_are_zero_and_stay, 120)
{
	unsigned int zero, left, written, kept, lost;
	char *at;

	ASSERT_TRUE(debug_child(self, variant->state)) {
		TH_LOG("%u pages of %u are in frames with old tags", self->reused->count, PAGES);
	}
	DID(self->reused->count, "pages in frames with old tags");
	at = self->memory.at;
	memset(self->tags, 0xff, self->nr);
	ASSERT_EQ(0, tags_request(PEEK, self->child, at, self->tags, self->nr));
	zero = pages_with(self, 0, true);
	left = pages_with(self, LEFT, false);

	memset(self->tags, MARK, self->nr);
	ASSERT_EQ(0, tags_request(POKE, self->child, at, self->tags, self->nr));
	memset(self->tags, 0xff, self->nr);
	ASSERT_EQ(0, tags_request(PEEK, self->child, at, self->tags, self->nr));
	written = pages_with(self, MARK, true);

	ASSERT_TRUE(stops(self->child, true));
	memset(self->tags, 0xff, self->nr);
	ASSERT_EQ(0, tags_request(PEEK, self->child, at, self->tags, self->nr));
	kept = pages_with(self, MARK, true);
	lost = pages_with(self, 0, true);
	TH_LOG("of %u pages, %u have zero tags at first, %u the old tags; %u keep new tags", PAGES,
	       zero, left, kept);
	EXPECT_EQ(PAGES, written);
	if (variant->state == NONE && left == self->reused->count && lost == PAGES) {
		KNOWN_ISSUE(60, "a debugger reads old tags, and loses what it writes");
		return;
	}
	EXPECT_EQ(PAGES, zero);
	EXPECT_EQ(PAGES, kept);
	if (variant->state == NONE)
		STALE_ISSUE(60);
}

FIXTURE(mte_ptrace_address)
{
	char *at;
	pid_t child;
};

FIXTURE_VARIANT(mte_ptrace_address)
{
	unsigned long tag;
};

FIXTURE_VARIANT_ADD(mte_ptrace_address, plain)
{
	.tag = 0,
};

FIXTURE_VARIANT_ADD(mte_ptrace_address, tagged)
{
	.tag = MARK,
};

FIXTURE_SETUP(mte_ptrace_address)
{
	if (!have_tags())
		SKIP(return, "memory has no tags here: needs arm64 with MTE");
	self->at = mmap(NULL, bytes(4), PROT_READ | PROT_WRITE | PROT_MTE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->at);
	memset(self->at, MARK, bytes(4));
	self->child = fork();
	if (!self->child) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	ASSERT_TRUE(stops(self->child, false));
}

FIXTURE_TEARDOWN(mte_ptrace_address)
{
	quiet_end();
	end(self->child);
}

/*
 * A debugger writes the tags of the two middle pages of four pages, and reads the tags of all four
 * pages. It uses a tagged address, as the process itself does for such memory. Almost all system
 * calls accept tagged addresses. Only the tags of the two pages have changed.
 *
 * Known issue 62: both requests fail with EIO, although PTRACE_PEEKDATA works at this address.
 */
TEST_F(mte_ptrace_address, may_have_a_tag)
{
	const size_t nr = bytes(1) / GRANULE;
	char *at = (char *)((unsigned long)self->at | variant->tag << 56);
	unsigned char *tags = malloc(4 * nr);
	size_t wrong = 0;
	int peek, poke;
	long word;

	ASSERT_NE(NULL, tags);
	errno = 0;
	word = ptrace(PTRACE_PEEKDATA, self->child, at, NULL);
	ASSERT_EQ(0, errno);
	ASSERT_EQ(MARK, word & 255);

	memset(tags, MARK, 2 * nr);
	poke = tags_request(POKE, self->child, at + bytes(1), tags, 2 * nr);
	memset(tags, 0xff, 4 * nr);
	peek = tags_request(PEEK, self->child, at, tags, 4 * nr);
	if (variant->tag && poke == EIO && peek == EIO) {
		KNOWN_ISSUE(62, "a debugger cannot use an address with a tag to access tags");
		return;
	}
	EXPECT_EQ(0, poke);
	EXPECT_EQ(0, peek);
	for (size_t i = 0; i < 4 * nr; i++)
		wrong += tags[i] != (i < nr || i >= 3 * nr ? 0 : MARK);
	EXPECT_EQ(0, wrong);
	if (variant->tag)
		STALE_ISSUE(62);
	free(tags);
}

TEST_HARNESS_MAIN
