// SPDX-License-Identifier: GPL-2.0
/*
 * What a process finds in memory that is new to it.
 *
 * Proves: each byte of it is zero, though the very frames that it is made of
 * were full of other bytes before: anonymous folios of every order, wherever
 * the first access falls and however they come; memory files in folios of every
 * order, by a fault, by fallocate(), around a byte that was written; pages that
 * userfaultfd brings, beside those of faults.
 *
 * How: memory is filled, its frames are noted, it is given back, and as much is
 * taken in the same way, until at least half of it stands in those frames.
 * Orders that the machine does not have are skipped.
 *
 * Does not prove: two threads that fault at once (folio_clear_race), hugetlb and
 * dma-buf (folio_clear_pool), tags (folio_clear_tags), kernels that clear what is
 * given back (folio_clear_freed). On those, and with poison, content is the same:
 * KERNEL_ARGS=init_on_free=1 or KERNEL_ARGS=page_poison=1 in front of TESTS=.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_clear
 */
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>

#include "folio_clear.h"

/* So much is taken at a time, or a single folio where that is larger. */
#define ROOM (4UL << 20)

/* How memory comes: by what is done first. */
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

/* Of larger pages. */
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

/* The pages of a folio where something is special: begin, middle and end; -1 after them. */
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

/* Let one folio come, by the page @at of it; what is written is zero. */
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

/* Memory of some folios, each of which its page @place has brought; none with a negative one. */
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
 * Whether every kernel brings whole folios of this order this way. Where a
 * memory file is not mapped, older ones have just pages and huge pages.
 */
static bool in_folios(enum way how, int order)
{
	if (how == FALLOCATED || how == PARTLY)
		return bytes(1 << order) == read_pmd_pagesize();
	return how != READ_THEN_WRITTEN;
}

/*
 * Take memory by each place of its folios, look at all of it, fill it and give
 * it back, until what comes is what was filled the last time: the very first
 * time there is nothing to go by, and free memory of this order may have been
 * left from before.
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
				TH_LOG("pages of %u, order %d, by page %d", pages, order,
				       place(order, i));
			}
			again = were_filled(&self->filled, m->at, pages);
			if (in_folios(how, order))
				EXPECT_TRUE(are_folios(m->at, pages, order));
			ASSERT_TRUE(fill(&self->filled, m->at, pages));
			memory_free(m);
		} while (2 * again < pages && ++tries < TRIES);
		EXPECT_LE(pages, 2 * again) {
			TH_LOG("of %u pages, order %d, by page %d: that proves nothing", pages,
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
		why = folio_settings(order);
		if (why)
			continue;
		orders++;
		/* For those that do not go by the mapping; folio_settings() takes it back. */
		if (of_file(how) && bytes(1 << order) == read_pmd_pagesize())
			thp_write_string("shmem_enabled", "always");
		check_order(_metadata, self, how, order);
	}
	if (!orders)
		SKIP(return, "%s", why);
}

/*
 * [clearing 23, 24] Anonymous memory that is written to: the first access falls
 * on each place of its folios, where the ranges that are cleared begin and end.
 */
TEST_F_TIMEOUT(folio_clear, written, 240)
{
	check(_metadata, self, variant, WRITTEN);
}

/*
 * [clearing 24] Read first, and so mapped to the page of zeros, or the huge one,
 * then written to, page by page.
 */
TEST_F_TIMEOUT(folio_clear, read_then_written, 240)
{
	check(_metadata, self, variant, READ_THEN_WRITTEN);
}

/* [clearing 24] All of it at once, by MAP_POPULATE. */
TEST_F_TIMEOUT(folio_clear, populated, 240)
{
	check(_metadata, self, variant, POPULATED);
}

/* [clearing 24] A memory file that is written to through its mapping. */
TEST_F_TIMEOUT(folio_clear, file_written, 240)
{
	check(_metadata, self, variant, FILE_WRITTEN);
}

/* [clearing 24] A memory file that is only read: it has no page of zeros. */
TEST_F_TIMEOUT(folio_clear, file_read, 240)
{
	check(_metadata, self, variant, FILE_READ);
}

/* [clearing 24] Memory that fallocate() has set aside is cleared when it is used. */
TEST_F_TIMEOUT(folio_clear, file_fallocated, 240)
{
	check(_metadata, self, variant, FALLOCATED);
}

/* [clearing 24] One byte is written by pwrite(): the rest of its folio is cleared. */
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
	/* Memory that a CPU has given back comes to the same CPU first. */
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

/* Bring what is missing, a page of zeros and a copy in turn, until all is there. */
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

/* Memory the middle half of which is missing: all pages are touched, in order. */
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
		TH_LOG("so many of %u pages were never asked for", self->missing);
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
 * [clearing 27] The middle half of the memory is brought by userfaultfd, by
 * UFFDIO_ZEROPAGE and UFFDIO_COPY in turn, the rest by faults that bring whole
 * folios. Each missing page is asked for once; zeros are zeros, also in what a
 * write makes of them; copies are copies.
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
