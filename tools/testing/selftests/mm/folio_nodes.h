/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory on the node without the processor, which the balancing of nodes looks
 * at: shared by the tests of hinting entries.
 *
 * Only memory with a policy of its own is watched, so that each entry and each
 * fault counts. The balancing goes by the time that a process runs; settings
 * make that short, and a page of its own tells when it has been everywhere.
 */
#ifndef FOLIO_NODES_H
#define FOLIO_NODES_H

#include <time.h>

#include "folio_owner.h"
#include "folio_state.h"

/* Larger huge pages (64K pages: 512M) are too large for a small machine. */
#define LARGEST (64UL << 20)

/* So many seconds of this process without a scan, and there is none. */
#define PATIENCE 30

/*
 * struct watched - memory that the balancing of nodes looks at
 * @memory: itself
 * @control: one page of other memory, which is read meanwhile
 * @here: the node of this processor
 * @there: the other node, where all of it is
 * @go: what children wait for
 */
struct watched {
	struct memory memory;
	char *control;
	int here;
	int there;
	int go[2];
};

/* What /proc/vmstat has counted until now. */
static inline long events(const char *name)
{
	FILE *f = fopen("/proc/vmstat", "r");
	long value, found = -1;
	char line[64];

	while (f && found < 0 && fscanf(f, "%63s %ld", line, &value) == 2)
		if (!strcmp(line, name))
			found = value;
	if (f)
		fclose(f);
	return found;
}

/* Have pages on some nodes, a mask, and watched there; 0 or -errno. */
static inline int bind_to(char *at, unsigned int pages, unsigned long nodes, unsigned int how)
{
	if (syscall(__NR_mbind, at, bytes(pages), MPOL_BIND | MPOL_F_NUMA_BALANCING, &nodes,
		    8 * sizeof(nodes), how))
		return -errno;
	return 0;
}

/* Where the rest of this process's memory is to come from; 0 or -1. */
static inline int prefer(int node)
{
	unsigned long nodes = 1UL << node;

	return syscall(__NR_set_mempolicy, MPOL_PREFERRED, &nodes, 8 * sizeof(nodes));
}

/* The process that runs the tests is not watched either, whenever it happens to run. */
static __attribute__((constructor)) void watched_others(void)
{
	unsigned int cpu, node;

	if (!syscall(__NR_getcpu, &cpu, &node, NULL))
		prefer(node);
}

static inline const char *watched_setup(struct watched *w, enum memory_kind kind, int order,
					unsigned int folios)
{
	const char *why = folio_settings(order);
	unsigned long there;
	unsigned int cpu, node;

	w->memory.fd = -1;
	if (why)
		return why;
	if (access(FOLIO_NUMA, W_OK) || access(FOLIO_SCAN "scan_delay_ms", W_OK))
		return "CONFIG_NUMA_BALANCING=n, or no debugfs";
	if (access("/tests/list", F_OK))
		return "counts what happens to the machine: only in the virtual one";
	write_num(FOLIO_SCAN "scan_delay_ms", 1);
	write_num(FOLIO_SCAN "scan_period_min_ms", 1);
	write_num(FOLIO_SCAN "scan_period_max_ms", 1);
	write_num(FOLIO_SCAN "scan_size_mb", 64);

	syscall(__NR_getcpu, &cpu, &node, NULL);
	w->here = node;
	w->there = !node;
	if (prefer(w->there))
		return "needs two NUMA nodes";
	why = memory_map(&w->memory, kind, order, folios);
	/* No more of them: khugepaged is not to put together what is split. */
	if (!why)
		why = folio_settings(0);
	if (why)
		return why;
	w->control = mmap(NULL, bytes(1), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w->control == MAP_FAILED)
		return "out of memory";
	*w->control = 1;
	/* It stays this process's own, whatever children there are. */
	if (madvise(w->control, bytes(1), MADV_DONTFORK) || pipe(w->go))
		return "out of memory";
	/* Policies of their own; the rest of the process has one by which it is not watched. */
	there = 1UL << w->there;
	if (bind_to(w->control, 1, there, MPOL_MF_STRICT) ||
	    bind_to(w->memory.at, w->memory.pages, there, MPOL_MF_STRICT) || prefer(w->here))
		return "no memory left on the other node";
	return NULL;
}

/*
 * hint() - have the balancing go over all memory of this process
 *
 * It does not look at a mapping twice before it has seen all others: when it
 * has come to the control page twice, it has been everywhere in between.
 *
 * Return: how many entries of the memory it has changed, or -1 if it never came
 */
static inline long hint(const struct watched *w)
{
	long updates = events("numa_pte_updates"), before = events("numa_hint_faults"), seen;
	struct timespec begin, now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	write_num(FOLIO_NUMA, 1);
	do {
		read_byte(w->control);
		seen = events("numa_hint_faults") - before;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (seen < 2 && now.tv_sec - begin.tv_sec < PATIENCE);
	write_num(FOLIO_NUMA, 0);
	if (seen < 2)
		return -1;
	read_byte(w->control);
	seen = events("numa_hint_faults") - before;
	return events("numa_pte_updates") - updates - seen;
}

/*
 * watched_child() - a child that sleeps until the pipe is closed, or it is ended
 *
 * It has what is watched as well, and would be scanned as soon as it runs.
 */
static inline pid_t watched_child(struct watched *w, void (*first)(struct memory *))
{
	pid_t child = waiting_child(w->go, first, &w->memory);
	char path[32], stat[256] = "", *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", child);
	while (child > 0) {
		if (!read_file(path, stat, sizeof(stat)))
			return -1;
		state = strrchr(stat, ')');
		if (state && state[2] == 'S')
			break;
		usleep(1000);
	}
	return child;
}

/* Read some pages, in order; how many faults of hinting entries that costs. */
static inline long read_pages(const char *at, unsigned int pages)
{
	long before = events("numa_hint_faults");

	for (unsigned int page = 0; page < pages; page++)
		read_byte((char *)at + bytes(page));
	return events("numa_hint_faults") - before;
}

#endif /* FOLIO_NODES_H */
