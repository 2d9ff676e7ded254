// SPDX-License-Identifier: GPL-2.0
/*
 * process_madvise() of large folios: of another process, and of the process itself.
 *
 * Proves: the advice reaches exactly the pages of the vector, also if a range is a part of a folio.
 * MADV_PAGEOUT and MADV_COLLAPSE work on another process, MADV_DONTNEED and MADV_GUARD_INSTALL do
 * not. If the process itself is the target (Linux 6.13 and later), MADV_DONTNEED and
 * MADV_GUARD_INSTALL work, too. If a range is not mapped, the call returns the length of the ranges
 * before it, and leaves the later ranges alone. No other page loses its content.
 *
 * How: another process maps four folios. The vector has the first folio, and half of the third.
 *
 * Does not prove: what each advice does in detail (folio_advice).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=process_advice
 */
#include "folio_owner.h"
#include "folio_pmd.h"
#include "folio_state.h"

#define FOLIOS 4

/* include/uapi/asm-generic/mman-common.h; older headers lack these constants. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

/* @of: the process that maps the memory; @pidfd: refers to this process */
FIXTURE(process_advice)
{
	struct memory memory;
	pid_t of;
	int pidfd;
	int go[2];
};

/* @huge: whether the folios are huge pages; @self: whether this process maps the memory */
FIXTURE_VARIANT(process_advice)
{
	bool huge;
	bool self;
};

FIXTURE_VARIANT_ADD(process_advice, block_of_other)
{
};

FIXTURE_VARIANT_ADD(process_advice, huge_of_other)
{
	.huge = true,
};

FIXTURE_VARIANT_ADD(process_advice, block_of_self)
{
	.self = true,
};

FIXTURE_VARIANT_ADD(process_advice, huge_of_self)
{
	.huge = true,
	.self = true,
};

/* Shared memory in which a child says where it has mapped its memory. */
static struct memory *box;

/* In the child: map the memory. */
static void map_own(struct memory *m)
{
	struct memory own;

	if (!memory_map(&own, ANON, m->order, FOLIOS))
		*box = own;
}

FIXTURE_SETUP(process_advice)
{
	struct memory *m = &self->memory;
	int order = order_of(cont_ptes());
	const char *why = NULL;

	*m = (struct memory){ .fd = -1 };
	self->of = 0;
	self->pidfd = -1;
	if (variant->huge) {
		order = pmd_pages() ? order_of(pmd_pages()) : 0;
		why = order ? NULL : NO_HUGE_PAGES;
	}
	why = why ?: folio_settings(order);
	ASSERT_EQ(0, pipe(self->go));
	if (!why && variant->self) {
		self->of = getpid();
		why = memory_map(m, ANON, order, FOLIOS);
	} else if (!why) {
		box = mmap(NULL, bytes(1), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			   0);
		ASSERT_NE(MAP_FAILED, box);
		m->order = order;
		self->of = waiting_child(self->go, map_own, m);
		ASSERT_LT(0, self->of);
		why = box->at ? NULL : "the kernel allocated no folios of this size";
		*m = *box;
		/* Only the child has mapped these addresses. */
		m->room = NULL;
		m->fd = -1;
	}
	if (why)
		SKIP(return, "%s", why);
	folio_settings(0);
	self->pidfd = syscall(__NR_pidfd_open, self->of, 0);
	ASSERT_LE(0, self->pidfd);
}

FIXTURE_TEARDOWN(process_advice)
{
	if (self->pidfd >= 0)
		close(self->pidfd);
	if (self->of && self->of != getpid())
		EXPECT_TRUE(end_child(self->of));
	memory_free(&self->memory);
}

/* A flag of a page in the pagemap of the process that maps the memory. */
static bool has(const FIXTURE_DATA(process_advice) * self, unsigned int page, __u64 flag)
{
	char path[32];
	__u64 entry;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", self->of);
	fd = open(path, O_RDONLY);
	entry = pagemap_get_entry(fd, self->memory.at + bytes(page));
	close(fd);
	return entry & flag;
}

/* The first folio, and the first half of the third folio. */
static void vector(const FIXTURE_DATA(process_advice) * self, struct iovec ranges[2])
{
	const struct memory *m = &self->memory;
	unsigned int size = m->pages / FOLIOS;

	ranges[0] = (struct iovec){ m->at, bytes(size) };
	ranges[1] = (struct iovec){ m->at + bytes(2 * size), bytes(size / 2) };
}

/* Whether a page is in the ranges of vector(). */
static bool in_vector(const FIXTURE_DATA(process_advice) * self, unsigned int page)
{
	unsigned int size = self->memory.pages / FOLIOS;

	return page < size || (page >= 2 * size && page < 2 * size + size / 2);
}

/* Give advice about some ranges. Returns a number of bytes, or -errno. */
static ssize_t advise(const FIXTURE_DATA(process_advice) * self, struct iovec *ranges,
		      unsigned int count, int advice)
{
	ssize_t done = syscall(__NR_process_madvise, self->pidfd, ranges, (long)count, advice, 0);

	return done < 0 ? -errno : done;
}

/* Check the content of all pages. If @zeros, the pages of the vector are zeros. */
static void check(struct __test_metadata *_metadata, const FIXTURE_DATA(process_advice) * self,
		  bool zeros)
{
	const struct memory *m = &self->memory;
	unsigned int right = 0;

	for (unsigned int page = 0; page < m->pages; page++)
		right += child_has(self->of, m->at + bytes(page),
				   zeros && in_vector(self, page) ? 0 : pattern(page));
	EXPECT_EQ(m->pages, right);
}

