// SPDX-License-Identifier: GPL-2.0
/*
 * Pins of pages during direct I/O (O_DIRECT) that ends early because of a bad address.
 *
 * Proves: after preadv() or pwritev() with O_DIRECT, no page of the buffer stays pinned. This holds
 * if the kernel shortens the I/O to a multiple of the block size, and so does not need all pages
 * that it has pinned. The I/O transfers all bytes before the bad address.
 *
 * How: a loop device has blocks of 4096 bytes, and accepts memory that is aligned to 512 bytes.
 * The last vector of the I/O has a bad address, and the vectors before it do not end at a block.
 * The test compares nr_foll_pin_acquired and nr_foll_pin_released in /proc/vmstat. The cases run
 * only in the virtual machine, because a kernel with known issue 99 never frees the memory.
 *
 * Does not prove: what asynchronous I/O does, or I/O with a bounce buffer.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=direct_pin
 */
#include <linux/loop.h>

#include "folio_did.h"
#include "folio_known.h"
#include "folio_util.h"

#define BLOCK 4096
#define SECTOR 512
#define PAGES 32
#define ORDER 4
#define CALLS 3
#define FILL 0x5a	/* the content of the device */

enum shape {
	ALL_GOOD,	/* one vector, with a good address */
	CUT,	/* the kernel shortens a vector by its last page */
	DROPPED,	/* the kernel drops a vector that has parts of two pages */
};

FIXTURE(direct_pin)
{
	struct memory memory;
	int file;	/* where the device stores its data */
	int device;
	char *none;	/* a page that cannot be accessed */
};

FIXTURE_VARIANT(direct_pin)
{
	enum shape shape;
	int order;
	bool write;
};

FIXTURE_VARIANT_ADD(direct_pin, read_all)
{
	.shape = ALL_GOOD,
	.order = ORDER,
};

FIXTURE_VARIANT_ADD(direct_pin, read_cut_of_pages)
{
	.shape = CUT,
};

FIXTURE_VARIANT_ADD(direct_pin, read_dropped_of_pages)
{
	.shape = DROPPED,
};

FIXTURE_VARIANT_ADD(direct_pin, read_cut)
{
	.shape = CUT,
	.order = ORDER,
};

FIXTURE_VARIANT_ADD(direct_pin, write_cut)
{
	.shape = CUT,
	.order = ORDER,
	.write = true,
};

FIXTURE_VARIANT_ADD(direct_pin, read_dropped)
{
	.shape = DROPPED,
	.order = ORDER,
};

/* Returns a loop device with the content of @file, or -1. The last close() frees the device. */
static int loop_device(int file)
{
	struct loop_config config = {
		.fd = file,
		.block_size = BLOCK,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR,
	};
	int control = open("/dev/loop-control", O_RDWR), device;
	char path[32];

	if (control < 0)
		return -1;
	snprintf(path, sizeof(path), "/dev/loop%d", ioctl(control, LOOP_CTL_GET_FREE));
	close(control);
	device = open(path, O_RDWR | O_DIRECT);
	if (device >= 0 && ioctl(device, LOOP_CONFIGURE, &config)) {
		close(device);
		device = -1;
	}
	return device;
}

/* The number of pins, by the counters of the whole machine. Nothing else pins pages meanwhile. */
static long pinned(void)
{
	long acquired = 0, released = 0;
	char line[128];
	FILE *f;

	write_text("/proc/sys/vm/stat_refresh", "1");
	f = fopen("/proc/vmstat", "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "nr_foll_pin_acquired %ld", &acquired) != 1 &&
		    sscanf(line, "nr_foll_pin_released %ld", &released) != 1)
			continue;
	}
	if (f)
		fclose(f);
	return acquired - released;
}

