/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory on the node without a CPU, which NUMA balancing scans, for the tests
 * of hinting entries.
 *
 * The balancing scans only memory that has a policy of its own, so that each
 * entry and each fault counts. It goes by the CPU time of the process. Settings
 * make this time short, and a fault on a control page shows that a scan is
 * done.
 */
#ifndef FOLIO_NODES_H
#define FOLIO_NODES_H

#include <time.h>

#include "folio_owner.h"
#include "folio_state.h"

/* Larger huge pages (512M with 64K pages) do not fit into a small machine. */
#define LARGEST (64UL << 20)

/* After so many seconds of CPU time without a scan, a test gives up. */
#define PATIENCE 30

/*
 * struct watched - memory that NUMA balancing scans
 * @memory: the memory
 * @control: one page of other memory, which the process reads meanwhile
 * @here: the node of this CPU
 * @there: the other node, which has all of the memory
 * @go: the pipe that children wait for
 */
struct watched {
	struct memory memory;
	char *control;
	int here;
	int there;
	int go[2];
};

/* A counter of /proc/vmstat, or -1. */
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

/*
 * Bind pages to the nodes of a mask, and let the balancing scan them; 0 or
 * -errno.
 */
static inline int bind_to(char *at, unsigned int pages, unsigned long nodes, unsigned int how)
{
	if (syscall(__NR_mbind, at, bytes(pages), MPOL_BIND | MPOL_F_NUMA_BALANCING, &nodes,
		    8 * sizeof(nodes), how))
		return -errno;
	return 0;
}

/* Prefer one node for this process's other memory. Returns 0 or -1. */
static inline int prefer(int node)
{
	unsigned long nodes = 1UL << node;

	return syscall(__NR_set_mempolicy, MPOL_PREFERRED, &nodes, 8 * sizeof(nodes));
}

/* The balancing must not scan the process that starts the tests either. */
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
	/*
	 * Switch large folios off again, so that khugepaged does not rebuild
	 * split ones.
	 */
	if (!why)
		why = folio_settings(0);
	if (why)
		return why;
	w->control = mmap(NULL, bytes(1), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w->control == MAP_FAILED)
		return "out of memory";
	*w->control = 1;
	/* Children do not inherit the control page. */
	if (madvise(w->control, bytes(1), MADV_DONTFORK) || pipe(w->go))
		return "out of memory";
	/*
	 * The policy of the rest of the process keeps the balancing away from
	 * it.
	 */
	there = 1UL << w->there;
	if (bind_to(w->control, 1, there, MPOL_MF_STRICT) ||
	    bind_to(w->memory.at, w->memory.pages, there, MPOL_MF_STRICT) || prefer(w->here))
		return "no memory left on the other node";
	return NULL;
}

/*
 * hint() - let the balancing scan all memory of this process
 *
 * The balancing scans no mapping twice before it has scanned all others. So it
 * has scanned all of them between two faults on the control page.
 *
 * Return: how many entries of the memory it changed, or -1 if it was not seen
 * twice on the control page
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
 * watched_child() - start a child that sleeps until the pipe is closed
 *
 * The child inherits the watched memory, and the balancing would scan it as
 * soon as the child runs. So wait until it sleeps.
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

/*
 * Read a byte of each page in order. Returns how many hinting faults that
 * caused.
 */
static inline long read_pages(const char *at, unsigned int pages)
{
	long before = events("numa_hint_faults");

	for (unsigned int page = 0; page < pages; page++)
		read_byte((char *)at + bytes(page));
	return events("numa_hint_faults") - before;
}

#endif /* FOLIO_NODES_H */
