/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for hugetlb pages. These helpers find the sizes of hugetlb pages on
 * this machine, change pools, and restore the pools at the end.
 */
#ifndef HUGETLB_POOL_H
#define HUGETLB_POOL_H

#include "folio_util.h"

/* A machine has at most this many sizes of hugetlb pages. */
#define HUGETLB_SIZES 8

/*
 * The state of one pool before the test. Each size of hugetlb pages has its own
 * pool. @used: the number of pages that were in use or reserved. @before: the
 * number of pages in the pool.
 * @beyond: the number of pages by which the pool could grow on demand.
 */
struct hugetlb_pool {
	char folder[128];
	unsigned long used;
	unsigned long before;
	unsigned long beyond;
};

static inline int hugetlb_by_size(const void *one, const void *other)
{
	size_t a = *(const size_t *)one, b = *(const size_t *)other;

	return a < b ? -1 : a > b;
}

/**
 * hugetlb_size() - a size of hugetlb pages
 * @rank: 0 is the smallest; arm64 with 4K pages has 64K, 2M, 32M and 1G
 *
 * Return: bytes, or 0 if there are fewer sizes
 */
static inline size_t hugetlb_size(int rank)
{
	size_t sizes[HUGETLB_SIZES];
	int nr = detect_hugetlb_page_sizes(sizes, HUGETLB_SIZES);

	qsort(sizes, nr, sizeof(*sizes), hugetlb_by_size);
	return rank < nr ? sizes[rank] : 0;
}

static inline unsigned long hugetlb_pool_count(const struct hugetlb_pool *pool, const char *name)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", pool->folder, name);
	return read_num(path);
}

static inline void hugetlb_pool_set(const struct hugetlb_pool *pool, const char *name,
				    unsigned long value)
{
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", pool->folder, name);
	f = fopen(path, "w");
	if (f) {
		fprintf(f, "%lu", value);
		fclose(f);
	}
}

/*
 * Ask for a pool of @pages pages. The pool may stay smaller: some kernels
 * cannot make gigantic pages.
 */
static inline void hugetlb_pool_resize(const struct hugetlb_pool *pool, unsigned long pages)
{
	hugetlb_pool_set(pool, "nr_hugepages", pages);
}

/* The number of pages that a mapping without a reservation can get. */
static inline long hugetlb_pool_left(const struct hugetlb_pool *pool)
{
	return hugetlb_pool_count(pool, "free_hugepages") -
	       hugetlb_pool_count(pool, "resv_hugepages");
}

/**
 * hugetlb_pool_have() - provide unused pages
 * @pool: the function fills it in; hugetlb_pool_restore() needs it
 * @size: the size of a page, in bytes
 * @pages: how many unused pages the pool must have
 *
 * Return: NULL, or the reason why there are fewer pages
 */
static inline const char *hugetlb_pool_have(struct hugetlb_pool *pool, size_t size,
					    unsigned long pages)
{
	snprintf(pool->folder, sizeof(pool->folder),
		 "/sys/kernel/mm/hugepages/hugepages-%zukB", size >> 10);
	if (access(pool->folder, F_OK) || geteuid()) {
		pool->folder[0] = 0;
		return "no hugetlb pages of this size, or not root";
	}
	pool->before = hugetlb_pool_count(pool, "nr_hugepages");
	pool->beyond = hugetlb_pool_count(pool, "nr_overcommit_hugepages");
	pool->used = pool->before - hugetlb_pool_count(pool, "free_hugepages") +
		     hugetlb_pool_count(pool, "resv_hugepages");
	hugetlb_pool_resize(pool, pool->used + pages);
	if (hugetlb_pool_count(pool, "nr_hugepages") < pool->used + pages)
		return "not enough hugetlb pages";
	return NULL;
}

/**
 * hugetlb_pool_have_just() - provide exactly this number of unused pages
 * @pool: the function fills it in; hugetlb_pool_restore() needs it
 * @size: the size of a page, in bytes
 * @pages: how many unused pages the pool must have
 *
 * Return: NULL, or the reason why there is no such pool
 */
static inline const char *hugetlb_pool_have_just(struct hugetlb_pool *pool, size_t size,
						 unsigned long pages)
{
	const char *why = hugetlb_pool_have(pool, size, pages);

	if (why)
		return why;
	hugetlb_pool_set(pool, "nr_overcommit_hugepages", 0);
	return hugetlb_pool_left(pool) == (long)pages ? NULL : "another process uses the pool";
}

/* Whether each byte of a hugetlb page has this value, from small page @from on. */
static inline bool hugetlb_is(const char *at, size_t size, size_t from, unsigned char value)
{
	for (size_t i = bytes(from); i < size; i += psize())
		if (!page_is(at + i, value))
			return false;
	return true;
}

/* Restore the pool, if hugetlb_pool_have() found a pool. */
static inline void hugetlb_pool_restore(const struct hugetlb_pool *pool)
{
	if (!pool->folder[0])
		return;
	hugetlb_pool_resize(pool, pool->before);
	if (pool->beyond)
		hugetlb_pool_set(pool, "nr_overcommit_hugepages", pool->beyond);
}

#endif /* HUGETLB_POOL_H */
