// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 82: an allocation that fails must not add a reservation to a hugetlbfs mount.
 *
 * Mount hugetlbfs with a reservation of one page. The pool has one page, and a file uses it. Then
 * fallocate() of another page fails. After truncation, one page must be reserved again.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, and one huge page of 2M (it adds it). After BUG the mount stays, because umount()
 * would make the number of reserved pages wrong until the next boot.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#define HUGE (2UL << 20)
#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"

static long get(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned long value = -1;

	if (file && fscanf(file, "%lu", &value) != 1)
		value = -1;
	if (file)
		fclose(file);
	return value;
}

static void set_pages(long value)
{
	FILE *file = fopen(POOL "nr_hugepages", "w");

	if (file) {
		fprintf(file, "%ld", value);
		fclose(file);
	}
}

int main(void)
{
	char folder[] = "/tmp/known-issue-82.XXXXXX";
	long before = get(POOL "nr_hugepages"), reserved = get(POOL "resv_hugepages");
	long used = before - get(POOL "free_hugepages") + reserved, after, in_use;
	int fd, first, second;

	if (before < 0 || get(POOL "nr_overcommit_hugepages") || !mkdtemp(folder)) {
		printf("cannot tell: needs root, huge pages of 2M, and no overcommit of them\n");
		return 4;
	}
	set_pages(used + 1);
	if (mount("none", folder, "hugetlbfs", 0, "pagesize=2M,min_size=2M")) {
		printf("cannot tell: no mount with a reservation\n");
		set_pages(before);
		return 4;
	}
	fd = open(folder, O_TMPFILE | O_RDWR, 0600);
	first = fallocate(fd, 0, 0, HUGE);
	second = fallocate(fd, 0, HUGE, HUGE);
	if (ftruncate(fd, 0) || first || !second) {
		printf("cannot tell: another process uses the pool, or the pool cannot grow\n");
		umount2(folder, MNT_DETACH);
		set_pages(before);
		return 4;
	}
	after = get(POOL "resv_hugepages") - reserved;
	fallocate(fd, 0, 0, HUGE);
	in_use = get(POOL "resv_hugepages") - reserved;
	close(fd);
	printf("%ld pages reserved after a failure, %ld when the page is in use\n", after, in_use);
	if (after == 1 && !in_use) {
		umount2(folder, MNT_DETACH);
		rmdir(folder);
		set_pages(before);
		printf("OK\n");
		return 0;
	}
	set_pages(before);
	printf("BUG: the reservation of the mount is lost\n");
	return 1;
}
