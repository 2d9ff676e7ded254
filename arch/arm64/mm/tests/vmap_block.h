/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A part of the vmalloc space that only one test uses, and a model of its
 * entries.
 */
#ifndef _ARM64_MM_TESTS_VMAP_BLOCK_H
#define _ARM64_MM_TESTS_VMAP_BLOCK_H

#include <linux/vmalloc.h>

#include "linear_map.h"

/* Whether this kernel maps vmalloc space by contiguous blocks of pages. */
#if defined(CONFIG_HUGETLB_PAGE) && defined(arch_vmap_pte_range_map_size)
#define VMAP_BLOCK_CONT		true
#else
#define VMAP_BLOCK_CONT		false
#endif

/* Ranges of an area that are mapped at the same time. */
#define VMAP_BLOCK_RANGES	3

/**
 * struct vmap_block_range - addresses that map consecutive memory
 * @start: the first address
 * @end: the address after the last one
 * @phys: the physical address of @start
 * @max: the largest size of an entry, or of a block of contiguous entries
 */
struct vmap_block_range {
	unsigned long start;
	unsigned long end;
	phys_addr_t phys;
	unsigned long max;
};

/**
 * struct vmap_block_area - a part of the vmalloc space
 * @test: the test
 * @vm: the area of the kernel that contains it
 * @virt: its address
 * @size: its size
 * @range: the ranges that it maps
 * @nr: number of ranges
 * @blocks: blocks of contiguous pages that the last check has seen
 * @large: entries larger than a page that the last check has seen
 * @pages: all other entries that map something
 */
struct vmap_block_area {
	struct kunit *test;
	struct vm_struct *vm;
	unsigned long virt;
	unsigned long size;
	struct vmap_block_range range[VMAP_BLOCK_RANGES];
	unsigned int nr;
	unsigned long blocks, large, pages;
};

void vmap_block_init(struct vmap_block_area *area, struct kunit *test,
		     unsigned long align, unsigned long size);
void vmap_block_free(struct vmap_block_area *area);
int vmap_block_map(struct vmap_block_area *area, unsigned long offset,
		   unsigned long size, phys_addr_t phys);
bool vmap_block_check(struct vmap_block_area *area, const char *when);
phys_addr_t vmap_block_no_memory(void);

#endif /* _ARM64_MM_TESTS_VMAP_BLOCK_H */
