// SPDX-License-Identifier: GPL-2.0
/*
 * folio_walk: the table of calls. A row says how the arguments are chosen at
 * random, when the call makes sense, how it runs, and what the model expects
 * after it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "folio_walk_run.h"
#include "folio_walk_abi.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* The pages of the range of a step. */
static struct walk_page *first_page(const struct walk_step *s)
{
	return page_of(s->proc, s->at);
}

static struct walk_page *end_page(const struct walk_step *s)
{
	return page_of(s->proc, s->at) + s->len;
}

/* The number of a page in the range of a step. */
static uint32_t nth(const struct walk_step *s, const struct walk_page *p)
{
	return p - page_of(s->proc, s->at);
}

/* Whether the condition holds for each page *p in the range of the step *s. */
#define ALL(condition) ({							\
	bool all_ = true;							\
	for (const struct walk_page *p = first_page(s); p < end_page(s); p++)	\
		all_ = all_ && (condition);					\
	all_;									\
})

static void draw_prot(struct walk_step *s)
{
	static const uint8_t prots[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };

	s->prot = prots[walk_below(3)];
}

/* Most new mappings are writable. */
static void draw_map(struct walk_step *s)
{
	s->prot = walk_below(8) ? PROT_READ | PROT_WRITE : PROT_READ;
	s->x = !walk_below(6);
}

static void place(const struct walk_step *s, struct walk_page new)
{
	for (struct walk_page *p = first_page(s); p < end_page(s); p++) {
		*p = new;
		if (new.kind >= PRIVATE)
			p->off = s->off + nth(s, p);
	}
}

static void model_map_anon(const struct walk_step *s, long result)
{
	(void)result;
	place(s, (struct walk_page){ .kind = ANON, .prot = s->prot, .obj = -1 });
}

static void draw_object(struct walk_step *s)
{
	uint32_t room;

	s->obj = walk_below(WALK_OBJECTS);
	/*
	 * In many steps, the address and the offset in the file have the same
	 * position within a block. Then folios of the file are aligned to
	 * blocks of the page table.
	 */
	s->off = walk_below(4) ? s->at % walk->cont : 0;
	s->off += walk_below(2) ? walk_below(WALK_OBJ_PAGES / walk->cont) * walk->cont :
		  walk_below(walk->cont);
	s->off %= WALK_OBJ_PAGES;
	room = WALK_OBJ_PAGES - s->off;
	if (s->len > room)
		s->len = room;
}

static void draw_map_file(struct walk_step *s)
{
	draw_object(s);
	draw_map(s);
}

static bool valid_object(const struct walk_step *s)
{
	return s->obj >= 0 && walk->object[s->obj].fd >= 0 && s->off + s->len <= WALK_OBJ_PAGES;
}

static void model_map_file(const struct walk_step *s, long result)
{
	uint8_t kind = walk_calls[s->call].arg;

	(void)result;
	place(s, (struct walk_page){ .kind = kind, .prot = s->prot, .obj = s->obj });
	/* mmap(2), MAP_POPULATE: the call copies writable private pages. */
	if (kind != PRIVATE || !(s->x & 1) || !(s->prot & PROT_WRITE))
		return;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++)
		if (!m_beyond(p))
			m_own(p);
}

static bool hugetlb_fits(const struct walk_step *s)
{
	return walk->unit && s->at % walk->unit == 0 && s->len % walk->unit == 0 &&
	       s->len <= 4 * walk->unit;
}

static void draw_map_hugetlb(struct walk_step *s)
{
	s->at -= s->at % walk->unit;
	s->len = walk->unit * (1 + walk_below(3));
	s->prot = PROT_READ | PROT_WRITE;
}

static void model_map_hugetlb(const struct walk_step *s, long result)
{
	(void)result;
	place(s, (struct walk_page){ .kind = ANON, .prot = s->prot, .obj = -1, .flags = HUGETLB });
}

static void model_munmap(const struct walk_step *s, long result)
{
	(void)result;
	place(s, (struct walk_page){ .kind = NOTHING });
}

/*
 * mprotect(2). If a locked private mapping becomes writable, the kernel
 * populates it by write faults. These faults copy its pages, which then count
 * as written to.
 */
