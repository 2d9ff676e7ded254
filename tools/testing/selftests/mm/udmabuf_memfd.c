// SPDX-License-Identifier: GPL-2.0
/*
 * A driver makes a dma-buf of a memory file. The dma-buf and the file must be
 * the same memory.
 *
 * Proves: the dma-buf shows the content of the file, and the file shows what a
 * process writes to the dma-buf. The written data is visible in a mapping of
 * the file, and read() returns it, also after a write() to another part of the
 * page. If no process has written to a page of the file, this page contains
 * zeros in the dma-buf, and not the content of memory that was freed before
 * (udmabuf_memfd). After the dma-buf is closed and reclaim has taken all pages,
 * the file still has the data that was written to the dma-buf (udmabuf_closed).
 *
 * How: each variant has a memfd of one kind. Either all pages are holes, or all were read, or all
 * were written, or all were allocated by fallocate(). udmabuf makes a dma-buf of this memfd. A
 * process writes through a mapping of the dma-buf, as a device would.
 *
 * Does not prove: that a device can reach the pages, or that huge pages have zeros
 * (folio_clear_pool tests this).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=udmabuf_memfd
 */
#include <linux/udmabuf.h>

#include "folio_did.h"
#include "folio_known.h"
#include "folio_state.h"

#define PAGES 256

/*
 * The test writes MARK to the dma-buf, and fills memory with LEFT before it
 * frees this memory. pattern() returns neither MARK nor LEFT.
 */
#define MARK 0xff
#define LEFT 0xfe

/* What happens to each page of the file before the driver gets the page. */
enum content { HOLE, READ, WRITTEN, ALLOCATED };

/* How the file is used after a write to the dma-buf. */
enum use { FAULT, BY_READ, BY_WRITE };

/* The file, and a mapping of the dma-buf. */
struct shared {
	struct memory file;
	char *dma;
	int buffer;
};

/* Fill memory with LEFT, and free it. */
static void leave_content(void)
{
	const size_t all = 16 * bytes(PAGES);
	char *at = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return;
	memset(at, LEFT, all);
	munmap(at, all);
}

/* Make a file that the driver accepts, and map it. Returns true on success. */
static bool make_file(struct memory *m, enum content content)
{
	*m = (struct memory){ .pages = PAGES, .room_bytes = bytes(PAGES) };
	m->fd = syscall(__NR_memfd_create, "udmabuf", MFD_ALLOW_SEALING);
	if (m->fd < 0 || ftruncate(m->fd, bytes(m->pages)) ||
	    fcntl(m->fd, F_ADD_SEALS, F_SEAL_SHRINK))
		return false;
	m->at = mmap(NULL, bytes(m->pages), PROT_READ, MAP_SHARED, m->fd, 0);
	if (m->at == MAP_FAILED)
		return false;
	m->room = m->at;
	leave_content();
	if (content == ALLOCATED)
		return !fallocate(m->fd, 0, 0, bytes(m->pages));
	for (unsigned int page = 0; page < m->pages; page++) {
		char *buffer = content == WRITTEN ? malloc(bytes(1)) : NULL;
		bool right = true;

		if (content == READ)
			read_byte(m->at + bytes(page));
		if (buffer) {
			memset(buffer, pattern(page), bytes(1));
			right = pwrite(m->fd, buffer, bytes(1), bytes(page)) == (ssize_t)bytes(1);
			free(buffer);
		}
		if (!right)
			return false;
	}
	return true;
}

/* Let the driver make a dma-buf of the file, and map the dma-buf. Returns true on success. */
static bool make_buffer(struct shared *s)
{
	struct udmabuf_create create = { .memfd = s->file.fd, .size = bytes(s->file.pages) };
	int device = open("/dev/udmabuf", O_RDWR);

	s->buffer = ioctl(device, UDMABUF_CREATE, &create);
	close(device);
	if (s->buffer < 0)
		return false;
	s->dma = mmap(NULL, create.size, PROT_READ | PROT_WRITE, MAP_SHARED, s->buffer, 0);
	return s->dma != MAP_FAILED;
}

static void close_buffer(struct shared *s)
{
	if (s->dma && s->dma != MAP_FAILED)
		munmap(s->dma, bytes(s->file.pages));
	if (s->buffer >= 0)
		close(s->buffer);
	s->dma = NULL;
	s->buffer = -1;
}

/* Returns the reason why this machine cannot make a dma-buf, or NULL. */
static const char *missing(struct shared *s)
{
	const char *why = folio_settings(0);

	s->file.fd = -1;
	s->buffer = -1;
	if (!why && access("/dev/udmabuf", R_OK | W_OK))
		why = "CONFIG_UDMABUF=n";
	return why;
}

FIXTURE(udmabuf_memfd)
{
	struct shared shared;
};

FIXTURE_VARIANT(udmabuf_memfd)
{
	enum content content;
	enum use use;
};

FIXTURE_VARIANT_ADD(udmabuf_memfd, hole)
{
	.content = HOLE,
};

FIXTURE_VARIANT_ADD(udmabuf_memfd, read)
{
	.content = READ,
};

FIXTURE_VARIANT_ADD(udmabuf_memfd, written)
{
	.content = WRITTEN,
};

FIXTURE_VARIANT_ADD(udmabuf_memfd, written_by_write)
{
	.content = WRITTEN,
	.use = BY_WRITE,
};

FIXTURE_VARIANT_ADD(udmabuf_memfd, allocated)
{
	.content = ALLOCATED,
};

