/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Anonymous memory of a real address space, and a model of it.
 *
 * The thread of the test has its own address space and makes system calls on
 * it. The model has the expected entry and content of each page.
 * user_mm_check() compares all pages with the model.
 */
#ifndef _PGTABLE_KUNIT_USER_MM_H
#define _PGTABLE_KUNIT_USER_MM_H

#include "pgtable_kunit.h"

/*
 * Pages of a block: as many as the architecture folds, or as many as a folio of
 * a similar size would have.
 */
#ifdef CONFIG_ARM64_CONTPTE
#define USER_BLOCK_ORDER	(CONT_PTE_SHIFT - PAGE_SHIFT)
#else
#define USER_BLOCK_ORDER	4
#endif
#define USER_BLOCK		((unsigned int)BIT(USER_BLOCK_ORDER))
#define USER_BLOCKS		3
#define USER_PAGES		(USER_BLOCKS * USER_BLOCK)

/**
 * struct user_page - a page in the model
 * @addr: its address
 * @mapped: there is a VMA
 * @present: there is an entry
 * @writable: the VMA allows writes
 * @wiped: it is empty in a child
 * @hidden: a child does not get the page
 * @locked: it may not be unmapped
 * @data: its first word
 * @pfn: its page frame, or 0 if any page frame is right
 */
struct user_page {
	unsigned long addr;
	bool mapped;
	bool present;
	bool writable;
	bool wiped;
	bool hidden;
	bool locked;
	unsigned int data;
	unsigned long pfn;
};

/**
 * struct user_mm - blocks of anonymous memory, one after the other
 * @test: the test
 * @mm: the address space of the thread of the test
 * @page: the pages
 * @moves: number of addresses to which memory has been moved
 * @parent: in a child, the address space of its parent
 * @rss: pages of other mappings in the address space
 * @what: the last action, for messages
 * @failed: number of failures
 */
struct user_mm {
	struct kunit *test;
	struct mm_struct *mm;
	struct user_mm *parent;
	struct user_page page[USER_PAGES];
	unsigned int moves;
	unsigned long rss;
	char what[96];
	unsigned int failed;
};

/*
 * Memory begins at the first of several places. Each place is twice as large as
 * the memory.
 */
#define USER_PLACES		4
#define USER_PLACE_SIZE		ALIGN(2 * USER_PAGES * PAGE_SIZE, PMD_SIZE)
#define USER_ADDR		ALIGN(TASK_SIZE / 4, PMD_SIZE)

struct user_mm *user_mm_alloc(struct kunit *test);
int user_mm_init(struct kunit *test);
void user_mm_populate(struct user_mm *u, unsigned int order);
void user_mm_unmap(struct user_mm *u);
void user_mm_check(struct user_mm *u);
pte_t user_mm_pte(struct user_mm *u, unsigned long addr);
struct folio *user_mm_folio(struct user_mm *u, unsigned int page);
unsigned long user_mm_faults(void);
int user_mm_write(struct user_mm *u, unsigned int page, unsigned int data);
struct file *user_mm_uffd(struct kunit *test);
int user_mm_ioctl(struct file *file, unsigned int cmd, void __user *scratch,
		  const void *arg, size_t size);
int user_mm_fork(struct user_mm *u, int (*child)(struct user_mm *u),
		 void (*parent)(struct user_mm *u));

#endif /* _PGTABLE_KUNIT_USER_MM_H */
