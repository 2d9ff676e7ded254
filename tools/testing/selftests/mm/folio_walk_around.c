// SPDX-License-Identifier: GPL-2.0
/*
 * This part of folio_walk compares the state before a step with the state after
 * the step. It checks the statistics of folios that migrate. For a fault on a
 * page of a file, it also checks how many neighbouring pages the fault maps.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "folio_walk_run.h"
#include "folio_walk_see.h"

#ifndef __NR_cachestat
#define __NR_cachestat 451
#endif

#define HEAD BITS(15)
#define TAIL BITS(16)
#define WINDOW 65536	/* the default of fault_around_bytes */

static uint64_t entries[WALK_PAGES];
static long partially_mapped;
static uint32_t window, window_pages;
static bool migrates;

static uint64_t frame_flags(uint64_t pfn)
{
	static int fd = -1;
	uint64_t flags = 0;

	if (fd < 0)
		fd = open("/proc/kpageflags", O_RDONLY);
	return pread(fd, &flags, 8, pfn * 8) == 8 ? flags : 0;
}

/* How many anonymous folios the kernel regards as partially mapped. */
static long count_partially_mapped(void)
{
	char path[128];
	long sum = 0, n;
	int order;

	for (order = 1; order < 16; order++) {
		if (!(walk->orders >> order & 1))
			continue;
		snprintf(path, sizeof(path),
			 "/sys/kernel/mm/transparent_hugepage/hugepages-%lukB/stats/nr_anon_partially_mapped",
			 (walk_psize << order) / 1024);
		n = walk_read_number(path);
		if (n < 0)
			return -1;
		sum += n;
	}
	return sum;
}

/*
 * Whether the range has large anonymous folios, and whether the process maps
 * all pages of each of these folios.
 */
static bool only_whole_folios(const struct walk_step *s)
{
	uint32_t i, j, page;
	bool large = false;

	for (i = s->at; i < s->at + s->len; i++) {
		uint64_t pfn = entries[i] & PM_PFN, head, flags;

		if (!(entries[i] & PM_PRESENT) || entries[i] & PM_FILE)
			continue;
		flags = frame_flags(pfn);
		if (!(flags & (HEAD | TAIL)))
			continue;
		for (head = pfn; !(frame_flags(head) & HEAD); head--)
			if (!(frame_flags(head) & TAIL))
				return false;
		if (pfn - head > i)
			return false;
		page = i - (pfn - head);
		for (j = 0; !j || frame_flags(head + j) & TAIL; j++)
			if (page + j >= WALK_PAGES || !(entries[page + j] & PM_PRESENT) ||
			    (entries[page + j] & PM_PFN) != head + j)
				return false;
		large = true;
		i = page + j - 1;
	}
	return large;
}

/* Whether all pages of a range of the file are in the page cache, and none is under writeback. */
static bool cached(const struct walk_object *o, uint32_t off, uint32_t len)
{
	uint64_t range[2] = { in_bytes(off), in_bytes(len) }, got[5] = {};

	return !syscall(__NR_cachestat, o->fd, range, got, 0) && got[0] == len && !got[2];
}

/*
 * Returns true only if the step reads a page of a file and the page table for
 * this page has only empty entries.
 */
static bool first_fault(const struct walk_step *s)
{
	const struct walk_page *p = page_of(s->proc, s->at);
	uint32_t table = s->at - s->at % walk->table, i;

	window_pages = WINDOW / walk_psize;
	window = s->at - s->at % window_pages;
	if (s->len != 1 || walk->table > WALK_PAGES || window_pages < 2 || p->kind < PRIVATE ||
	    walk->object[p->obj].shmem || !(p->prot & PROT_READ))
		return false;
	for (i = table; i < table + walk->table; i++)
		if (entries[i] & (PM_PRESENT | PM_SWAP))
			return false;
	for (i = window; i < window + window_pages; i++) {
		const struct walk_page *q = page_of(s->proc, i);

		if (m_beyond(q) || q->flags & (OWN | GUARD | LOCKED))
			return false;
	}
	return m_one_vma(s->proc, window, window_pages) &&
	       cached(&walk->object[p->obj], page_of(s->proc, window)->off, window_pages);
}

/* Returns whether the caller must call walk_after() after the step. */
bool walk_before(const struct walk_step *s)
{
	const struct walk_call *c = &walk_calls[s->call];

	migrates = c->run == run_move_pages || c->run == run_mbind;
	if ((!migrates && c->run != run_read) || !walk_entries(s->proc, 0, WALK_PAGES, entries))
		return false;
	if (!migrates)
		return first_fault(s);
	if (has(HAS_KSM) && walk_read_number("/sys/kernel/mm/ksm/run") == 1)
		return false;
	if (!only_whole_folios(s))
		return false;
	partially_mapped = count_partially_mapped();
	return partially_mapped >= 0;
}

static uint32_t mapped_in_window(int proc)
{
	uint32_t i, n = 0;

	if (!walk_entries(proc, window, window_pages, entries))
		return 0;
	for (i = 0; i < window_pages; i++)
		n += !!(entries[i] & PM_PRESENT);
	return n;
}

/*
 * transhuge.rst says that nr_anon_partially_mapped counts partially mapped
 * folios. A migration of fully mapped folios makes no partially mapped folio.
 * (Known issue 8.)
 *
 * A fault also maps the cached pages around the faulting page
 * (do_fault_around()). If the first fault maps one page, and a second fault
 * maps all other pages, the first fault was wrong. (Known issue 9.)
 */
void walk_after(const struct walk_step *s, long result)
{
	uint32_t first, i;
	long now;

	(void)result;
	if (migrates) {
		now = count_partially_mapped();
		if (now > partially_mapped && !walk_known(8))
			walk_fail("partially-mapped",
				  "after a migration of whole folios, %ld more are partially mapped",
				  now - partially_mapped);
		return;
	}
	first = mapped_in_window(s->proc);
	if (first != 1)
		return;
	for (i = window; i == s->at; i++)
		;
	walk_command(s->proc, CHECK, i, 1);
	if (mapped_in_window(s->proc) == window_pages && !walk_known(9))
		walk_fail("fault-around",
			  "process %d: the read of page %u maps 1 page, a second read maps %u pages",
			  s->proc, s->at, window_pages - 1);
}
