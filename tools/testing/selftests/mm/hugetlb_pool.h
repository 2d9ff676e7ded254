/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sizes of hugetlb pages that a machine has, and pools of them that are put back.
 */
#ifndef HUGETLB_POOL_H
#define HUGETLB_POOL_H

#include "folio_util.h"

/* Sizes of hugetlb on a machine, at most. */
#define HUGETLB_SIZES 8

/* The pages of one size that are set aside, and how many there were before. */
struct hugetlb_pool {
	char path[128];
	unsigned long before;
};

static inline int hugetlb_by_size(const void *one, const void *other)
{
	size_t a = *(const size_t *)one, b = *(const size_t *)other;

	return a < b ? -1 : a > b;
}

/**
 * hugetlb_size() - a size of hugetlb pages
 * @rank: 0 is the smallest; on arm64 with pages of 4K there are 64K, 2M, 32M, 1G
 *
 * Return: bytes, or 0 where there are not so many sizes
 */
static inline size_t hugetlb_size(int rank)
{
	size_t sizes[HUGETLB_SIZES];
	int nr = detect_hugetlb_page_sizes(sizes, HUGETLB_SIZES);

	qsort(sizes, nr, sizeof(*sizes), hugetlb_by_size);
	return rank < nr ? sizes[rank] : 0;
}

/* Write to a file of the pool, where the kernel takes it: not each makes gigantic pages. */
static inline void hugetlb_pool_write(const struct hugetlb_pool *pool, unsigned long pages)
{
	FILE *f = fopen(pool->path, "w");

	if (f) {
		fprintf(f, "%lu", pages);
		fclose(f);
	}
}

/**
 * hugetlb_pool_have() - have pages that nobody uses
 * @pool: is filled in, for hugetlb_pool_restore()
 * @size: of a page, in bytes
 * @pages: how many are to be there, used and unused
 *
 * Return: NULL, or why there are fewer
 */
static inline const char *hugetlb_pool_have(struct hugetlb_pool *pool, size_t size,
					    unsigned long pages)
{
	snprintf(pool->path, sizeof(pool->path),
		 "/sys/kernel/mm/hugepages/hugepages-%zukB/nr_hugepages", size >> 10);
	if (access(pool->path, W_OK)) {
		pool->path[0] = 0;
		return "no hugetlb pages of this size, or not root";
	}
	pool->before = read_num(pool->path);
	hugetlb_pool_write(pool, pages);
	return read_num(pool->path) < pages ? "not enough hugetlb pages" : NULL;
}

/* As many as there were before; nothing where hugetlb_pool_have() found no pool. */
static inline void hugetlb_pool_restore(const struct hugetlb_pool *pool)
{
	if (pool->path[0])
		hugetlb_pool_write(pool, pool->before);
}

#endif /* HUGETLB_POOL_H */
