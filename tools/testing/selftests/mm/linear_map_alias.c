// SPDX-License-Identifier: GPL-2.0
/*
 * After the boot, the kernel's own data cannot be accessed through the linear
 * map.
 *
 * Proves: on newer arm64 kernels no access can reach the kernel's own data
 * through the linear map. The permissions of the kernel image do not apply to
 * the linear map, so they would not protect the data there. The test checks
 * every page of data and bss. The pages before and after data and bss can still
 * be accessed.
 *
 * How: a file in debugfs shows the kernel's page tables. In this file, an F
 * marks addresses that the kernel cannot access. /proc/iomem shows which
 * physical pages hold the kernel's data. In the debugfs file, the first line of
 * the linear map describes the first page of memory. KUnit suites cannot test
 * this, since they run too early in the boot.
 *
 * Does not prove: that the TLB holds no old translation of the data.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 KERNEL=7.3 TESTS=linear_map_alias
 */
#include "folio_did.h"
#include "folio_util.h"

#define TABLES "/sys/kernel/debug/kernel_page_tables"

/* A range of addresses. @end is the first address after the range. */
struct range {
	unsigned long long start, end;
};

/* How many pages of a range the kernel can access, and how many it cannot. */
struct seen {
	unsigned long long mapped, hidden;
};

FIXTURE(linear_map_alias)
{
	struct range data;
	unsigned long long first;
};

/*
 * Find the first resource of this name in /proc/iomem. Returns whether there is
 * one.
 */
static bool resource(const char *name, struct range *range)
{
	bool found = false;
	char line[256];
	FILE *f = fopen("/proc/iomem", "r");

	while (f && !found && fgets(line, sizeof(line), f)) {
		char *colon = strstr(line, " : ");

		found = colon && !strncmp(colon + 3, name, strlen(name)) &&
			sscanf(line, "%llx-%llx", &range->start, &range->end) == 2 &&
			range->start;
		range->end++;
	}
	if (f)
		fclose(f);
	return found;
}

/* The address of a symbol, or 0. */
static unsigned long long address_of(const char *symbol)
{
	unsigned long long address = 0, found = 0;
	char line[256], name[128];
	FILE *f = fopen("/proc/kallsyms", "r");

	while (f && !found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %*s %127s", &address, name) == 2 &&
		    !strcmp(name, symbol))
			found = address;
	if (f)
		fclose(f);
	return found;
}

FIXTURE_SETUP(linear_map_alias)
{
	struct range memory = {};
	unsigned long long start, end;

#ifndef __aarch64__
	SKIP(return, "only arm64 removes the kernel's data from the linear map");
#endif
#ifndef PGTABLE_KUNIT_HAS_DATA_ALIAS
	SKIP(return, "this kernel does not remove its data from the linear map");
#endif
	if (access(TABLES, R_OK))
		SKIP(return, "needs CONFIG_PTDUMP_DEBUGFS");

	ASSERT_TRUE(resource("System RAM", &memory));
	ASSERT_TRUE(resource("Kernel data", &self->data));
	self->first = memory.start;
	/*
	 * The resource ends with page tables of the early boot, which stay in
	 * the linear map.
	 */
	start = address_of("__init_end");
	end = address_of("__bss_stop");
	ASSERT_LT(0, start);
	ASSERT_LT(start, end);
	self->data.end = self->data.start + end - start;
}

FIXTURE_TEARDOWN(linear_map_alias)
{
}

/*
 * Count the pages of the physical @range that can be accessed through the
 * linear map, and the pages that cannot be accessed. The linear map begins with
 * physical address @first.
 */
static struct seen look(unsigned long long first, struct range range)
{
	struct seen seen = {};
	unsigned long long base = 0, from, to;
	bool linear = false;
	char line[256];
	FILE *f = fopen(TABLES, "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "---[", 4)) {
			linear = strstr(line, "Linear Mapping start");
			continue;
		}
		if (!linear || sscanf(line, "0x%llx-0x%llx", &from, &to) != 2)
			continue;
		/* Skip empty entries, which have no permissions. */
		if (!strstr(line, " RW ") && !strstr(line, " ro "))
			continue;
		if (!base)
			base = from - first;
		from = from - base < range.start ? range.start : from - base;
		to = to - base > range.end ? range.end : to - base;
		if (from >= to)
			continue;
		if (strstr(line, " F "))
			seen.hidden += to - from;
		else
			seen.mapped += to - from;
	}
	if (f)
		fclose(f);
	seen.hidden /= psize();
	seen.mapped /= psize();
	return seen;
}

/*
 * No page of the kernel's data and bss can be accessed through the linear map.
 * The number of pages that cannot be accessed is equal to the number of pages
 * of data and bss.
 */
TEST_F(linear_map_alias, data_out_of_reach)
{
	struct seen seen = look(self->first, self->data);

	EXPECT_EQ(0, seen.mapped);
	EXPECT_EQ((self->data.end - self->data.start) / psize(), seen.hidden);
	DID(seen.hidden, "pages of data that cannot be accessed");
}

/*
 * The pages before and after the data can be accessed: the kernel has given
 * them to the page allocator, or uses them as page tables. So the range that
 * cannot be accessed is not too large.
 */
TEST_F(linear_map_alias, neighbours_within_reach)
{
	struct range before = { self->data.start - psize(), self->data.start };
	struct range after = { self->data.end, self->data.end + psize() };

	EXPECT_EQ(1, look(self->first, before).mapped);
	EXPECT_EQ(1, look(self->first, after).mapped);
}

TEST_HARNESS_MAIN
