// SPDX-License-Identifier: GPL-2.0
/*
 * What a process finds in fresh memory.
 *
 * Proves: each byte is zero, although the same frames were full of other bytes
 * before. This holds for anonymous folios of every order, whichever page the
 * first access touches and however they come; for memory files in folios of
 * every order, after a fault, fallocate() or a write of one byte; and for pages
 * that userfaultfd provides, next to pages from faults.
 *
 * How: the test fills memory, notes its frames, frees it, and allocates as much
 * in the same way, until at least half of it is in those frames. It skips
 * orders that the machine does not have.
 *
 * Does not prove: two threads that fault at once (folio_clear_race), hugetlb
 * and dma-buf (folio_clear_pool), tags (folio_clear_tags), kernels that clear
 * freed memory (folio_clear_freed). Those kernels, and kernels with poison,
 * pass this program too: set KERNEL_ARGS=init_on_free=1 or
 * KERNEL_ARGS=page_poison=1 before TESTS=.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_clear
 */
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>

#include "folio_clear.h"

/* Each round allocates this much, or one folio if that is larger. */
#define ROOM (4UL << 20)

/* How the test makes the kernel allocate memory. */
enum way { WRITTEN, READ_THEN_WRITTEN, POPULATED, FILE_WRITTEN, FILE_READ, FALLOCATED, PARTLY };

static bool of_file(enum way how)
{
	return how >= FILE_WRITTEN;
}

FIXTURE(folio_clear)
{
	struct memory memory;
	struct filled filled;
};

FIXTURE_VARIANT(folio_clear)
{
	int first;
	int last;
};

FIXTURE_VARIANT_ADD(folio_clear, single_pages)
{
	.first = 0,
	.last = 0,
};

FIXTURE_VARIANT_ADD(folio_clear, order_2)
{
	.first = 2,
	.last = 2,
};

FIXTURE_VARIANT_ADD(folio_clear, order_3)
{
	.first = 3,
	.last = 3,
};

FIXTURE_VARIANT_ADD(folio_clear, order_4)
{
	.first = 4,
	.last = 4,
};

FIXTURE_VARIANT_ADD(folio_clear, order_5)
{
	.first = 5,
	.last = 5,
};

FIXTURE_VARIANT_ADD(folio_clear, order_6)
{
	.first = 6,
	.last = 6,
};

FIXTURE_VARIANT_ADD(folio_clear, order_7)
{
	.first = 7,
	.last = 7,
};

FIXTURE_VARIANT_ADD(folio_clear, order_8)
{
	.first = 8,
	.last = 8,
};

FIXTURE_VARIANT_ADD(folio_clear, order_9)
{
	.first = 9,
	.last = 9,
};

/* Orders that only larger pages have. */
FIXTURE_VARIANT_ADD(folio_clear, larger_orders)
{
	.first = 10,
	.last = 13,
};

FIXTURE_SETUP(folio_clear)
{
	self->memory.fd = -1;
}

FIXTURE_TEARDOWN(folio_clear)
{
	memory_free(&self->memory);
	filled_free(&self->filled);
}

/*
 * Page @i of those to touch first: the first, middle and last ones; -1 after
 * them.
 */
static int place(int order, unsigned int i)
{
	int nr = 1 << order;
	const int few[] = { 0, nr / 2, nr - 1 };
	const int all[] = { 0, 1, 2, 3, nr / 2 - 1, nr / 2, nr - 4, nr - 3, nr - 2, nr - 1 };
	bool long_ones = bytes(nr) > 8 * ROOM;

	if (nr <= 4)
		return i < (unsigned int)nr ? (int)i : -1;
	if (long_ones)
		return i < ARRAY_SIZE(few) ? few[i] : -1;
	return i < ARRAY_SIZE(all) ? all[i] : -1;
}

/* Allocate one folio by an access to its page @at. Writes store zeros. */
static bool bring(struct memory *m, enum way how, char *at)
{
	switch (how) {
	case WRITTEN:
	case FILE_WRITTEN:
		write_zero(at + FOLIO_CLEAR_INSIDE);
		return true;
	case FILE_READ:
		read_byte(at + FOLIO_CLEAR_INSIDE);
		return true;
	case READ_THEN_WRITTEN:
		read_byte(at + FOLIO_CLEAR_INSIDE);
		at -= (at - m->at) % bytes(1 << m->order);
		for (int page = 0; page < 1 << m->order; page++)
			write_zero(at + bytes(page) + FOLIO_CLEAR_INSIDE);
		return true;
	case FALLOCATED:
		at -= (at - m->at) % bytes(1 << m->order);
		return !fallocate(m->fd, 0, at - m->at, bytes(1 << m->order));
	case PARTLY:
		return pwrite(m->fd, "", 1, at - m->at + FOLIO_CLEAR_INSIDE) == 1;
	default:
		return true;
	}
}

/*
 * Map some folios, and touch page @place of each; none if @place is negative.
 */
