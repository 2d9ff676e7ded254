// SPDX-License-Identifier: GPL-2.0
/*
 * folio_walk: which processes share which frames, and whether smaps, pagemap
 * and PAGEMAP_SCAN agree.
 *
 * Kernel threads (KSM, khugepaged) may change entries at any time. So a failure
 * counts only if the check fails several times in a row.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "folio_walk_see.h"
#include "folio_walk_abi.h"

#define TRIES 4
#define SLOTS 32768

struct frame {
	uint64_t pfn, key;
	uint16_t page;
	uint8_t proc;
	bool exclusive;
};

static char found[300], found_rule[40];

/*
 * The content of a page as a number. Two pages may share a frame only if their
 * numbers are equal.
 */
static uint64_t key_of(const struct walk_page *p)
{
	if (p->kind == SHARED || (p->kind == PRIVATE && !(p->flags & OWN)))
		return 1ULL << 63 | (uint64_t)p->obj << 32 | p->off;
	return p->val;
}

static void note(const char *rule, const struct frame *f, int proc, uint32_t page, uint64_t e)
{
	snprintf(found_rule, sizeof(found_rule), "%s", rule);
	snprintf(found, sizeof(found),
		 "process %d page %u and process %d page %u have frame %#llx; pagemap of the second %#llx, flags %x and %x",
		 f->proc, f->page, proc, page, (unsigned long long)f->pfn, (unsigned long long)e,
		 page_of(f->proc, f->page)->flags, page_of(proc, page)->flags);
}

/*
 * Known issue 11: if one entry maps a huge page, pagemap reports the state of
 * the first page for all pages. So pagemap shows the same bits and consecutive
 * frames for all pages. frames_right() checks that the first page is mapped
 * once.
 */
static bool by_first_page(int proc, uint32_t page)
{
	static uint64_t huge[WALK_PAGES];
	uint32_t at = page - page % walk->table, i;

	if (page == at || walk->table > WALK_PAGES || !walk_entries(proc, at, walk->table, huge))
		return false;
	for (i = 1; i < walk->table; i++)
		if (huge[i] != huge[0] + i)
			return false;
	return huge[0] & PM_EXCLUSIVE && !(huge[0] & PM_PFN & (walk->table - 1)) && walk_known(11);
}

/*
 * According to fork(2), and to MAP_PRIVATE in mmap(2), two pages with different
 * content never have the same frame. According to pagemap.rst, a frame that is
 * mapped twice is not exclusive.
 */
static bool frames_right(void)
{
	static uint64_t entries[WALK_PAGES];
	static struct frame frames[SLOTS];
	uint32_t i, slot;
	int proc;

	memset(frames, 0, sizeof(frames));
	for (proc = 0; proc < WALK_PROCS; proc++) {
		if (!walk->box[proc].alive || !walk_entries(proc, 0, WALK_PAGES, entries))
			continue;
		for (i = 0; i < WALK_PAGES; i++) {
			const struct walk_page *p = page_of(proc, i);
			uint64_t pfn = entries[i] & PM_PFN;
			struct frame *f;

			if (!(entries[i] & PM_PRESENT) || !pfn || p->flags & LAZY)
				continue;
			for (slot = pfn * 2654435761u % SLOTS; frames[slot].pfn &&
			     frames[slot].pfn != pfn;)
				slot = (slot + 1) % SLOTS;
			f = &frames[slot];
			if (!f->pfn) {
				*f = (struct frame){ pfn, key_of(p), i, proc,
						     entries[i] & PM_EXCLUSIVE };
				continue;
			}
			if (f->key != key_of(p)) {
				note("frame-shared", f, proc, i, entries[i]);
				return false;
			}
			if ((f->exclusive && !by_first_page(f->proc, f->page)) ||
			    (entries[i] & PM_EXCLUSIVE && !by_first_page(proc, i))) {
				note("shared-exclusive", f, proc, i, entries[i]);
				return false;
			}
		}
	}
	return true;
}

void walk_check_frames(void)
{
	int tries;

	for (tries = 0; tries < TRIES; tries++) {
		if (frames_right()) {
			walk->verdict.checks += WALK_PAGES;
			return;
		}
		usleep(1000 << (2 * tries));
	}
	walk_fail(found_rule, "%s", found);
}

struct sums {
	unsigned long from, to, rss, anonymous, swap, locked, lazy, hugetlb;
	char perms[8], flags[160];
};

static bool flag(const struct sums *m, const char *two)
{
	return strstr(m->flags, two);
}

