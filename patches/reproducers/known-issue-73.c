// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 73: khugepaged clears the dirty bits of written pages in a read-only mapping.
 *
 * Write to all pages of a mapping, make the mapping read-only, and let khugepaged make folios of
 * 64 kB. The pages must still be dirty, and soft-dirty if the kernel has soft-dirty bits.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, to change the settings of khugepaged. It waits for at most 20 seconds.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_HUGEPAGE
#define MADV_HUGEPAGE 14
#endif

#define THP "/sys/kernel/mm/transparent_hugepage/"
#define FOLIO THP "hugepages-64kB/"
#define NR_SETTINGS 48
#define SOFT_DIRTY_BIT 55

/* The settings as they were before the test. */
static struct setting {
	char path[128];
	char value[64];
} saved[NR_SETTINGS];
static int changed;

static long get(const char *path)
{
	FILE *file = fopen(path, "r");
	long value = -1;

	if (file && fscanf(file, "%ld", &value) != 1)
		value = -1;
	if (file)
		fclose(file);
	return value;
}

static int put(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY);
	int good = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);

	if (fd >= 0)
		close(fd);
	return good;
}

/* Changes a setting, and remembers its value. A value in brackets is the selected one. */
static void set(const char *path, const char *value)
{
	struct setting *old = &saved[changed];
	char line[64] = "", *start, *end;
	FILE *file = fopen(path, "r");

	if (!file || changed == NR_SETTINGS)
		return;
	if (fgets(line, sizeof(line), file)) {
		start = strchr(line, '[');
		end = strpbrk(line, "]\n");
		if (start && strchr(start, ']'))
			end = strchr(start, ']');
		if (end)
			*end = 0;
		snprintf(old->path, sizeof(old->path), "%s", path);
		snprintf(old->value, sizeof(old->value), "%s", start ? start + 1 : line);
		changed++;
	}
	fclose(file);
	put(path, value);
}

static void restore(void)
{
	while (changed--)
		put(saved[changed].path, saved[changed].value);
}

/* Returns a number of /proc/self/smaps for the mapping at an address, in kB, or -1. */
static long kilobytes(char *at, const char *name)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	char line[256], start[32];
	long value = -1;
	int inside = 0;

	snprintf(start, sizeof(start), "%lx-", (unsigned long)at);
	while (file && value < 0 && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, start, strlen(start)))
			inside = 1;
		if (inside && !strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), ": %ld", &value);
	}
	if (file)
		fclose(file);
	return value;
}

/* Returns how many pages are soft-dirty. */
static long soft_dirty(char *at, long length)
{
	long size = sysconf(_SC_PAGESIZE), found = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY);
	unsigned long long entry;

	for (long offset = 0; fd >= 0 && offset < length; offset += size)
		if (pread(fd, &entry, 8, (unsigned long)(at + offset) / size * 8) == 8)
			found += entry >> SOFT_DIRTY_BIT & 1;
	if (fd >= 0)
		close(fd);
	return found;
}

static int run(void)
{
	long length = get(THP "hpage_pmd_size"), folios = length >> 16, made, dirty, soft[2];
	char *room, *at;
	glob_t sizes;

	if (length <= 0 || get(FOLIO "stats/collapse_exceed_none_pte") < 0)
		return 4;
	if (glob(THP "hugepages-*/enabled", 0, NULL, &sizes))
		return 4;
	for (size_t i = 0; i < sizes.gl_pathc; i++)
		set(sizes.gl_pathv[i], "never");
	room = mmap(NULL, 2 * length, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		return 4;
	at = (char *)(((unsigned long)room + length - 1) & -length);
	put("/proc/self/clear_refs", "4");
	memset(at, 7, length);
	if (mprotect(at, length, PROT_READ))
		return 4;
	soft[0] = soft_dirty(at, length);
	printf("before: %ld kB are dirty, %ld pages are soft-dirty\n",
	       kilobytes(at, "Private_Dirty"), soft[0]);
	made = get(FOLIO "stats/nr_anon");
	set(THP "khugepaged/defrag", "1");
	set(THP "khugepaged/max_ptes_none", "0");
	set(THP "khugepaged/pages_to_scan", "16384");
	set(THP "khugepaged/scan_sleep_millisecs", "10");
	set(THP "khugepaged/alloc_sleep_millisecs", "10");
	set(FOLIO "enabled", "madvise");
	if (madvise(at, length, MADV_HUGEPAGE))
		return 4;
	for (int i = 0; i < 200 && get(FOLIO "stats/nr_anon") < made + folios; i++) {
		/* khugepaged needs recent accesses. */
		if (memchr(at, 0, length))
			return 4;
		usleep(100000);
	}
	if (get(FOLIO "stats/nr_anon") < made + folios) {
		printf("khugepaged made no folios\n");
		return 4;
	}
	dirty = kilobytes(at, "Private_Dirty");
	soft[1] = soft_dirty(at, length);
	printf("after: %ld kB are dirty, %ld pages are soft-dirty\n", dirty, soft[1]);
	return dirty != length >> 10 || soft[0] != soft[1];
}

int main(void)
{
	int result;

	setvbuf(stdout, NULL, _IONBF, 0);
	result = run();
	restore();
	if (result == 4)
		printf("cannot tell\n");
	else if (result)
		printf("BUG: the pages are clean, although the process wrote to them\n");
	else
		printf("OK\n");
	return result;
}