static bool take(struct memory *m, enum way how, int order, unsigned int folios, int place)
{
	int flags = of_file(how) ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	int fd = of_file(how) ? fresh_file(folios << order) : -1;

	if (of_file(how) && fd < 0)
		return false;
	if (how == POPULATED)
		flags |= MAP_POPULATE;
	if (!fresh_map(m, order, folios, PROT_READ | PROT_WRITE, flags, fd))
		return false;
	for (unsigned int page = place; place >= 0 && page < m->pages; page += 1 << order) {
		if (!bring(m, how, m->at + bytes(page)))
			return false;
	}
	return true;
}

/*
 * Whether every kernel allocates whole folios of this order in this way. For a
 * memory file that is not mapped, older kernels use only pages and huge pages.
 */
static bool in_folios(enum way how, int order)
{
	if (how == FALLOCATED || how == PARTLY)
		return bytes(1 << order) == read_pmd_pagesize();
	return how != READ_THEN_WRITTEN;
}

/*
 * Allocate memory by each place of its folios, check it, fill it and free it,
 * until at least half of it is in frames that were filled. The first time there
 * are no frames to compare with, and free memory of this order may be left from
 * before.
 */
static void check_order(struct __test_metadata *_metadata, FIXTURE_DATA(folio_clear) * self,
			enum way how, int order)
{
	struct memory *m = &self->memory;
	unsigned int folios = folios_in(ROOM, order);
	unsigned int pages = folios << order, again;

	for (unsigned int i = 0; place(order, i) >= 0; i++) {
		int tries = 0;

		do {
			ASSERT_TRUE(take(m, how, order, folios, place(order, i)));
			EXPECT_EQ(0, not_zero(m->at, pages)) {
				TH_LOG("some of %u pages are not zero: order %d, first page %d",
				       pages, order, place(order, i));
			}
			again = were_filled(&self->filled, m->at, pages);
			if (in_folios(how, order))
				EXPECT_TRUE(are_folios(m->at, pages, order));
			ASSERT_TRUE(fill(&self->filled, m->at, pages));
			memory_free(m);
		} while (2 * again < pages && ++tries < TRIES);
		EXPECT_LE(pages, 2 * again) {
			TH_LOG("too few of %u pages were filled before: order %d, page %d", pages,
			       order, place(order, i));
		}
	}
}

static void check(struct __test_metadata *_metadata, FIXTURE_DATA(folio_clear) * self,
		  const FIXTURE_VARIANT(folio_clear) * variant, enum way how)
{
	unsigned int orders = 0;
	const char *why;

	for (int order = variant->first; order <= variant->last; order++) {
		why = clear_settings(order);
		if (why)
			continue;
		orders++;
		/*
		 * For files that are not mapped; clear_settings() switches it
		 * off again.
		 */
		if (of_file(how) && bytes(1 << order) == read_pmd_pagesize())
			thp_write_string("shmem_enabled", "always");
		check_order(_metadata, self, how, order);
	}
	if (!orders)
		SKIP(return, "%s", why);
}

/*
 * [clearing 23, 24] Anonymous memory is zero after a first write. That write
 * touches up to ten pages of a folio in turn: first, middle and last ones,
 * where the ranges that the kernel clears begin and end.
 */
TEST_F_TIMEOUT(folio_clear, written, 240)
{
	check(_metadata, self, variant, WRITTEN);
}

/*
 * [clearing 24] Anonymous memory that is read first maps the zero page, or the
 * huge one. The folios that replace it at a later write are zero too.
 */
TEST_F_TIMEOUT(folio_clear, read_then_written, 240)
{
	check(_metadata, self, variant, READ_THEN_WRITTEN);
}

/*
 * [clearing 24] Anonymous memory that MAP_POPULATE allocates all at once is
 * zero. The process has not touched any page of it before the check.
 */
TEST_F_TIMEOUT(folio_clear, populated, 240)
{
	check(_metadata, self, variant, POPULATED);
}

/*
 * [clearing 24] A memory file is zero after a first write through its mapping.
 * That write touches up to ten pages of a folio in turn.
 */
TEST_F_TIMEOUT(folio_clear, file_written, 240)
{
	check(_metadata, self, variant, FILE_WRITTEN);
}

/*
 * [clearing 24] A memory file is zero when it is only read. It has no zero
 * page, so the read allocates folios.
 */
TEST_F_TIMEOUT(folio_clear, file_read, 240)
{
	check(_metadata, self, variant, FILE_READ);
}

/*
 * [clearing 24] Folios that fallocate() reserves in a memory file are zero when
 * the process uses them: the kernel clears them then.
 */
TEST_F_TIMEOUT(folio_clear, file_fallocated, 240)
{
	check(_metadata, self, variant, FALLOCATED);
}

/*
 * [clearing 24] pwrite() stores one byte in each folio of a memory file: the
 * rest of the folio is zero.
 */
TEST_F_TIMEOUT(folio_clear, file_partly_written, 240)
{
	check(_metadata, self, variant, PARTLY);
}

FIXTURE(clear_uffd)
{
	struct memory memory;
	struct filled filled;
	int uffd;
	char *source;
	unsigned int missing;
};

FIXTURE_VARIANT(clear_uffd)
{
	enum way way;
};

FIXTURE_VARIANT_ADD(clear_uffd, anon)
{
	.way = WRITTEN,
};

