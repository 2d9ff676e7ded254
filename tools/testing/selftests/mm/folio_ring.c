// SPDX-License-Identifier: GPL-2.0
/*
 * A process maps the kernel's own pages: the rings of io_uring.
 *
 * Proves: mmap() of a ring maps each page of the ring at the right place. The
 * process and the kernel see the same requests and the same answers.
 *
 * How: each request has its own number, and the requests fill many pages.
 * The kernel's answer to a request contains the number of this request. If a
 * page is missing or is mapped at the wrong place, the test gets wrong numbers
 * or SIGBUS.
 *
 * Does not prove: that io_uring handles requests correctly (the tests of
 * liburing check this).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_ring
 */
#include "folio_util.h"

#define PAGES 32

FIXTURE(folio_ring)
{
	struct io_uring_params params;
	unsigned int requests;
	char *ring;
	size_t ring_bytes;
	int fd;
};

FIXTURE_SETUP(folio_ring)
{
	self->ring = MAP_FAILED;
	self->requests = bytes(PAGES) / sizeof(struct io_uring_sqe);
	self->params = (struct io_uring_params){ .flags = IORING_SETUP_CLAMP };
	self->fd = syscall(__NR_io_uring_setup, self->requests, &self->params);
	if (self->fd < 0)
		SKIP(return, "no io_uring");
	/* The kernel rounds the number of requests to a power of two. */
	self->requests = self->params.sq_entries;
	self->ring_bytes = self->params.cq_off.cqes +
			   self->params.cq_entries * sizeof(struct io_uring_cqe);
	if (self->params.sq_off.array + self->params.sq_entries * 4 > self->ring_bytes)
		self->ring_bytes = self->params.sq_off.array + self->params.sq_entries * 4;
	self->ring = mmap(NULL, self->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd,
			  IORING_OFF_SQ_RING);
	ASSERT_NE(MAP_FAILED, self->ring);
}

FIXTURE_TEARDOWN(folio_ring)
{
	if (self->ring != MAP_FAILED)
		munmap(self->ring, self->ring_bytes);
	if (self->fd >= 0)
		close(self->fd);
}

/* Each request does nothing. The answers come in order, one for each request. */
TEST_F(folio_ring, each_request)
{
	unsigned int length = self->requests * sizeof(struct io_uring_sqe), i, wrong = 0;
	unsigned int *array = (unsigned int *)(self->ring + self->params.sq_off.array);
	struct io_uring_cqe *answers = (void *)(self->ring + self->params.cq_off.cqes);
	struct io_uring_sqe *requests;

	requests = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd,
			IORING_OFF_SQES);
	ASSERT_NE(MAP_FAILED, requests);
	for (i = 0; i < self->requests; i++) {
		requests[i] = (struct io_uring_sqe){ .opcode = IORING_OP_NOP, .user_data = 1 + i };
		array[i] = i;
	}
	__atomic_store_n((unsigned int *)(self->ring + self->params.sq_off.tail), self->requests,
			 __ATOMIC_RELEASE);
	ASSERT_EQ(self->requests, syscall(__NR_io_uring_enter, self->fd, self->requests,
					  self->requests, IORING_ENTER_GETEVENTS, NULL, 0));
	for (i = 0; i < self->requests; i++) {
		EXPECT_EQ(0, answers[i].res);
		wrong += answers[i].user_data != 1 + i;
	}
	EXPECT_EQ(0, wrong) {
		TH_LOG("%u of %u answers belong to another request", wrong, self->requests);
	}
	DID(self->requests, "requests");
	munmap(requests, length);
}

/*
 * The process maps the requests many times, at consecutive addresses, until the
 * mappings fill a page table. Each page of each mapping is present, including
 * the page in the last entry of the table. The kernel maps pages in batches,
 * and a batch ends at the end of a table.
 */
TEST_F(folio_ring, over_table_end)
{
	unsigned int length = self->requests * sizeof(struct io_uring_sqe), ends = 0;
	unsigned int missing = 0, pages = length / psize(), entries = psize() / sizeof(long);
	unsigned int maps = 2 * entries / pages + 2;
	char **at = calloc(maps, sizeof(*at));

	ASSERT_NE(NULL, at);
	for (unsigned int map = 0; map < maps; map++) {
		at[map] = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd,
			       IORING_OFF_SQES);
		ASSERT_NE(MAP_FAILED, at[map]);
		for (unsigned int page = 0; page < pages; page++) {
			char *here = at[map] + bytes(page);

			ends += (unsigned long)here / psize() % entries == entries - 1;
			missing += try_access(here, false) != 0;
			if (missing)
				continue;
			if (!map)
				*here = pattern(page);
			EXPECT_EQ((char)pattern(page), *here);
		}
	}
	EXPECT_EQ(0, missing);
	for (unsigned int map = 0; map < maps; map++)
		munmap(at[map], length);
	free(at);
	DID(ends, "pages in the last entry of a page table");
}

TEST_HARNESS_MAIN
