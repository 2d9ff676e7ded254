// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 86: khugepaged allocates a folio for each folio that exists, and throws it away.
 *
 * Let khugepaged make folios of 64K. Then let it scan the memory again. It must allocate nothing.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, pages of 4K, and a kernel whose khugepaged makes folios of 64K. No other process may
 * use huge pages. The program changes the settings of huge pages.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define THP "/sys/kernel/mm/transparent_hugepage/"
#define SIZE (8UL << 20)
#define FOLIO (64UL << 10)

static void text(const char *file, const char *words)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), THP "%s", file);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, words, strlen(words)) < 0) {
		printf("cannot tell: no %s\n", path);
		exit(4);
	}
	close(fd);
}

static long number(const char *file)
{
	char path[128];
	long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), THP "%s", file);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%ld", &value) != 1) {
		printf("cannot tell: no %s\n", path);
		exit(4);
	}
	fclose(f);
	return value;
}

static char read_byte(const char *from)
{
	char value = *from;

	asm volatile("" : "+r" (value) : : "memory");
	return value;
}

/* Use the memory until khugepaged has scanned it at least three times. */
static void scan(const char *at)
{
	long until = number("khugepaged/full_scans") + 4;

	for (int i = 0; i < 1000 && number("khugepaged/full_scans") < until; i++) {
		for (size_t page = 0; page < SIZE; page += 4096)
			read_byte(at + page);
		usleep(10000);
	}
}

int main(void)
{
	long folios = SIZE / FOLIO, before, made = 0, vain;
	char *room, *at;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (sysconf(_SC_PAGESIZE) != 4096)
		return 4;
	text("enabled", "never");
	text("hugepages-64kB/enabled", "never");
	text("hugepages-2048kB/enabled", "never");
	text("khugepaged/scan_sleep_millisecs", "10");
	text("khugepaged/alloc_sleep_millisecs", "10");
	text("khugepaged/pages_to_scan", "8192");
	text("khugepaged/max_ptes_none", "0");
	room = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	at = (char *)(((uintptr_t)room + SIZE - 1) & -SIZE);
	memset(at, 1, SIZE);
	text("hugepages-64kB/enabled", "madvise");
	madvise(at, SIZE, MADV_HUGEPAGE);
	before = number("hugepages-64kB/stats/nr_anon");
	for (int i = 0; i < 10 && made < folios; i++) {
		scan(at);
		made = number("hugepages-64kB/stats/nr_anon") - before;
	}
	if (made < folios) {
		printf("cannot tell: khugepaged made %ld of %ld folios\n", made, folios);
		return 4;
	}
	vain = number("hugepages-64kB/stats/collapse_alloc");
	scan(at);
	vain = number("hugepages-64kB/stats/collapse_alloc") - vain;
	printf("%ld folios exist, and khugepaged allocated %ld more\n", folios, vain);
	if (vain) {
		printf("BUG: khugepaged allocates folios in vain\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