FIXTURE_VARIANT_ADD(clear_uffd, shmem)
{
	.way = FILE_WRITTEN,
};

FIXTURE_SETUP(clear_uffd)
{
	struct uffdio_api api = { .api = UFFD_API };
	cpu_set_t one;
	const char *why = folio_settings(order_of(cont_ptes()));

	self->memory.fd = -1;
	self->uffd = -1;
	if (why)
		SKIP(return, "%s", why);
	self->uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (self->uffd < 0 || ioctl(self->uffd, UFFDIO_API, &api))
		SKIP(return, "no userfaultfd");
	self->source = aligned_alloc(psize(), bytes(1));
	ASSERT_NE(NULL, self->source);
	/* A CPU first reuses the memory that it freed itself. */
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(one), &one));
}

FIXTURE_TEARDOWN(clear_uffd)
{
	if (self->uffd >= 0)
		close(self->uffd);
	memory_free(&self->memory);
	filled_free(&self->filled);
	free(self->source);
}

/*
 * Answer each missing page, by zeros or a copy in turn, until none is missing.
 */
static void *bring_missing(void *argument)
{
	FIXTURE_DATA(clear_uffd) * self = argument;
	struct pollfd event = { .fd = self->uffd, .events = POLLIN };
	unsigned int left = self->missing;
	struct uffd_msg message;

	for (; left && poll(&event, 1, 5000) > 0; left--) {
		unsigned long address;
		unsigned int page;

		if (read(self->uffd, &message, sizeof(message)) != sizeof(message))
			break;
		address = message.arg.pagefault.address & -bytes(1);
		page = (address - (unsigned long)self->memory.at) / bytes(1);
		if (page % 2) {
			struct uffdio_copy copy = {
				.dst = address, .src = (unsigned long)self->source, .len = bytes(1),
			};

			memset(self->source, pattern(page), bytes(1));
			if (ioctl(self->uffd, UFFDIO_COPY, &copy))
				break;
		} else {
			struct uffdio_zeropage zero = { .range = { address, bytes(1) } };

			if (ioctl(self->uffd, UFFDIO_ZEROPAGE, &zero))
				break;
		}
	}
	return (void *)(unsigned long)left;
}

/*
 * Map memory whose middle half userfaultfd must provide, and touch all pages in
 * order. Returns how many provided pages are in frames that were filled before.
 */
static unsigned int touch_missing(struct __test_metadata *_metadata,
				  FIXTURE_DATA(clear_uffd) * self, enum way how)
{
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int order = order_of(cont_ptes());
	struct memory *m = &self->memory;
	unsigned int begin, end, again;
	pthread_t thread;
	void *left;

	ASSERT_TRUE(take(m, how, order, 8, -1));
	begin = m->pages / 4;
	end = m->pages / 4 * 3;
	self->missing = end - begin;
	range.range.start = (unsigned long)m->at + bytes(begin);
	range.range.len = bytes(self->missing);
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &range));
	ASSERT_EQ(0, pthread_create(&thread, NULL, bring_missing, self));
	for (unsigned int page = 0; page < m->pages; page++) {
		if (page >= begin && page < end)
			read_byte(m->at + bytes(page));
		else if (page % cont_ptes() == 0)
			ASSERT_TRUE(bring(m, how, m->at + bytes(page)));
	}
	ASSERT_EQ(0, pthread_join(thread, &left));
	EXPECT_EQ(0, (unsigned long)left) {
		TH_LOG("of %u missing pages the kernel never asked for this many", self->missing);
	}
	for (int after = 0; after < 2; after++) {
		for (unsigned int page = 0; page < m->pages; page++) {
			char *at = m->at + bytes(page);
			bool copy = page >= begin && page < end && page % 2;

			EXPECT_TRUE(page_is(at, copy ? pattern(page) : 0)) {
				TH_LOG("page %u of %u to %u, %s", page, begin, end,
				       after ? "written to" : "read");
			}
			at[FOLIO_CLEAR_INSIDE] = copy ? pattern(page) : 0;
		}
	}
	EXPECT_TRUE(are_folios(m->at, begin, order));
	EXPECT_TRUE(are_folios(m->at + bytes(end), m->pages - end, order));
	again = were_filled(&self->filled, m->at + bytes(begin), self->missing);
	ASSERT_TRUE(fill(&self->filled, m->at, m->pages));
	return again;
}

/*
 * [clearing 27] userfaultfd provides the middle half of eight folios, page by
 * page, by UFFDIO_ZEROPAGE and UFFDIO_COPY in turn. Faults bring the rest as
 * whole folios. The kernel asks for each missing page once. Zeros are zeros,
 * also after a write replaces the zero page, and copies are copies.
 */
TEST_F_TIMEOUT(clear_uffd, zeropage_and_copy, 120)
{
	unsigned int again;
	int tries = 0;

	do {
		again = touch_missing(_metadata, self, variant->way);
		memory_free(&self->memory);
	} while (2 * again < self->missing && ++tries < TRIES);
	EXPECT_LE(self->missing, 2 * again);
}

TEST_HARNESS_MAIN
