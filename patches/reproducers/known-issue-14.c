// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 14: a hinting fault at the lowest addresses makes entries of another page
 * table accessible and writable.
 *
 * Move the last 8 pages of a folio of 64K to address 4096. Move the first 8 pages one by one to the
 * ends of other page tables, read-only. Wait until NUMA balancing has made all 16 pages
 * inaccessible, and read a page at the lowest addresses. After that the first 8 pages must still be
 * read-only. The order of the page tables in memory is random, so there are 16 tries of up to 30
 * seconds each. Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell.
 * Needs root, 4K pages and two NUMA nodes (numa=fake=2 on the kernel's command line is enough).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
#define SIZE (16 * PAGE)
#define TABLE (512 * PAGE)
#define LOWEST ((char *)PAGE)
#define ALONE 8
#define TRIES 16
#define FILLERS 600
#define FOLDER "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/"
#define BALANCING "/proc/sys/kernel/numa_balancing"
#define SETTINGS "/sys/kernel/debug/sched/numa_balancing/"
#define MPOL_PREFERRED 1
#define MPOL_BIND (2 | 1 << 13) /* with MPOL_F_NUMA_BALANCING */
#define MPOL_MF_STRICT 1

static sigjmp_buf back;

static void caught(int signal)
{
	siglongjmp(back, signal);
}

static int writable(char *at)
{
	if (sigsetjmp(back, 1))
		return 0;
	__atomic_store_n(at, 1, __ATOMIC_SEQ_CST);
	return 1;
}

static char touch(char *at)
{
	return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

static int set(const char *path, const char *value, char *old, size_t length)
{
	int fd = open(path, old ? O_RDWR : O_WRONLY);
	int good = fd >= 0 && (!old || read(fd, old, length - 1) > 0) &&
		   write(fd, value, strlen(value)) > 0;

	if (fd >= 0)
		close(fd);
	return good;
}

static long hinting_faults(void)
{
	FILE *f = fopen("/proc/vmstat", "r");
	long value = 0, found = 0;
	char line[64];

	while (f && fscanf(f, "%63s %ld", line, &value) == 2)
		if (!strcmp(line, "numa_hint_faults"))
			found = value;
	if (f)
		fclose(f);
	return found;
}

/* Wait until @control has faulted twice: then NUMA balancing has scanned all memory. */
static int hint(char *control)
{
	struct timespec begin, now;
	long before = hinting_faults(), seen;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	set(BALANCING, "1", NULL, 0);
	do {
		touch(control);
		seen = hinting_faults() - before;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (seen < 2 && now.tv_sec - begin.tv_sec < 30);
	set(BALANCING, "0", NULL, 0);
	return seen >= 2;
}

static int move(char *from, size_t length, char *to)
{
	return mremap(from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
}

/* How many of the first 8 pages can be written to; -1 if it cannot tell. */
static int reached(char *folio, char *first, char *control)
{
	size_t low = SIZE - ALONE * PAGE;
	int count = 0, good = 1;

	/* The last page of this mapping stays, and keeps the page table during mremap(). */
	if (mmap(LOWEST, low + PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		 -1, 0) != LOWEST)
		return -1;
	for (int i = 0; i < ALONE; i++) {
		if (i == ALONE / 2)
			touch(LOWEST + low);
		touch(first + (i + 1) * TABLE - PAGE);
	}
	for (int i = 0; i < ALONE; i++) {
		char *to = first + (i + 1) * TABLE - PAGE;

		good = good && move(folio + i * PAGE, PAGE, to) && !mprotect(to, PAGE, PROT_READ);
	}
	good = good && move(folio + ALONE * PAGE, low, LOWEST) && hint(control);
	if (good)
		touch(LOWEST);
	for (int i = 0; i < ALONE && good; i++)
		count += writable(first + (i + 1) * TABLE - PAGE);
	munmap(LOWEST, low + PAGE);
	return good ? count : -1;
}

int main(void)
{
	char thp[64] = "", balancing[8] = "", *word, *room, *memory, *first, *control, *upper;
	unsigned long other;
	unsigned int cpu, node;
	int count = 0, tries;

	signal(SIGSEGV, caught);
	syscall(__NR_getcpu, &cpu, &node, NULL);
	other = 1UL << !node;
	if (sysconf(_SC_PAGESIZE) != PAGE || !set(BALANCING, "0", balancing, sizeof(balancing)) ||
	    !set(FOLDER "enabled", "always", thp, sizeof(thp)) ||
	    syscall(__NR_set_mempolicy, MPOL_PREFERRED, &other, 8 * sizeof(other))) {
		printf("cannot tell: needs root, 4K pages, large folios and two NUMA nodes\n");
		return 4;
	}
	/* If these settings fail, the tries only take longer. */
	set(SETTINGS "scan_delay_ms", "1", NULL, 0);
	set(SETTINGS "scan_period_min_ms", "1", NULL, 0);
	set(SETTINGS "scan_period_max_ms", "1", NULL, 0);

	room = mmap(NULL, (TRIES + 1) * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	memory = (char *)(((unsigned long)room + SIZE - 1) & -SIZE);
	memset(memory, 1, TRIES * SIZE);
	word = strtok(strchr(thp, '[') ? strchr(thp, '[') + 1 : thp, "]");
	set(FOLDER "enabled", word, NULL, 0);
	control = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*control = 1;
	room = mmap(NULL, (FILLERS + TRIES * ALONE + 1) * TABLE, PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	/*
	 * Avoid the huge zero page: its page table would come from a list of
	 * old tables.
	 */
	if (room == MAP_FAILED ||
	    madvise(room, (FILLERS + TRIES * ALONE + 1) * TABLE, MADV_NOHUGEPAGE) ||
	    syscall(__NR_mbind, memory, TRIES * SIZE, MPOL_BIND, &other, 8 * sizeof(other),
		    MPOL_MF_STRICT) ||
	    syscall(__NR_mbind, control, PAGE, MPOL_BIND, &other, 8 * sizeof(other),
		    MPOL_MF_STRICT)) {
		printf("cannot tell: no memory on the other node\n");
		return 4;
	}
	other = 1UL << node;
	syscall(__NR_set_mempolicy, MPOL_PREFERRED, &other, 8 * sizeof(other));

	/* First make the upper tables of the lowest addresses, then tables that fill gaps. */
	upper = mmap((char *)TABLE, PAGE, PROT_READ,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (upper == (char *)TABLE)
		touch(upper);
	first = (char *)(((unsigned long)room + TABLE - 1) & -TABLE);
	for (int i = 0; i < FILLERS; i++, first += TABLE)
		touch(first);
	for (tries = 0; tries < TRIES && !count; tries++)
		count = reached(memory + tries * SIZE, first + tries * ALONE * TABLE, control);
	set(BALANCING, balancing, NULL, 0);
	if (count < 0) {
		printf("cannot tell: mmap() at 4096, mremap() or NUMA balancing failed\n");
		return 4;
	}
	printf("%d tries: %d read-only pages can be written to\n", tries, count);
	printf("%s\n", count ? "BUG" : "OK");
	return !!count;
}