static void model_mprotect(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++) {
		bool locked = p->flags & LOCKED && !(p->flags & (ONFAULT | GUARD));

		if (locked && p->kind != SHARED && !(p->prot & PROT_WRITE) &&
		    s->prot & PROT_WRITE && !m_beyond(p)) {
			m_own(p);
			if (p->flags & ASYNC)
				p->flags &= ~WP;
		}
		p->prot = s->prot;
	}
}

/*
 * Draw a destination. Half of the destinations have the same position in a
 * block or page table as the source.
 */
static void draw_mremap(struct walk_step *s)
{
	long flags = walk_calls[s->call].arg;
	uint32_t phase = walk_below(3) ? walk->cont : walk->table;

	s->tolen = s->len;
	s->to = walk_below(WALK_PAGES);
	if (walk_below(2) && phase < WALK_PAGES)
		s->to = (s->to / phase * phase + s->at % phase) % WALK_PAGES;
	if (walk->unit && page_of(s->proc, s->at)->flags & HUGETLB)
		s->to -= s->to % walk->unit;
	if (!(flags & MREMAP_FIXED))
		s->to = s->at;
	if (s->x % 4 == 1 && !(flags & MREMAP_DONTUNMAP) && flags & MREMAP_FIXED)
		s->tolen += 1 + walk_below(walk->cont);
	else if (!(flags & MREMAP_FIXED))
		s->tolen = flags ? s->len + 1 + walk_below(2 * walk->cont) : 1 + walk_below(s->len);
}

/*
 * Whether the kernel may merge the moved pages with a mapping that userfaultfd
 * watches. Known issue 28: mremap() then removes the registration of the whole
 * merged mapping, including pages that did not move. If the kernel does not
 * have this issue, or if STRICT=1 is set, the walk makes these calls too.
 */
static bool beside_uffd(const struct walk_step *s)
{
	if (!walk_has(28) || ALL(!(p->flags & UFFD)))
		return false;
	return (s->to && page_of(s->proc, s->to - 1)->flags & UFFD) ||
	       (s->to + s->tolen < WALK_PAGES && page_of(s->proc, s->to + s->tolen)->flags & UFFD);
}

/*
 * Known issue 30: if a mapping with MADV_WIPEONFORK was moved, a child inherits
 * the mapping with its old offset, but without its pages. Linux 7.3 expects
 * that the offset of a mapping without pages equals its address. If this is not
 * so, the kernel warns when it merges the mapping. If the kernel does not have
 * this issue, or if STRICT=1 is set, the walk makes these calls too.
 */
static bool valid_wipe(const struct walk_step *s)
{
	return !walk_has(30) || ALL(!(p->flags & MOVED));
}

static bool valid_mremap(const struct walk_step *s)
{
	bool huge = page_of(s->proc, s->at)->flags & HUGETLB;
	long flags = walk_calls[s->call].arg;
	uint32_t i;

	if (!s->tolen || s->to + s->tolen > WALK_PAGES)
		return false;
	if (page_of(s->proc, s->at)->kind >= PRIVATE &&
	    page_of(s->proc, s->at)->off + s->tolen > WALK_OBJ_PAGES)
		return false;
	if (huge && (s->tolen != s->len || s->to % walk->unit || flags & MREMAP_DONTUNMAP))
		return false;
	if (s->tolen != s->len &&
	    !ALL(!(p->flags & (LOCKED | UFFD))))
		return false;
	if (flags & MREMAP_DONTUNMAP && !ALL(!(p->flags & (LOCKED | PINNED))))
		return false;
	if (flags & MREMAP_FIXED) {
		if (beside_uffd(s) || (walk_has(30) && !ALL(!(p->flags & WIPE))))
			return false;
		if (s->to < s->at + s->len && s->at < s->to + s->tolen)
			return false;
		/* The destination must not replace hugetlb pages. */
		for (i = 0; i < s->tolen; i++)
			if (page_of(s->proc, s->to + i)->flags & HUGETLB)
				return false;
		return true;
	}
	if (s->to != s->at)
		return false;
	if (s->tolen < s->len)
		return !huge;
	for (i = s->len; i < s->tolen; i++)
		if (page_of(s->proc, s->at + i)->kind)
			return false;
	return s->tolen != s->len;
}

/*
 * mremap(2): the entries move and keep their state. userfaultfd(2): without
 * UFFD_FEATURE_EVENT_REMAP the new address range is not registered.
 * MREMAP_DONTUNMAP leaves an empty mapping at the old addresses. This mapping
 * stays registered.
 */
