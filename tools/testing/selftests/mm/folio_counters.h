/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The counters that the kernel has for each size of large folios, and checks that only the
 * expected counters have changed.
 */
#ifndef FOLIO_COUNTERS_H
#define FOLIO_COUNTERS_H

#include <dirent.h>

#include "folio_pmd.h"
#include "folio_state.h"

/* All counters of 6.12 and 7.3. Documentation/admin-guide/mm/transhuge.rst describes them. */
static const char *const counter_names[] = {
	"anon_fault_alloc", "anon_fault_fallback", "anon_fault_fallback_charge",
	"collapse_alloc", "collapse_alloc_failed",
	"collapse_exceed_none_pte", "collapse_exceed_shared_pte", "collapse_exceed_swap_pte",
	"nr_anon", "nr_anon_partially_mapped",
	"shmem_alloc", "shmem_fallback", "shmem_fallback_charge",
	"split", "split_deferred", "split_failed",
	"swpin", "swpin_fallback", "swpin_fallback_charge",
	"swpout", "swpout_fallback", "zswpout",
};

#define COUNTERS ARRAY_SIZE(counter_names)
#define COUNTER_ORDERS 16

/* The value of each counter for each order, or -1 if the kernel does not have this counter. */
struct counters {
	long value[COUNTERS][COUNTER_ORDERS];
};

/* In a table of expected changes: the counter grows, but nobody knows by how much. */
#define SOME 1000000L

/*
 * struct change - an expected change of one counter
 * @name: the counter, or NULL at the end of a table
 * @order: the order of the folios
 * @by: the difference
 * @maybe: whether the counter may also stay the same
 */
struct change {
	const char *name;
	int order;
	long by;
	bool maybe;
};

static inline void counters_read(struct counters *all)
{
	for (unsigned int name = 0; name < COUNTERS; name++)
		for (int order = 0; order < COUNTER_ORDERS; order++)
			all->value[name][order] = folio_statistic(1U << order, counter_names[name]);
}

/* Whether a counter is in the list. */
static inline bool counter_is_known(const char *name)
{
	for (unsigned int i = 0; i < COUNTERS; i++)
		if (!strcmp(counter_names[i], name))
			return true;
	return false;
}

/**
 * counters_check() - compare the counters with their earlier values
 * @_metadata: the metadata of the case
 * @before: the earlier values; the function replaces them by the values of now
 * @changes: the expected changes; the last one has no name
 * @what: what happened, for the message
 *
 * A counter that @changes does not name must be as before. The counters of khugepaged may differ.
 *
 * Return: how many of the expected changes happened
 */
static inline unsigned int counters_check(struct __test_metadata *_metadata,
					  struct counters *before, const struct change *changes,
					  const char *what)
{
	static struct counters now;
	unsigned int found = 0;

	counters_read(&now);
	for (unsigned int name = 0; name < COUNTERS; name++) {
		for (int order = 0; order < COUNTER_ORDERS; order++) {
			long by = now.value[name][order] - before->value[name][order];
			long expected = 0;

			for (const struct change *c = changes; c->name; c++)
				if (c->order == order && !strcmp(c->name, counter_names[name]))
					expected += c->maybe && !by ? 0 : c->by;
			if (before->value[name][order] < 0)
				continue;
			/* khugepaged may scan memory whenever folios are enabled. */
			if (!expected && !strncmp(counter_names[name], "collapse_", 9))
				continue;
			found += expected && by;
			if (expected == SOME && by > 0)
				continue;
			EXPECT_EQ(expected, by) {
				TH_LOG("%s: %s of order %d", what, counter_names[name], order);
			}
		}
	}
	*before = now;
	return found;
}

/* A table of expected changes. Each of them is for the order of the case. */
#define CHANGES(...)								\
	counters_check(_metadata, &self->before, (struct change[]){ __VA_ARGS__, {} }, __func__)
#define OWN(counter, by) { counter, self->order, by }
/*
 * 6.12 unmaps some folios page by page. It queues them for a split in between, and removes them
 * from the queue when they are gone.
 */
#define PASSING(folios) { "split_deferred", self->order, folios, true }
#define QUEUED(folios) OWN("split_deferred", counters_queued(self->order, folios))
/* Nothing has changed. */
#define SAME() counters_check(_metadata, &self->before, (struct change[]){ {} }, __func__)

/* Reserve addresses for the memory. The memory itself is aligned, and has no pages yet. */
static inline void *counters_reserve(struct memory *m, enum memory_kind kind, int order,
				     unsigned int folios)
{
	size_t size = bytes(1U << order);
	int flags = MAP_FIXED | (kind == ANON ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);

	*m = (struct memory){ .pages = folios << order, .order = order, .fd = -1 };
	if (kind != ANON)
		m->fd = memory_file(kind, m->pages);
	m->room_bytes = bytes(m->pages) + 3 * size;
	m->room = mmap(NULL, m->room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->room == MAP_FAILED)
		return m->room;
	m->at = (char *)(((unsigned long)m->room + 2 * size - 1) & -size);
	return mmap(m->at, bytes(m->pages), PROT_READ | PROT_WRITE, flags, m->fd, 0);
}

/* Let the kernel make folios of this order while touching one page of each. Then fill them. */
static inline void counters_touch(const struct memory *m)
{
	folio_settings(m->order);
	for (unsigned int page = 0; page < m->pages; page += 1U << m->order)
		m->at[bytes(page)] = 1;
	folio_settings(0);
	for (unsigned int page = 0; page < m->pages; page++)
		memset(m->at + bytes(page), pattern(page), bytes(1));
}

/* The order of a variant: 0 stands for the order of a block, -1 for the order of a huge page. */
static inline int counters_order(int variant)
{
	if (variant < 0)
		return pmd_pages() ? order_of(pmd_pages()) : 0;
	return variant ?: order_of(cont_ptes());
}

/* Returns NULL if cases can count folios of this order, or the reason why they cannot. */
static inline const char *counters_allowed(int order)
{
	/* After these first calls, later calls cause no faults of their own. */
	const char *why = order ? folio_settings(order) ?: folio_settings(0) : NO_HUGE_PAGES;

	if (!why && folio_statistic(1U << order, "nr_anon") < 0)
		why = "the kernel has no statistics of this size";
	if (!why && access("/tests/list", F_OK))
		why = "counts folios of the whole machine: runs only in the virtual machine";
	return why;
}

/* The first page of the memory that does not hold its pattern, or -1. */
static inline int foreign(const struct memory *m)
{
	for (unsigned int page = 0; page < m->pages; page++)
		if (!page_is(m->at + bytes(page), pattern(page)))
			return page;
	return -1;
}

/**
 * counters_queued() - by how much split_deferred grows when the kernel splits whole folios
 * @order: the order of the folios
 * @folios: how many folios it splits
 *
 * Return: 0. A kernel with known issue 8 queues folios for a split while it replaces their
 * entries, unless one PMD maps them. Then the function returns @folios.
 */
static inline long counters_queued(int order, unsigned int folios)
{
	return has_issue(8) && order > 1 && 1U << order != pmd_pages() ? folios : 0;
}

#endif /* FOLIO_COUNTERS_H */