FIXTURE_SETUP(direct_pin)
{
	const char *why = folio_settings(variant->order);
	char *page = malloc(bytes(1));

	self->memory = (struct memory){ .fd = -1 };
	self->file = -1;
	self->device = -1;
	self->none = MAP_FAILED;
	if (!why && access("/tests/list", F_OK))
		why = "runs only in the virtual machine";
	if (!why)
		why = memory_map(&self->memory, ANON, variant->order, PAGES >> variant->order);
	if (why)
		SKIP(return, "%s", why);
	self->file = syscall(__NR_memfd_create, "direct_pin", 0);
	memset(page, FILL, bytes(1));
	for (int i = 0; i < PAGES; i++)
		ASSERT_EQ(bytes(1), pwrite(self->file, page, bytes(1), bytes(i)));
	free(page);
	self->device = loop_device(self->file);
	ASSERT_LE(0, self->device);
	self->none = mmap(NULL, bytes(1), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->none);
}

FIXTURE_TEARDOWN(direct_pin)
{
	if (self->none != MAP_FAILED)
		munmap(self->none, bytes(1));
	memory_free(&self->memory);
	if (self->device >= 0)
		close(self->device);
	if (self->file >= 0)
		close(self->file);
}

/*
 * Fill in the vectors. Returns how many. Together they have one page and one block. @good: set to
 * the number of bytes before a bad address
 */
static int vectors_of(const FIXTURE_DATA(direct_pin) * self, enum shape shape, struct iovec *at,
		      ssize_t *good)
{
	char *memory = self->memory.at;

	if (shape == ALL_GOOD) {
		at[0] = (struct iovec){ memory, bytes(1) + BLOCK };
		*good = bytes(1) + BLOCK;
		return 1;
	}
	if (shape == DROPPED) {
		/* The second vector is in another folio, at the border of its first two pages. */
		at[0] = (struct iovec){ memory, bytes(1) };
		at[1] = (struct iovec){ memory + bytes(PAGES / 2 + 1) - SECTOR, 2 * SECTOR };
		at[2] = (struct iovec){ self->none, BLOCK - 2 * SECTOR };
		*good = bytes(1) + 2 * SECTOR;
		return 3;
	}
	at[0] = (struct iovec){ memory, bytes(1) + SECTOR };
	at[1] = (struct iovec){ self->none, BLOCK - SECTOR };
	*good = bytes(1) + SECTOR;
	return 2;
}

/*
 * Each call transfers all bytes before the bad address: whole blocks by direct I/O, and the rest
 * through the page cache. The content of the first page has arrived. After the calls as many pages
 * are pinned as before.
 *
 * Known issue 99: if a vector of a large folio is cut or dropped, one of its two pages stays pinned
 * after each call.
 */
TEST_F(direct_pin, none_stays)
{
	struct memory *m = &self->memory;
	const bool large = variant->order && variant->shape != ALL_GOOD;
	const long before = pinned();
	char *stored = malloc(bytes(1));
	struct iovec at[3];
	ssize_t good;
	int nr = vectors_of(self, variant->shape, at, &good);
	long left;

	for (int i = 0; i < CALLS; i++) {
		ssize_t done = variant->write ? pwritev(self->device, at, nr, 0) :
						preadv(self->device, at, nr, 0);

		if (done < 0 && errno == EINVAL)
			SKIP(return, "this kernel refuses vectors that do not end at a block");
		ASSERT_EQ(good, done);
	}
	DID(CALLS, "calls");
	left = pinned() - before;
	TH_LOG("%ld pins are left", left);
	ASSERT_EQ(bytes(1), pread(self->file, stored, bytes(1), 0));
	EXPECT_TRUE(page_is(stored, variant->write ? pattern(0) : FILL));
	EXPECT_TRUE(page_is(m->at, variant->write ? pattern(0) : FILL));
	free(stored);
	if (large && left == CALLS) {
		KNOWN_ISSUE(99, "direct I/O that is cut never unpins a page of a large folio");
		return;
	}
	EXPECT_EQ(0, left);
	if (large)
		STALE_ISSUE(99);
}

TEST_HARNESS_MAIN