static void model_mremap(const struct walk_step *s, long result)
{
	static struct walk_page moved[WALK_PAGES];
	long flags = walk_calls[s->call].arg;
	uint32_t i;

	(void)result;
	for (i = 0; i < s->tolen; i++) {
		if (i < s->len) {
			moved[i] = *page_of(s->proc, s->at + i);
		} else {
			moved[i] = moved[s->len - 1];
			moved[i].flags &= ~GUARD;
			m_zap(&moved[i]);
			moved[i].off += i + 1 - s->len;
		}
		if (flags & MREMAP_FIXED)
			moved[i].flags = (moved[i].flags & ~UFFD) | MOVED;
	}
	for (i = 0; i < s->len; i++) {
		struct walk_page *p = page_of(s->proc, s->at + i);

		if (flags & MREMAP_DONTUNMAP) {
			m_zap(p);
			p->flags &= ~GUARD;
		} else {
			*p = (struct walk_page){ .kind = NOTHING };
		}
	}
	for (i = 0; i < s->tolen; i++)
		*page_of(s->proc, s->to + i) = moved[i];
}

static void model_write(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++)
		if (!m_signal(p, true))
			m_write(p, s->val + nth(s, p));
}

static void model_write_same(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++)
		if (!m_signal(p, true))
			m_write(p, s->val);
}

static void model_zap(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++)
		if (p->kind != SHARED)
			m_drop(p);
}

/*
 * Whether another process has a copy of this page because of a fork(). Such a
 * copy has the same value as this page. Pages that another step wrote have
 * other values.
 */
static bool elsewhere(const struct walk_step *s, const struct walk_page *p)
{
	int proc;
	uint32_t i;

	for (proc = 0; proc < WALK_PROCS && p->val; proc++) {
		if (proc == s->proc || !walk->box[proc].alive)
			continue;
		for (i = 0; i < WALK_PAGES; i++)
			if (page_of(proc, i)->flags & OWN && page_of(proc, i)->val == p->val)
				return true;
	}
	return false;
}

/*
 * Known issue 45: MADV_FREE may also free the page for other processes that
 * share it.
 */
static bool valid_free(const struct walk_step *s)
{
	return !walk_has(45) || ALL(!elsewhere(s, p));
}

/*
 * madvise(2), MADV_FREE: a page reads as its old content or as zeros, until the
 * next write.
 */
static void model_free(const struct walk_step *s, long result)
{
	(void)result;
	/* A folio may contain pages that were never written to. They are freed too. */
	for (struct walk_page *p = first_page(s); p < end_page(s); p++)
		p->flags |= LAZY;
}

static void model_guard(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++) {
		if (walk_calls[s->call].arg == MADV_GUARD_REMOVE) {
			p->flags &= ~GUARD;
		} else if (!(p->flags & GUARD)) {
			m_zap(p);
			p->flags |= GUARD;
		}
	}
}

/* Known issue 36: on protected pages of a memory file, MADV_GUARD_INSTALL never returns. */
static bool valid_guard(const struct walk_step *s)
{
	if (!has(HAS_FILE_GUARD))
		return ALL(p->kind == ANON);
	return !walk_has(36) || ALL(p->kind == ANON || !(p->flags & WP));
}

static void model_flag(const struct walk_step *s, long result)
{
	static const struct {
		int advice;
		uint32_t set, clear;
	} effect[] = {
		{ MADV_DONTFORK, NOFORK, 0 },	{ MADV_DOFORK, 0, NOFORK },
		{ MADV_WIPEONFORK, WIPE, 0 },	{ MADV_KEEPONFORK, 0, WIPE },
		{ MADV_MERGEABLE, MERGE, 0 },	{ MADV_UNMERGEABLE, 0, MERGE },
	};
	unsigned int i = 0;

	(void)result;
	while (effect[i].advice != walk_calls[s->call].arg)
		i++;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++)
		p->flags = (p->flags | effect[i].set) & ~effect[i].clear;
}

static void model_populate_write(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++)
		m_own(p);
}

static void model_remove(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++)
		walk->object[p->obj].val[p->off] = 0;
}