/*
 * Remember a failure. The failure counts only if the check fails several times
 * in a row.
 */
static bool refuse(const char *rule, const char *format, ...)
{
	va_list arguments;

	snprintf(found_rule, sizeof(found_rule), "%s", rule);
	va_start(arguments, format);
	vsnprintf(found, sizeof(found), format, arguments);
	va_end(arguments);
	return false;
}

/*
 * Compare one mapping in smaps with the model and with pagemap.
 * Documentation/filesystems/proc.rst describes smaps.
 */
static bool mapping_right(int proc, const struct sums *m, const uint64_t *entries,
			  const uint8_t *zero)
{
	uint32_t at = (m->from - WALK_ARENA) / walk_psize, end = (m->to - WALK_ARENA) / walk_psize;
	const struct walk_page *first = page_of(proc, at);
	unsigned long rss = 0, swap = 0, lazy = 0, markers = 0, unit = walk_psize / 1024;
	bool shared = m->perms[3] == 's';
	uint32_t i;

	for (i = at; i < end; i++) {
		const struct walk_page *p = page_of(proc, i);

		if (p->kind != first->kind || p->obj != first->obj)
			return refuse("vma-merged",
			       "process %d pages %u-%u: one mapping with pages of two kinds",
			       proc, at, end - 1);
		if (!(p->prot & PROT_READ) != (m->perms[0] != 'r') ||
		    !(p->prot & PROT_WRITE) != (m->perms[1] != 'w') ||
		    (shared ? p->kind != SHARED : p->kind == SHARED))
			return refuse("vma-permission",
			       "process %d page %u: %s, expected prot %d",
			       proc, i, m->perms, p->prot);
		if (!(p->flags & LOCKED) == flag(m, " lo") ||
		    !(p->flags & NOFORK) == flag(m, " dc") ||
		    !(p->flags & WIPE) == flag(m, " wf") || !(p->flags & MISS) == flag(m, " um") ||
		    !(p->flags & WPREG) == flag(m, " uw"))
			return refuse("vma-flags",
			       "process %d page %u: flags%s, model %x",
			       proc, i, m->flags, p->flags);
		if (has(HAS_KSM) && !(p->flags & MERGE) == flag(m, " mg"))
			return refuse("vma-flags",
			       "process %d page %u: flags%s, model %x",
			       proc, i, m->flags, p->flags);
		rss += (entries[i] & PM_PRESENT) && !zero[i];
		swap += !!(entries[i] & PM_SWAP);
		lazy += !!(p->flags & LAZY);
		markers += !!(p->flags & (GUARD | WP));
	}
	if (first->flags & HUGETLB || !has(HAS_SCAN))
		return true;
	if (m->rss != rss * unit)
		return refuse("smaps-rss",
			      "process %d pages %u-%u: Rss %lu kB, pagemap has %lu kB",
			      proc, at, end - 1, m->rss, rss * unit);
	if (first->kind == ANON && m->anonymous != rss * unit)
		return refuse("smaps-anonymous",
			      "process %d pages %u-%u: Anonymous %lu kB of %lu kB",
			      proc, at, end - 1, m->anonymous, rss * unit);
	if (first->kind == SHARED && m->anonymous)
		return refuse("smaps-anonymous",
			      "process %d pages %u-%u: shared, Anonymous %lu kB",
			      proc, at, end - 1, m->anonymous);
	if (first->kind == ANON && (m->swap > swap * unit || (!markers && m->swap != swap * unit)))
		return refuse("smaps-swap",
			      "process %d pages %u-%u: Swap %lu kB, pagemap has %lu kB",
			      proc, at, end - 1, m->swap, swap * unit);
	if (m->lazy > lazy * unit)
		return refuse("smaps-lazyfree",
			      "process %d pages %u-%u: LazyFree %lu kB, at most %lu kB",
			      proc, at, end - 1, m->lazy, lazy * unit);
	if (m->locked && !(first->flags & LOCKED))
		return refuse("smaps-locked",
			      "process %d pages %u-%u: Locked %lu kB",
			      proc, at, end - 1, m->locked);
	return true;
}

/*
 * pagemap.rst: PAGEMAP_SCAN and pagemap agree. The function sets @zero for
 * pages that map the zero page.
 */
