// SPDX-License-Identifier: GPL-2.0
/*
 * userfaultfd fills missing pages of each kind of memory that it accepts, up to the end of a file.
 *
 * Proves: a monitor can register private and shared memory, with or without a file, and huge pages
 * of each origin. UFFDIO_COPY and UFFDIO_ZEROPAGE then give a missing page its content, and a page
 * that UFFDIO_POISON marks as lost raises SIGBUS. UFFDIO_UNREGISTER makes the other pages
 * accessible. After the end of a file, UFFDIO_COPY and UFFDIO_ZEROPAGE fail with EFAULT, and an
 * access raises SIGBUS.
 *
 * How: four pages are registered, and three of them are filled, each by another ioctl. The fourth
 * page is a control: it traps until UFFDIO_UNREGISTER. UFFD_FEATURE_SIGBUS turns each trap into
 * SIGBUS, so no thread has to wait. In the second fixture, a file is cut from four pages to two
 * after mmap(). The pages before the end are the control.
 *
 * Does not prove: that a waiting thread wakes up (uffd_unregister), or anything about protection.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 KERNEL=7.3 TESTS=uffd_fill
 */
#include <sys/shm.h>

#include "folio_did.h"
#include "folio_known.h"
#include "folio_listen.h"
#include "hugetlb_pool.h"

#define PAGES 4
/* The pages of the file that are left in the second fixture. */
#define LEFT 2
/* What UFFDIO_COPY writes to each byte. */
#define CONTENT 0x5a

enum kind { SMALL_ANON, DEV_ZERO, SMALL_MEMFD, HUGE_ANON, HUGE_MEMFD, HUGE_SYSV };

/**
 * struct area - memory of PAGES pages of one kind, which is registered for missing pages
 * @pool: huge pages for it
 * @size: the size of a page, in bytes
 * @at: the memory, or MAP_FAILED
 * @source: what UFFDIO_COPY copies
 * @uffd: the descriptor of userfaultfd
 * @fd: the file, or -1
 */
struct area {
	struct hugetlb_pool pool;
	size_t size;
	char *at;
	char *source;
	int uffd;
	int fd;
};

static bool is_huge(enum kind kind)
{
	return kind >= HUGE_ANON;
}