static void model_mlock(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++) {
		p->flags = (p->flags | LOCKED) & ~ONFAULT;
		if (walk_calls[s->call].arg)
			p->flags |= ONFAULT;
		else if (p->kind != SHARED && p->prot & PROT_WRITE)
			m_own(p);
	}
}

static void model_munlock(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++)
		p->flags &= ~(LOCKED | ONFAULT);
}

static bool valid_fork(const struct walk_step *s)
{
	return !walk->box[s->other].alive;
}

static void model_fork(const struct walk_step *s, long result)
{
	if (result > 0) {
		m_fork(s->proc, s->other);
		walk->pins[s->other] = 0;
	}
}

static bool valid_exit(const struct walk_step *s)
{
	int proc, alive = 0;

	(void)s;
	for (proc = 0; proc < WALK_PROCS; proc++)
		alive += walk->box[proc].alive;
	return alive > 1;
}

static void draw_other(struct walk_step *s)
{
	int tries;

	for (tries = 0; tries < 8 && !walk->box[s->other].alive; tries++)
		s->other = walk_below(WALK_PROCS);
}

static bool valid_other(const struct walk_step *s)
{
	return walk->box[s->other].alive;
}

/* The other process must be able to access each page without a trap. */
static bool valid_vm_read(const struct walk_step *s)
{
	uint32_t i;

	for (i = 0; i < s->len; i++) {
		const struct walk_page *p = page_of(s->other, s->at + i);

		if (p->flags & UFFD || m_signal(p, walk_calls[s->call].arg))
			return false;
	}
	return walk->box[s->other].alive;
}

static void model_vm_write(const struct walk_step *s, long result)
{
	uint32_t i;

	(void)result;
	for (i = 0; i < s->len; i++)
		m_write(page_of(s->other, s->at + i), s->val + i);
}

/*
 * The range is often one page, since most bugs show up at the first access to a
 * new mapping.
 */
static void draw_read(struct walk_step *s)
{
	if (walk_below(2))
		s->len = page_of(s->proc, s->at)->flags & HUGETLB ? s->len : 1;
}

static void draw_two(struct walk_step *s)
{
	s->x &= 1;
}

static void draw_split(struct walk_step *s)
{
	s->x = walk_below(4) ? 0 : 2 + walk_below(7);
}

/*
 * The kernel warns about a split of anonymous folios to order 1, and about a
 * split of other folios to any order except 0.
 */
static bool valid_split(const struct walk_step *s)
{
	return !s->x || (s->x > 1 && ALL(p->kind == ANON));
}

static void draw_ksm(struct walk_step *s)
{
	s->x = walk_below(4) ? 1 : 2 * walk_below(2);
}

static void draw_thp(struct walk_step *s)
{
	s->off = 1 + walk_below(10);
	s->x = walk_below(3) ? 1 : 0;
}

static bool valid_thp(const struct walk_step *s)
{
	return walk->orders >> s->off & 1;
}

static void draw_refs(struct walk_step *s)
{
	s->x = has(HAS_SOFT_DIRTY) && walk_below(2) ? 4 : 1;
}

/*
 * soft-dirty.rst: a write of 4 to clear_refs clears the bits of the whole
 * process.
 */
static void model_refs(const struct walk_step *s, long result)
{
	uint32_t i;

	(void)result;
	for (i = 0; s->x == 4 && i < WALK_PAGES; i++)
		page_of(s->proc, i)->flags &= ~SOFT;
}

static void draw_reclaim(struct walk_step *s)
{
	s->x = 1 + walk_below(WALK_PAGES);
}

/*
 * With 0 there is no limit. A limit stays until the next such call. If it were
 * much lower than the memory that cannot be reclaimed, the kernel would let the
 * processes sleep for seconds.
 */
static void draw_high(struct walk_step *s)
{
	s->x = walk_below(2) ? (2 + walk_below(7)) * WALK_PAGES / 2 : 0;
}

#include "folio_walk_watch.h"

#include "folio_walk_file.h"

/*
 * proc_pid_mem(5): writes to private memory ignore its permissions, as writes
 * by ptrace(2) do.
 */
static bool valid_force(const struct walk_step *s)
{
	return ALL(p->kind != SHARED);
}

static void model_force(const struct walk_step *s, long result)
{
	(void)result;
	for (struct walk_page *p = first_page(s); p < end_page(s); p++)
		m_write(p, s->val + nth(s, p));
}

#include "folio_walk_table.h"