/* The ranges go to swap, and nothing else. */
TEST_F(process_advice, pageout)
{
	struct memory *m = &self->memory;
	unsigned int size = m->pages / FOLIOS, out = 0, page;
	struct iovec ranges[2];

	if (!have_swap())
		SKIP(return, "no swap");
	vector(self, ranges);
	ASSERT_EQ((ssize_t)bytes(size + size / 2), advise(self, ranges, 2, MADV_PAGEOUT));
	for (page = 0; page < m->pages; page++) {
		EXPECT_EQ(in_vector(self, page), has(self, page, PM_SWAP)) {
			TH_LOG("page %u", page);
		}
		out += has(self, page, PM_SWAP);
	}
	check(_metadata, self, false);
	DID(out, "pages swapped out");
}

/* MADV_DONTNEED drops the pages of the ranges, if the process itself asks for it. */
TEST_F(process_advice, dontneed)
{
	struct memory *m = &self->memory;
	unsigned int size = m->pages / FOLIOS, gone = 0;
	struct iovec ranges[2];
	ssize_t done;

	vector(self, ranges);
	done = advise(self, ranges, 2, MADV_DONTNEED);
	if (done == -EINVAL) {
		check(_metadata, self, false);
		if (variant->self)
			SKIP(return, "this kernel drops no memory by process_madvise()");
		DID(m->pages, "pages kept");
		return;
	}
	EXPECT_TRUE(variant->self);
	EXPECT_EQ((ssize_t)bytes(size + size / 2), done);
	for (unsigned int page = 0; page < m->pages; page++) {
		EXPECT_EQ(!in_vector(self, page), has(self, page, PM_PRESENT));
		gone += !has(self, page, PM_PRESENT);
	}
	check(_metadata, self, true);
	DID(gone, "pages dropped");
}

/* MADV_GUARD_INSTALL makes the ranges inaccessible, if the process itself asks for it. */
TEST_F(process_advice, guard)
{
	struct memory *m = &self->memory;
	unsigned int size = m->pages / FOLIOS, guarded = 0;
	struct iovec ranges[2];
	ssize_t done;

	vector(self, ranges);
	done = advise(self, ranges, 2, MADV_GUARD_INSTALL);
	if (done == -EINVAL) {
		check(_metadata, self, false);
		if (variant->self)
			SKIP(return, "this kernel has no guard pages");
		DID(m->pages, "pages kept");
		return;
	}
	EXPECT_TRUE(variant->self);
	EXPECT_EQ((ssize_t)bytes(size + size / 2), done);
	for (unsigned int page = 0; page < m->pages; page++) {
		int number = try_access(m->at + bytes(page), true);

		EXPECT_EQ(in_vector(self, page) ? SIGSEGV : 0, number);
		guarded += !!number;
	}
	ASSERT_EQ((ssize_t)bytes(size + size / 2), advise(self, ranges, 2, MADV_GUARD_REMOVE));
	check(_metadata, self, true);
	DID(guarded, "guard pages");
}

/*
 * Half of the second folio is unmapped. The call ends at the range with the hole, and returns the
 * length of the range before it.
 */
TEST_F(process_advice, hole)
{
	struct memory *m = &self->memory;
	unsigned int size = m->pages / FOLIOS, page, kept = 0;
	struct iovec ranges[3];

	if (!variant->self || !have_swap())
		SKIP(return, "needs memory of this process, and swap");
	ASSERT_EQ(0, munmap(m->at + bytes(size), bytes(size / 2)));
	ranges[0] = (struct iovec){ m->at, bytes(size) };
	ranges[1] = (struct iovec){ m->at + bytes(size), bytes(size / 2) };
	ranges[2] = (struct iovec){ m->at + bytes(3 * size), bytes(size) };
	EXPECT_EQ((ssize_t)bytes(size), advise(self, ranges, 3, MADV_PAGEOUT));
	EXPECT_EQ(-ENOMEM, advise(self, ranges + 1, 2, MADV_PAGEOUT));
	for (page = 0; page < size; page++)
		EXPECT_TRUE(has(self, page, PM_SWAP));
	for (page = size + size / 2; page < m->pages; page++)
		kept += has(self, page, PM_PRESENT);
	EXPECT_EQ(m->pages - size - size / 2, kept);
	EXPECT_EQ(-1, foreign_page(m->at, 0, size));
	DID(kept, "pages kept");
}

/* MADV_COLLAPSE makes huge pages of the blocks of a process: of each of two ranges. */
TEST_F(process_advice, collapse)
{
	struct memory *m = &self->memory;
	unsigned int size = m->pages / FOLIOS;
	char path[40];
	struct iovec ranges[2] = { { m->at, bytes(size) },
				   { m->at + bytes(2 * size), bytes(size) } };

	if (!variant->huge)
		SKIP(return, "needs the room for huge pages");
	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", self->of);
	if (variant->self) {
		ASSERT_TRUE(split_folios(m));
	} else {
		char line[96];

		snprintf(line, sizeof(line), "%d,0x%lx,0x%lx", self->of, (unsigned long)m->at,
			 (unsigned long)m->at + bytes(m->pages));
		ASSERT_EQ(0, write_text("/sys/kernel/debug/split_huge_pages", line));
	}
	ASSERT_EQ(0, size_in(path, "AnonHugePages"));
	ASSERT_EQ((ssize_t)bytes(2 * size), advise(self, ranges, 2, MADV_COLLAPSE));
	EXPECT_EQ(2 * size, size_in(path, "AnonHugePages"));
	check(_metadata, self, false);
	DID(2, "huge pages");
}

TEST_HARNESS_MAIN
