// SPDX-License-Identifier: GPL-2.0
/*
 * The content of fresh memory.
 *
 * Proves: each byte of fresh memory is zero, although the same frames held
 * other bytes before. This holds for
 *
 * - anonymous folios of every order: after a first write to the start, middle
 *   or end of the folio, after a read and a later write, and after
 *   MAP_POPULATE;
 * - memory files in folios of every order: after a fault, after fallocate(),
 *   and after a write of one byte;
 * - pages that userfaultfd provides, next to pages that the kernel allocates in
 *   page faults.
 *
 * How: the test fills memory, notes its frames, frees it, and allocates the
 * same amount of memory in the same way. It repeats this until at least half of
 * the new memory is in the noted frames. It skips folio orders that the machine
 * does not support.
 *
 * Does not prove: what fresh memory contains if two threads fault at once
 * (folio_clear_race tests this). Other programs test hugetlb and dma-buf
 * (folio_clear_pool), tags (folio_clear_tags), and kernels that clear freed
 * memory (folio_clear_freed).
 *
 * This program also passes on a kernel that clears or poisons freed memory. To
 * run the program on such a kernel, set KERNEL_ARGS=init_on_free=1 or
 * KERNEL_ARGS=page_poison=1 before TESTS=.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_clear
 */
#include <poll.h>

#include "folio_clear.h"
#include "folio_listen.h"
#include "folio_state.h"

/* Each round allocates this many bytes, or one folio if a folio is larger. */
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

/* These orders exist only with base pages larger than 4K. */
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
 * The page to touch first in try @i: a page at the start, in the middle or at
 * the end of the folio. Returns -1 after the last try.
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

/* Access the page at @at, so that the kernel allocates one folio. A write stores zeros. */
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
 * Map memory for some folios, and touch page @place of each folio. If @place is
 * negative, touch no page.
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
 * Whether every kernel uses folios of this order when it allocates memory in
 * this way. For fallocate() and write(), older kernels use only single pages
 * and huge pages.
 */
static bool in_folios(enum way how, int order)
{
	if (how == FALLOCATED || how == PARTLY)
		return bytes(1 << order) == read_pmd_pagesize();
	return how != READ_THEN_WRITTEN;
}

/*
 * For each place in a folio: allocate memory by an access to this place, check
 * the memory, fill it and free it. Repeat this until at least half of the
 * memory is in frames that the test filled in earlier rounds. The first round
 * has no frames to compare with, and early rounds may get frames that the test
 * has not filled before.
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
				TH_LOG("some of %u pages are not zero: order %d, touched page %d",
				       pages, order, place(order, i));
			}
			again = were_filled(&self->filled, m->at, pages);
			if (in_folios(how, order))
				EXPECT_TRUE(are_folios(m->at, pages, order));
			ASSERT_TRUE(fill_more(&self->filled, m->at, pages));
			memory_free(m);
		} while (2 * again < pages && ++tries < TRIES);
		EXPECT_LE(pages, 2 * again) {
			TH_LOG("fewer than half of %u pages were filled: order %d, touched page %d",
			       pages, order, place(order, i));
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
		 * fallocate() and write() need this setting to get huge pages.
		 * clear_settings() switches it off again.
		 */
		if (of_file(how) && bytes(1 << order) == read_pmd_pagesize())
			thp_write_string("shmem_enabled", "always");
		check_order(_metadata, self, how, order);
	}
	if (!orders)
		SKIP(return, "%s", why);
}

/*
 * Anonymous memory is zero after a first write. This write goes to one page of
 * each folio. The test repeats this with up to ten different pages, at the
 * start, middle and end of the folio. The kernel begins or ends a cleared range
 * at these pages.
 */
TEST_F_TIMEOUT(folio_clear, written, 240)
{
	check(_metadata, self, variant, WRITTEN);
}

/*
 * A read of anonymous memory maps the zero page, or the huge zero page. A later
 * write replaces the zero page with a folio, and this folio is zero too.
 */
TEST_F_TIMEOUT(folio_clear, read_then_written, 240)
{
	check(_metadata, self, variant, READ_THEN_WRITTEN);
}

/*
 * Anonymous memory that MAP_POPULATE allocates is zero. The process touches no
 * page of it before the check.
 */
TEST_F_TIMEOUT(folio_clear, populated, 240)
{
	check(_metadata, self, variant, POPULATED);
}

/*
 * A memory file is zero after a first write through its mapping. This write
 * goes to one page of each folio. The test repeats this with up to ten
 * different pages.
 */
TEST_F_TIMEOUT(folio_clear, file_written, 240)
{
	check(_metadata, self, variant, FILE_WRITTEN);
}

/*
 * A process reads a memory file without writing to it, and finds zeros. Memory
 * files do not use the zero page, so the read allocates folios.
 */
TEST_F_TIMEOUT(folio_clear, file_read, 240)
{
	check(_metadata, self, variant, FILE_READ);
}

/*
 * fallocate() allocates folios in a memory file without clearing them. The
 * kernel clears them at the first access, so the process finds zeros.
 */
TEST_F_TIMEOUT(folio_clear, file_fallocated, 240)
{
	check(_metadata, self, variant, FALLOCATED);
}

/*
 * pwrite() stores one byte, a zero, in each folio of a memory file. All other
 * bytes of the folio are zero.
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
	const char *why = folio_settings(order_of(cont_ptes()));

	self->memory.fd = -1;
	self->uffd = -1;
	if (why)
		SKIP(return, "%s", why);
	self->uffd = listener(0);
	if (self->uffd < 0)
		SKIP(return, "no userfaultfd");
	self->source = aligned_alloc(psize(), bytes(1));
	ASSERT_NE(NULL, self->source);
	ASSERT_TRUE(stay_on_cpu());
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
 * Provide each missing page when the kernel asks for it. Odd pages get a copy,
 * and even pages get zeros. Returns the number of pages that the kernel did not
 * ask for.
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
 * Map memory, let userfaultfd provide the middle half, and touch all pages in
 * order. Returns how many of the provided pages are in frames that the test
 * filled in earlier rounds.
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
		TH_LOG("the kernel did not ask for all of the %u missing pages", self->missing);
	}
	for (int after = 0; after < 2; after++) {
		for (unsigned int page = 0; page < m->pages; page++) {
			char *at = m->at + bytes(page);
			bool copy = page >= begin && page < end && page % 2;

			EXPECT_TRUE(page_is(at, copy ? pattern(page) : 0)) {
				TH_LOG("page %u, userfaultfd provides pages %u to %u, after a %s",
				       page, begin, end, after ? "write" : "read");
			}
			at[FOLIO_CLEAR_INSIDE] = copy ? pattern(page) : 0;
		}
	}
	EXPECT_TRUE(are_folios(m->at, begin, order));
	EXPECT_TRUE(are_folios(m->at + bytes(end), m->pages - end, order));
	again = were_filled(&self->filled, m->at + bytes(begin), self->missing);
	ASSERT_TRUE(fill_more(&self->filled, m->at, m->pages));
	return again;
}

/*
 * The memory has the size of eight folios. userfaultfd provides its middle half
 * page by page: even pages by UFFDIO_ZEROPAGE, odd pages by UFFDIO_COPY. Faults
 * allocate the first and last quarter as whole folios. userfaultfd reports each
 * missing page once. The even pages read as zeros, before and after the test
 * writes a zero to them. The odd pages read as the copied bytes.
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