static bool scan_right(int proc, const uint64_t *entries, uint8_t *zero)
{
	static struct page_region regions[WALK_PAGES];
	const uint64_t all = PAGE_IS_PRESENT | PAGE_IS_SWAPPED | PAGE_IS_FILE | PAGE_IS_PFNZERO;
	static uint64_t seen[WALK_PAGES];
	struct pm_scan_arg arg = {
		.size = sizeof(arg),
		.start = WALK_ARENA,
		.end = (unsigned long)at_page(WALK_PAGES),
		.vec = (unsigned long)regions,
		.vec_len = WALK_PAGES,
		.category_anyof_mask = all,
		.return_mask = all,
	};
	long nr = ioctl(walk_pagemap(proc), PAGEMAP_SCAN, &arg), r;
	uint32_t i, from, to;

	if (nr < 0)
		return refuse("scan", "process %d: PAGEMAP_SCAN: %s", proc, strerror(errno));
	memset(seen, 0, sizeof(seen));
	for (r = 0; r < nr; r++) {
		from = (regions[r].start - WALK_ARENA) / walk_psize;
		to = (regions[r].end - WALK_ARENA) / walk_psize;
		for (i = from; i < to && i < WALK_PAGES; i++)
			seen[i] = regions[r].categories;
	}
	for (i = 0; i < WALK_PAGES; i++) {
		zero[i] = !!(seen[i] & PAGE_IS_PFNZERO);
		if (!(seen[i] & PAGE_IS_PRESENT) != !(entries[i] & PM_PRESENT) ||
		    !(seen[i] & PAGE_IS_SWAPPED) != !(entries[i] & PM_SWAP) ||
		    /* pagemap calls the huge zero page a file page, but PAGEMAP_SCAN does not. */
		    (entries[i] & PM_PRESENT && !zero[i] &&
		     !(seen[i] & PAGE_IS_FILE) != !(entries[i] & PM_FILE)))
			return refuse("scan-pagemap",
			       "process %d page %u: PAGEMAP_SCAN %#llx, pagemap %#llx; flags %x",
			       proc, i, (unsigned long long)seen[i], (unsigned long long)entries[i],
			       page_of(proc, i)->flags);
	}
	return true;
}

static void read_sum(const char *line, struct sums *m)
{
	const struct {
		const char *name;
		unsigned long *to;
	} known[] = {
		{ "Rss: %lu", &m->rss },	{ "Anonymous: %lu", &m->anonymous },
		{ "Swap: %lu", &m->swap },	{ "Locked: %lu", &m->locked },
		{ "LazyFree: %lu", &m->lazy },
	};
	unsigned int i;

	for (i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (sscanf(line, known[i].name, known[i].to) == 1)
			return;
}

static bool smaps_right(int proc)
{
	static uint64_t entries[WALK_PAGES];
	static uint8_t zero[WALK_PAGES];
	struct sums m = {};
	char line[512], path[64];
	uint32_t covered = 0, wanted = 0, i;
	bool right = true;
	FILE *f;

	if (!walk_entries(proc, 0, WALK_PAGES, entries))
		return true;
	memset(zero, 0, sizeof(zero));
	if (has(HAS_SCAN) && !scan_right(proc, entries, zero))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/smaps", walk->box[proc].pid);
	f = fopen(path, "r");
	while (f && right && fgets(line, sizeof(line), f)) {
		unsigned long from, to;
		char perms[8];

		if (sscanf(line, "%lx-%lx %7s", &from, &to, perms) == 3) {
			m = (struct sums){ .from = from, .to = to };
			memcpy(m.perms, perms, sizeof(perms));
			continue;
		}
		read_sum(line, &m);
		if (strncmp(line, "VmFlags:", 8))
			continue;
		snprintf(m.flags, sizeof(m.flags), "%.150s", line + 8);
		m.flags[strcspn(m.flags, "\n")] = 0;
		if (m.from >= WALK_ARENA && m.to <= (unsigned long)at_page(WALK_PAGES)) {
			covered += (m.to - m.from) / walk_psize;
			right = mapping_right(proc, &m, entries, zero);
		}
	}
	if (f)
		fclose(f);
	for (i = 0; i < WALK_PAGES; i++)
		wanted += page_of(proc, i)->kind != NOTHING;
	if (right && covered != wanted)
		return refuse("vma-missing", "process %d: %u pages are mapped, expected %u", proc,
		       covered, wanted);
	return right;
}

void walk_check_smaps(int proc)
{
	int tries;

	if (!walk->box[proc].alive)
		return;
	for (tries = 0; tries < TRIES; tries++) {
		if (smaps_right(proc))
			return;
		usleep(1000 << (2 * tries));
	}
	walk_fail(found_rule, "%s", found);
}