/* Map the memory. Returns MAP_FAILED on failure. */
static char *area_map(struct area *area, enum kind kind, bool shared)
{
	const int log = order_of(area->size), prot = PROT_READ | PROT_WRITE;
	int flags = (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_NORESERVE, id;
	char *at = MAP_FAILED;

	switch (kind) {
	case HUGE_SYSV:
		id = shmget(IPC_PRIVATE, PAGES * area->size,
			    IPC_CREAT | 0600 | SHM_HUGETLB | SHM_NORESERVE | log << MAP_HUGE_SHIFT);
		if (id >= 0) {
			at = shmat(id, NULL, 0);
			shmctl(id, IPC_RMID, NULL);
		}
		return at;
	case HUGE_ANON:
		flags |= MAP_ANONYMOUS | MAP_HUGETLB | log << MAP_HUGE_SHIFT;
		break;
	case SMALL_ANON:
		flags |= MAP_ANONYMOUS;
		break;
	case DEV_ZERO:
		area->fd = open("/dev/zero", O_RDWR);
		break;
	case HUGE_MEMFD:
		area->fd = memfd_create("uffd_fill", MFD_HUGETLB | log << MAP_HUGE_SHIFT);
		break;
	case SMALL_MEMFD:
		area->fd = memfd_create("uffd_fill", 0);
		break;
	}
	if ((kind == SMALL_MEMFD || kind == HUGE_MEMFD) && ftruncate(area->fd, PAGES * area->size))
		return MAP_FAILED;
	return mmap(NULL, PAGES * area->size, prot, flags, area->fd, 0);
}

/*
 * Make the memory. Returns NULL, or the reason why this machine has no such
 * memory. The test fails if @area->at is MAP_FAILED after that.
 */
static const char *area_make(struct area *area, enum kind kind, bool shared)
{
	const char *why = folio_settings(0);

	*area = (struct area){ .at = MAP_FAILED, .source = MAP_FAILED, .fd = -1, .uffd = -1 };
	area->size = is_huge(kind) ? hugetlb_size(0) : psize();
	if (!why && is_huge(kind))
		why = hugetlb_pool_have(&area->pool, area->size, PAGES);
	if (why)
		return why;
	area->uffd = listener(UFFD_FEATURE_SIGBUS | UFFD_FEATURE_POISON);
	if (area->uffd < 0)
		return "userfaultfd cannot mark pages as lost";
	area->source = mmap(NULL, area->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	if (area->source == MAP_FAILED)
		return "out of memory";
	memset(area->source, CONTENT, area->size);
	area->at = area_map(area, kind, shared);
	return NULL;
}

static void area_free(struct area *area)
{
	if (area->uffd >= 0)
		close(area->uffd);
	/* munmap() also detaches a System V segment, and then no one has it. */
	if (area->at != MAP_FAILED)
		munmap(area->at, PAGES * area->size);
	if (area->source != MAP_FAILED)
		munmap(area->source, area->size);
	if (area->fd >= 0)
		close(area->fd);
	hugetlb_pool_restore(&area->pool);
}

static struct uffdio_range range_of(const struct area *area, unsigned int page, unsigned int pages)
{
	return (struct uffdio_range){ (unsigned long)area->at + page * area->size,
				      pages * area->size };
}

/* Each of these functions returns 0 or -errno. */
static int watch(const struct area *area)
{
	struct uffdio_register where = {
		.range = range_of(area, 0, PAGES),
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	return ioctl(area->uffd, UFFDIO_REGISTER, &where) ? -errno : 0;
}

static int end_watch(const struct area *area)
{
	struct uffdio_range range = range_of(area, 0, PAGES);

	return ioctl(area->uffd, UFFDIO_UNREGISTER, &range) ? -errno : 0;
}

static int copy_to(const struct area *area, unsigned int page)
{
	struct uffdio_copy copy = {
		.dst = (unsigned long)area->at + page * area->size,
		.src = (unsigned long)area->source,
		.len = area->size,
	};

	return ioctl(area->uffd, UFFDIO_COPY, &copy) ? -errno : 0;
}

static int give_zeros(const struct area *area, unsigned int page)
{
	struct uffdio_zeropage zeros = { .range = range_of(area, page, 1) };

	return ioctl(area->uffd, UFFDIO_ZEROPAGE, &zeros) ? -errno : 0;
}

static int poison(const struct area *area, unsigned int page)
{
	struct uffdio_poison lost = { .range = range_of(area, page, 1) };

	return ioctl(area->uffd, UFFDIO_POISON, &lost) ? -errno : 0;
}

/* The signal of a read of the page, or 0. */
static int access_of(const struct area *area, unsigned int page)
{
	return try_access(area->at + page * area->size, false);
}

/* Whether each byte of the page has this value. */
static bool has(const struct area *area, unsigned int page, unsigned char value)
{
	return hugetlb_is(area->at + page * area->size, area->size, 0, value);
}

FIXTURE(uffd_fill)
{
	struct area area;
};

/* @kind, @shared: the memory */
FIXTURE_VARIANT(uffd_fill)
{
	enum kind kind;
	bool shared;
};

FIXTURE_VARIANT_ADD(uffd_fill, anon)
{
	.kind = SMALL_ANON,
};

FIXTURE_VARIANT_ADD(uffd_fill, shared_anon)
{
	.kind = SMALL_ANON,
	.shared = true,
};

FIXTURE_VARIANT_ADD(uffd_fill, dev_zero)
{
	.kind = DEV_ZERO,
};

FIXTURE_VARIANT_ADD(uffd_fill, shared_dev_zero)
{
	.kind = DEV_ZERO,
	.shared = true,
};

FIXTURE_VARIANT_ADD(uffd_fill, memfd)
{
	.kind = SMALL_MEMFD,
};

FIXTURE_VARIANT_ADD(uffd_fill, shared_memfd)
{
	.kind = SMALL_MEMFD,
	.shared = true,
};

FIXTURE_VARIANT_ADD(uffd_fill, huge)
{
	.kind = HUGE_ANON,
};

FIXTURE_VARIANT_ADD(uffd_fill, huge_memfd)
{
	.kind = HUGE_MEMFD,
};

FIXTURE_VARIANT_ADD(uffd_fill, shared_huge_memfd)
{
	.kind = HUGE_MEMFD,
	.shared = true,
};

FIXTURE_VARIANT_ADD(uffd_fill, shared_huge_sysv)
{
	.kind = HUGE_SYSV,
	.shared = true,
};

FIXTURE_SETUP(uffd_fill)
{
	const char *why = area_make(&self->area, variant->kind, variant->shared);

	if (why)
		SKIP(return, "%s", why);
	ASSERT_NE(MAP_FAILED, self->area.at);
}

FIXTURE_TEARDOWN(uffd_fill)
{
	area_free(&self->area);
}

/*
 * Each ioctl fills its page, and the last page stays missing until the end of the registration. The
 * mark of a lost page stays after that. UFFDIO_ZEROPAGE is not for huge pages.
 *
 * Known issue 93: in a private mapping of /dev/zero, each ioctl fails with EFAULT. This memory is
 * anonymous, but the kernel tests the size of the device.
 *
 * Known issue 94: UFFDIO_REGISTER and UFFDIO_UNREGISTER of a System V segment of huge pages fail
 * with EINVAL.
 */
TEST_F(uffd_fill, missing_pages)
{
	const bool zeros = !is_huge(variant->kind);
	const bool issue_93 = variant->kind == DEV_ZERO && !variant->shared;
	const bool issue_94 = variant->kind == HUGE_SYSV;
	struct area *area = &self->area;
	int registered = watch(area), copied, zeroed, poisoned;

	if (issue_94 && registered == -EINVAL) {
		EXPECT_EQ(-EINVAL, end_watch(area));
		EXPECT_EQ(0, access_of(area, 0));
		KNOWN_ISSUE(94, "userfaultfd refuses a System V segment of huge pages");
		return;
	}
	ASSERT_EQ(0, registered);
	for (unsigned int page = 0; page < PAGES; page++)
		ASSERT_EQ(SIGBUS, access_of(area, page));
	copied = copy_to(area, 0);
	zeroed = zeros ? give_zeros(area, 1) : 0;
	poisoned = poison(area, 2);
	EXPECT_EQ(SIGBUS, access_of(area, 2));
	EXPECT_EQ(SIGBUS, access_of(area, 3));
	if (issue_93 && copied == -EFAULT && zeroed == -EFAULT && poisoned == -EFAULT) {
		EXPECT_EQ(SIGBUS, access_of(area, 0));
		EXPECT_EQ(SIGBUS, access_of(area, 1));
		EXPECT_EQ(0, end_watch(area));
		for (unsigned int page = 0; page < PAGES; page++)
			EXPECT_EQ(0, access_of(area, page));
		KNOWN_ISSUE(93, "userfaultfd cannot fill a private mapping of /dev/zero");
		return;
	}
	EXPECT_EQ(0, copied);
	EXPECT_EQ(0, zeroed);
	EXPECT_EQ(0, poisoned);
	ASSERT_EQ(0, access_of(area, 0));
	EXPECT_TRUE(has(area, 0, CONTENT));
	EXPECT_EQ(zeros ? 0 : SIGBUS, access_of(area, 1));
	ASSERT_EQ(0, end_watch(area));
	ASSERT_EQ(0, access_of(area, 1));
	EXPECT_TRUE(has(area, 1, 0));
	EXPECT_EQ(SIGBUS, access_of(area, 2));
	ASSERT_EQ(0, access_of(area, 3));
	EXPECT_TRUE(has(area, 3, 0));
	EXPECT_TRUE(has(area, 0, CONTENT));
	DID(zeros ? 3 : 2, "pages that an ioctl filled");
	if (issue_93)
		STALE_ISSUE(93);
	if (issue_94)
		STALE_ISSUE(94);
}

FIXTURE(uffd_end)
{
	struct area area;
};

/* @kind, @shared: the mapping of a file */
FIXTURE_VARIANT(uffd_end)
{
	enum kind kind;
	bool shared;
};

FIXTURE_VARIANT_ADD(uffd_end, memfd)
{
	.kind = SMALL_MEMFD,
};

FIXTURE_VARIANT_ADD(uffd_end, shared_memfd)
{
	.kind = SMALL_MEMFD,
	.shared = true,
};

FIXTURE_VARIANT_ADD(uffd_end, huge_memfd)
{
	.kind = HUGE_MEMFD,
};

FIXTURE_VARIANT_ADD(uffd_end, shared_huge_memfd)
{
	.kind = HUGE_MEMFD,
	.shared = true,
};

FIXTURE_SETUP(uffd_end)
{
	const char *why = area_make(&self->area, variant->kind, variant->shared);

	if (why)
		SKIP(return, "%s", why);
	ASSERT_NE(MAP_FAILED, self->area.at);
	ASSERT_EQ(0, ftruncate(self->area.fd, LEFT * self->area.size));
}

FIXTURE_TEARDOWN(uffd_end)
{
	area_free(&self->area);
}

/*
 * A copy to the last page of the file succeeds, and a copy to a page after it fails with EFAULT. An
 * access to such a page raises SIGBUS, whether the memory is registered or not.
 *
 * Known issue 95: in a private mapping of a hugetlb file, the copy succeeds, and the page can be
 * used. In a shared mapping of a file in memory, the error is ENOMEM (7.3).
 */
TEST_F(uffd_end, after_end_of_file)
{
	const bool huge = is_huge(variant->kind), issue_95 = huge != variant->shared;
	struct area *area = &self->area;
	int first, last, zeros = -EFAULT;

	ASSERT_EQ(0, watch(area));
	ASSERT_EQ(0, copy_to(area, LEFT - 1));
	ASSERT_EQ(0, access_of(area, LEFT - 1));
	EXPECT_TRUE(has(area, LEFT - 1, CONTENT));
	for (unsigned int page = LEFT; page < PAGES; page++)
		ASSERT_EQ(SIGBUS, access_of(area, page));
	first = copy_to(area, LEFT);
	last = copy_to(area, PAGES - 1);
	if (!huge)
		zeros = give_zeros(area, PAGES - 1);
	ASSERT_EQ(0, end_watch(area));
	ASSERT_EQ(0, access_of(area, 0));
	EXPECT_TRUE(has(area, 0, 0));
	EXPECT_TRUE(has(area, LEFT - 1, CONTENT));
	DID(1, "copies to the last page of the file");
	if (issue_95 && huge && !first && !last) {
		for (unsigned int page = LEFT; page < PAGES; page++) {
			ASSERT_EQ(0, access_of(area, page));
			EXPECT_TRUE(has(area, page, CONTENT));
		}
		KNOWN_ISSUE(95, "UFFDIO_COPY makes pages after the end of a hugetlb file");
		return;
	}
	for (unsigned int page = LEFT; page < PAGES; page++)
		EXPECT_EQ(SIGBUS, access_of(area, page));
	if (issue_95 && !huge && first == -ENOMEM && last == -ENOMEM && zeros == -ENOMEM) {
		KNOWN_ISSUE(95, "after the end of a file, UFFDIO_COPY fails with ENOMEM");
		return;
	}
	EXPECT_EQ(-EFAULT, first);
	EXPECT_EQ(-EFAULT, last);
	EXPECT_EQ(-EFAULT, zeros);
	/* 6.12 has only one of both parts of the issue, and only this mapping shows it. */
	if (issue_95 && huge)
		STALE_ISSUE(95);
}

TEST_HARNESS_MAIN
