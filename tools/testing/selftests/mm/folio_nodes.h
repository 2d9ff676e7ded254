/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for tests of NUMA hinting entries. The helpers provide memory on a
 * node without a CPU. NUMA balancing scans this memory.
 *
 * NUMA balancing scans only memory with a policy that allows the scan. Only the
 * test's memory and a control page have such a policy, so the tests can count
 * each entry that a scan changes, and each hinting fault. The kernel starts a
 * scan after the process has used some CPU time. The helpers set this time to a
 * small value. When the control page has had two hinting faults, a scan is
 * complete.
 */
#ifndef FOLIO_NODES_H
#define FOLIO_NODES_H

#include <time.h>

#include "folio_owner.h"
#include "folio_pmd.h"
#include "folio_state.h"

/* A test gives up if no scan completes within this many seconds of CPU time. */
#define PATIENCE 30

/*
 * struct watched - memory that NUMA balancing scans
 * @memory: the memory
 * @control: one page of other memory, which hint() reads to see that a scan is
 *	done
 * @here: the node of this CPU
 * @there: the other node, which has all of the memory
 * @go: the pipe on which children wait
 */
struct watched {
	struct memory memory;
	char *control;
	int here;
	int there;
	int go[2];
};

/* The value of a counter in /proc/vmstat, or -1 if there is no such counter. */
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
 * Bind pages to the nodes of a mask, and let NUMA balancing scan them. Returns
 * 0 or -errno.
 */
static inline int bind_to(char *at, unsigned int pages, unsigned long nodes, unsigned int how)
{
	if (syscall(__NR_mbind, at, bytes(pages), MPOL_BIND | MPOL_F_NUMA_BALANCING, &nodes,
		    8 * sizeof(nodes), how))
		return -errno;
	return 0;
}

/*
 * Set a policy that prefers one node. This policy applies to all memory that
 * has no policy of its own. Returns 0 or -1.
 */
static inline int prefer(int node)
{
	unsigned long nodes = 1UL << node;

	return syscall(__NR_set_mempolicy, MPOL_PREFERRED, &nodes, 8 * sizeof(nodes));
}

/* Keep NUMA balancing from scanning the process that starts the tests. */
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
		return "counts events of the whole machine: runs only in the virtual machine";
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
	 * Disable large folios again: khugepaged must not rebuild folios that a
	 * test has split.
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
	 * Only the watched memory and the control page get a policy that lets
	 * NUMA balancing scan them. All other memory has the policy that
	 * prefer() sets. NUMA balancing does not scan memory with this policy.
	 */
	there = 1UL << w->there;
	if (bind_to(w->control, 1, there, MPOL_MF_STRICT) ||
	    bind_to(w->memory.at, w->memory.pages, there, MPOL_MF_STRICT) || prefer(w->here))
		return "no memory left on the other node";
	return NULL;
}

/*
 * hint() - let NUMA balancing scan the memory of this process
 *
 * NUMA balancing scans all mappings with a policy that allows the scan, and
 * then begins again with the first mapping. So it scans each of these mappings
 * between two faults on the control page.
 *
 * Return: the number of entries of the memory that the scan changed, or -1 if
 * the control page had fewer than two hinting faults
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
 * The child inherits the watched memory. While the child runs, NUMA balancing
 * can scan this memory. So this function waits until the child sleeps.
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
 * Read one byte of each page in order. Returns the number of hinting faults.
 */
static inline long read_pages(const char *at, unsigned int pages)
{
	long before = events("numa_hint_faults");

	for (unsigned int page = 0; page < pages; page++)
		read_byte((char *)at + bytes(page));
	return events("numa_hint_faults") - before;
}

#endif /* FOLIO_NODES_H */
