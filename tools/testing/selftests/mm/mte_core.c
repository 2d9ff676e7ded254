// SPDX-License-Identifier: GPL-2.0
/*
 * The tags of memory in a core file (MTE, arm64).
 *
 * Proves: a core file has the tags of all pages that are mapped with PROT_MTE, both single pages
 * and hugetlb pages.
 *
 * How: a child gives the same tag to all granules of ordinary memory and of the memory under test,
 * and dumps core. In the core file, all pages of both kinds of memory must have the same tags.
 * Known issue 61 also makes the kernel warn; see quiet_begin().
 *
 * Does not prove: that all tags of a page are right. The kernel loads the tags of a whole page to
 * save them, but QEMU 7.2 loads only a part of these tags.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=mte_core
 */
#include "core_file.h"
#include "folio_did.h"
#include "folio_known.h"
#include "folio_state.h"
#include "folio_tags.h"
#include "hugetlb_pool.h"

#define MARK 5

/* Each byte of saved tags in the core file holds the tags of two granules. */
#define PAGE_TAGS (psize() / GRANULE / 2)

FIXTURE(mte_core)
{
	char folder[sizeof(CORE_FOLDER)];
	struct hugetlb_pool pool;
	size_t size;
	char *ordinary;
	char *at;
};

FIXTURE_VARIANT(mte_core)
{
	bool hugetlb;
};

FIXTURE_VARIANT_ADD(mte_core, pages)
{
	.hugetlb = false,
};

FIXTURE_VARIANT_ADD(mte_core, hugetlb)
{
	.hugetlb = true,
};

/*
 * Map memory with tags. The mapping begins at @at if @at is not NULL and
 * nothing is mapped there.
 */
static char *map_tagged(char *at, size_t size, bool hugetlb)
{
	int flags = hugetlb ? MAP_HUGETLB | order_of(size) << MAP_HUGE_SHIFT : 0;

	return mmap(at, size, PROT_READ | PROT_WRITE | PROT_MTE,
		    MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

FIXTURE_SETUP(mte_core)
{
	const char *why;

	if (!have_tags())
		SKIP(return, "memory has no tags here: needs arm64 with MTE");
	why = folio_settings(0) ?: core_elsewhere();
	self->size = hugetlb_size(0);
	if (!why)
		why = hugetlb_pool_have(&self->pool, self->size, 1);
	if (why)
		SKIP(return, "%s", why);
	self->ordinary = map_tagged(NULL, self->size, false);
	ASSERT_NE(MAP_FAILED, self->ordinary);
	self->at = map_tagged(NULL, self->size, variant->hugetlb);
	if (self->at == MAP_FAILED && errno == EINVAL)
		SKIP(return, "hugetlb takes no PROT_MTE here");
	ASSERT_NE(MAP_FAILED, self->at);
	/*
	 * A mapping reserves its hugetlb page for one process, so the child
	 * makes its own mapping.
	 */
	ASSERT_EQ(0, munmap(self->at, self->size));
	memcpy(self->folder, CORE_FOLDER, sizeof(CORE_FOLDER));
	ASSERT_NE(NULL, mkdtemp(self->folder));
}

FIXTURE_TEARDOWN(mte_core)
{
	quiet_end();
	hugetlb_pool_restore(&self->pool);
	if (self->folder[0])
		rmdir(self->folder);
}

/* In the child, give all granules a tag, and dump core into the folder. */
static void dump(FIXTURE_DATA(mte_core) * self, bool hugetlb)
{
	if (map_tagged(self->at, self->size, hugetlb) != self->at || !core_prepare(self->folder))
		_exit(1);
	memset(self->ordinary, 1, self->size);
	memset(self->at, 1, self->size);
	set_tags(self->ordinary, self->size, MARK);
	set_tags(self->at, self->size, MARK);
	core_dump();
}

/* The tags that a core file has for a range of memory, or NULL. */
static const char *tags_in(const struct core *core, const char *at, size_t size)
{
	const struct core_header *header = core_header(core, CORE_MEMTAG, at, size);

	return header ? core->at + header->offset +
			((unsigned long)at - header->vaddr) / GRANULE / 2 : NULL;
}

/* The number of pages whose tags in the core file all have the value 0. */
static unsigned int zero_pages(const char *tags, unsigned int pages)
{
	unsigned int count = 0;

	for (unsigned int page = 0; page < pages; page++, tags += PAGE_TAGS)
		count += !tags[0] && !memcmp(tags, tags + 1, PAGE_TAGS - 1);
	return count;
}

/*
 * A child gives the same tags to ordinary memory and to the memory under test, and dumps core. In
 * the core file each page of ordinary memory has tags other than 0. Each page of the memory under
 * test has the same tags as the corresponding page of ordinary memory.
 *
 * Known issue 61: the core file has the tags of only the first base page of a
 * hugetlb page, and zeros for its other pages.
 */
TEST_F(mte_core, has_all_tags)
{
	unsigned int page, pages = self->size / psize(), same = 0;
	const char *ordinary, *tags;
	struct core core;
	int status = 0;
	pid_t child;

	quiet_begin(has_issue(61));
	child = fork();
	if (!child)
		dump(self, variant->hugetlb);
	waitpid(child, &status, 0);
	quiet_end();
	core_take(self->folder, &core);
	ASSERT_TRUE(core_written(status));
	ASSERT_NE(NULL, core.at);
	ordinary = tags_in(&core, self->ordinary, self->size);
	tags = tags_in(&core, self->at, self->size);
	ASSERT_NE(NULL, ordinary);
	ASSERT_NE(NULL, tags);
	ASSERT_EQ(0, zero_pages(ordinary, pages));
	for (page = 0; page < pages; page++)
		same += !memcmp(tags + page * PAGE_TAGS, ordinary + page * PAGE_TAGS, PAGE_TAGS);
	DID(page, "pages compared");
	TH_LOG("%u pages have their tags, %u have zeros", same, zero_pages(tags, pages));
	if (variant->hugetlb && same == 1 && !memcmp(tags, ordinary, PAGE_TAGS) &&
	    zero_pages(tags + PAGE_TAGS, pages - 1) == pages - 1) {
		KNOWN_ISSUE(61, "a core file has the tags of only one page of a hugetlb page");
		return;
	}
	EXPECT_EQ(pages, same);
	if (variant->hugetlb)
		STALE_ISSUE(61);
}

TEST_HARNESS_MAIN