FIXTURE_VARIANT_ADD(udmabuf_memfd, allocated_by_read)
{
	.content = ALLOCATED,
	.use = BY_READ,
};

FIXTURE_VARIANT_ADD(udmabuf_memfd, allocated_by_write)
{
	.content = ALLOCATED,
	.use = BY_WRITE,
};

FIXTURE_SETUP(udmabuf_memfd)
{
	const char *why = missing(&self->shared);

	if (why)
		SKIP(return, "%s", why);
	ASSERT_TRUE(stay_on_cpu());
	ASSERT_TRUE(make_file(&self->shared.file, variant->content));
	ASSERT_TRUE(make_buffer(&self->shared));
}

FIXTURE_TEARDOWN(udmabuf_memfd)
{
	close_buffer(&self->shared);
	memory_free(&self->shared.file);
}

/*
 * The first byte of a page of the file, or -1. With BY_WRITE, the function
 * first writes to the last byte of this page.
 */
static int first_byte(const struct memory *m, unsigned int page, enum use use)
{
	unsigned char value = MARK;

	if (use == FAULT)
		return (unsigned char)read_byte(m->at + bytes(page));
	if (use == BY_WRITE && pwrite(m->fd, &value, 1, bytes(page + 1) - 1) != 1)
		return -1;
	return pread(m->fd, &value, 1, bytes(page)) == 1 ? value : -1;
}

/*
 * Each page of the dma-buf must have the content of the same page of the file. This content is
 * zeros if no process wrote to the page of the file. Then the test writes a byte to each page of
 * the dma-buf. The next page fault, read() or write() of the file must see this byte.
 *
 * Known issue 58: the driver gets pages that fallocate() has allocated, but that are not yet filled
 * with zeros. The dma-buf shows the old content of these pages. The kernel or another process may
 * have left this content there. The next use of the file fills each page with zeros, and so
 * destroys the data that a process wrote to the dma-buf.
 */
TEST_F(udmabuf_memfd, buffer_is_the_file)
{
	const struct memory *m = &self->shared.file;
	unsigned int page, wrong = 0, left = 0, lost = 0, zeros = 0;

	for (page = 0; page < m->pages; page++) {
		char *dma = self->shared.dma + bytes(page);
		int first;

		wrong += !page_is(dma, variant->content == WRITTEN ? pattern(page) : 0);
		left += page_is(dma, LEFT);
		*dma = MARK;
		first = first_byte(m, page, variant->use);
		lost += first != MARK;
		zeros += first == 0;
	}
	DID(page, "pages compared");
	TH_LOG("%u pages have other content, %u of them from memory that is free", wrong, left);
	TH_LOG("%u pages lost a write", lost);
	if (variant->content == ALLOCATED && zeros == m->pages) {
		KNOWN_ISSUE(58, "a dma-buf of fallocated pages has old content, and loses writes");
		return;
	}
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(0, lost);
	if (variant->content == ALLOCATED)
		STALE_ISSUE(58);
}

FIXTURE(udmabuf_closed)
{
	struct shared shared;
};

FIXTURE_VARIANT(udmabuf_closed)
{
	enum content content;
};

FIXTURE_VARIANT_ADD(udmabuf_closed, hole)
{
	.content = HOLE,
};

FIXTURE_VARIANT_ADD(udmabuf_closed, read)
{
	.content = READ,
};

FIXTURE_VARIANT_ADD(udmabuf_closed, written)
{
	.content = WRITTEN,
};

FIXTURE_SETUP(udmabuf_closed)
{
	const char *why = missing(&self->shared);

	if (!why && !have_swap())
		why = "no swap";
	if (why)
		SKIP(return, "%s", why);
	ASSERT_TRUE(stay_on_cpu());
	ASSERT_TRUE(make_file(&self->shared.file, variant->content));
	ASSERT_TRUE(make_buffer(&self->shared));
}

FIXTURE_TEARDOWN(udmabuf_closed)
{
	close_buffer(&self->shared);
	memory_free(&self->shared.file);
}

/*
 * A process writes to each page of the dma-buf, and the file then has the written data. Then the
 * dma-buf is closed, and reclaim takes all pages of the file. The file must still have the data
 * that was written.
 *
 * Known issue 59: the driver does not mark the pages as dirty. If no process wrote to the file
 * itself, reclaim drops the pages, and the file has zeros.
 */
TEST_F(udmabuf_closed, file_keeps_writes)
{
	const struct memory *m = &self->shared.file;
	unsigned int page, lost = 0, zeros = 0;

	for (page = 0; page < m->pages; page++)
		self->shared.dma[bytes(page)] = MARK;
	for (page = 0; page < m->pages; page++)
		ASSERT_EQ(MARK, first_byte(m, page, FAULT));
	close_buffer(&self->shared);
	for (int i = 0; i < 100 && swapped_out(m) < m->pages; i++)
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	ASSERT_EQ(m->pages, swapped_out(m));
	for (page = 0; page < m->pages; page++) {
		lost += first_byte(m, page, FAULT) != MARK;
		zeros += page_is(m->at + bytes(page), 0);
	}
	DID(page, "pages that reclaim took");
	if (variant->content != WRITTEN && zeros == m->pages) {
		KNOWN_ISSUE(59, "reclaim drops pages that were written to through a dma-buf");
		return;
	}
	EXPECT_EQ(0, lost);
	if (variant->content != WRITTEN)
		STALE_ISSUE(59);
}

TEST_HARNESS_MAIN
