/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers that read the state of memory: which blocks are folded, and which
 * pages are in swap. Tests use them to prove that a fold or a swap-out really
 * happened.
 */
#ifndef FOLIO_STATE_H
#define FOLIO_STATE_H

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <time.h>

#include "folio_util.h"

/**
 * mapped_size() - the size of the entry that maps an address
 * @address: the address; the function reads one byte there
 *
 * perf puts a watchpoint on the address, and takes a sample when the address is
 * read. The sample contains the number of bytes that the entry maps. For an
 * entry with the contiguous bit, this is the size of the block.
 *
 * Return: bytes, or 0 if perf does not show the size
 */
static inline unsigned long mapped_size(char *address)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE,
		.bp_type = HW_BREAKPOINT_R | HW_BREAKPOINT_W,
		.bp_addr = (unsigned long)address,
		.bp_len = HW_BREAKPOINT_LEN_1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	struct sample {
		struct perf_event_header header;
		__u64 address;
		__u64 size;
	} *sample;
	struct perf_event_mmap_page *ring;
	unsigned long result = 0;
	int fd;

	fd = syscall(__NR_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return 0;
	ring = mmap(NULL, bytes(2), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring != MAP_FAILED) {
		read_byte(address);
		sample = (struct sample *)((char *)ring + bytes(1));
		if (ring->data_head >= sizeof(*sample) &&
		    sample->header.type == PERF_RECORD_SAMPLE)
			result = sample->size;
		munmap(ring, bytes(2));
	}
	close(fd);
	return result;
}

/* Whether a folded block maps the page. */
static inline bool folded(const struct memory *m, unsigned int page)
{
	return mapped_size(m->at + bytes(page)) == bytes(cont_ptes());
}

/*
 * Whether perf can show the sizes of entries on this machine. The function
 * tries perf on a variable of this program.
 */
static inline bool perf_tells(void)
{
	static char here;

	return mapped_size(&here) > 0;
}

#define NO_PERF "perf has no watchpoints here: folding was not checked"

/**
 * perf_missing() - whether a case must be skipped because perf cannot show
 *	folding
 * @_metadata: the metadata of the case
 * @contpte: whether this kernel can fold blocks at all
 *
 *
 * A case calls this function after all other checks. If it returns true, the
 * case calls SKIP(return, NO_PERF).
 *
 * Return: false if perf can show sizes, if the kernel cannot fold blocks, or if
 * the case has failed already
 */
static inline bool perf_missing(struct __test_metadata *_metadata, bool contpte)
{
	return contpte && __test_passed(_metadata) && !perf_tells();
}

/**
 * folio_statistic() - a counter that the kernel has for each size of folios
 * @pages: the number of pages in a folio
 * @name: "nr_anon", "split"
 *
 * Return: the value, or -1 if the kernel does not have this counter
 */
static inline long folio_statistic(unsigned int pages, const char *name)
{
	char path[128], value[32] = "-1";

	snprintf(path, sizeof(path), FOLIO_THP "/hugepages-%zukB/stats/%s", bytes(pages) >> 10,
		 name);
	return read_file(path, value, sizeof(value)) ? atol(value) : -1;
}

/**
 * size_in() - a size in a file such as /proc/meminfo or /proc/self/status
 * @path: the file; each of its lines has a name, a colon and a number of KiB
 * @name: the name of the line
 *
 * The test fails if the file has no line with this name.
 *
 * Return: pages
 */
static inline long size_in(const char *path, const char *name)
{
	size_t length = strlen(name);
	FILE *file = fopen(path, "r");
	char line[128];
	long kib = -1;

	while (file && kib < 0 && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, length) && line[length] == ':')
			kib = atol(line + length + 1);
	if (file)
		fclose(file);
	if (kib < 0)
		ksft_exit_fail_msg("%s has no line %s\n", path, name);
	return kib * 1024 / psize();
}

/* A size in /proc/self/status, in pages. */
static inline long status_pages(const char *name)
{
	return size_in("/proc/self/status", name);
}

/*
 * The number of mapped pages among the @pages pages that begin with page
 * @first.
 */
static inline unsigned int present(const struct memory *m, unsigned int first, unsigned int pages)
{
	unsigned int count = 0;

	for (unsigned int page = first; page < first + pages; page++)
		count += pagemap_has(m->at + bytes(page), PM_PRESENT);
	return count;
}

/**
 * swapped_out() - how many pages of the memory are only in swap
 * @m: the memory, anonymous or a memory file
 *
 * An anonymous page in swap has a swap entry. If a page of a memory file is not
 * in the page cache, it is in swap.
 *
 * Return: pages
 */
static inline unsigned long swapped_out(const struct memory *m)
{
	unsigned char *there = calloc(m->pages, 1);
	unsigned long count = 0;
	unsigned int page;

	if (m->fd >= 0 && there && mincore(m->at, bytes(m->pages), there)) {
		free(there);
		return 0;
	}
	for (page = 0; page < m->pages && there; page++)
		count += m->fd >= 0 ? !(there[page] & 1) :
			 pagemap_has(m->at + bytes(page), PM_SWAP);
	free(there);
	return count;
}

/* Run this thread, and its future children, only on @cpu. Returns true on success. */
static inline bool run_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return !sched_setaffinity(0, sizeof(one), &one);
}

/*
 * Keep this process and its children on the current CPU. Each CPU has a list of
 * freed pages. An allocation on this CPU takes pages from this list first. Each
 * CPU also has a list of pages that will move to another LRU list. madvise()
 * empties this list only for the CPU on which it runs. Returns true on success.
 */
static inline bool stay_on_cpu(void)
{
	return run_on(sched_getcpu());
}

/* Run this thread only on @cpu, before tasks without priority. */
static inline void run_first_on(int cpu)
{
	const struct sched_param first = { .sched_priority = 1 };

	if (!run_on(cpu) || sched_setscheduler(0, SCHED_FIFO, &first))
		ksft_exit_fail_perror("sched_setscheduler");
}

/* The time since the machine started. */
static inline double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* Whether @word is on the command line of the kernel. */
static inline bool booted_with(const char *word)
{
	char line[4096];
	FILE *f = fopen("/proc/cmdline", "r");
	bool found = false;

	if (f && fgets(line, sizeof(line), f)) {
		for (char *next = strtok(line, "\n "); next; next = strtok(NULL, "\n "))
			found |= !strcmp(next, word);
	}
	if (f)
		fclose(f);
	return found;
}

/*
 * Write a header that gives the swap area @area only @pages pages, without other changes. The area
 * must not be in use. Returns the old number of pages, or 0 on failure.
 */
static inline unsigned int swap_resize(const char *area, unsigned int pages)
{
	unsigned int last = 0, new = pages - 1;
	int fd = open(area, O_RDWR);

	/* union swap_header: after 1024 bytes come the version and the number of the last page */
	if (fd < 0 || pread(fd, &last, sizeof(last), 1028) != sizeof(last) ||
	    pwrite(fd, &new, sizeof(new), 1028) != sizeof(new) || fsync(fd))
		last = -1;
	close(fd);
	return last + 1;
}

#endif /* FOLIO_STATE_H */
