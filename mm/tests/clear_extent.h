/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Clearing of extents: shared by several suites.
 *
 *   clear_extent.c		memory with known neighbours
 *   clear_record.c		which pages are cleared or copied, in which order
 *   clear_pages_kunit.c	the functions for ranges of pages, and a benchmark
 *   folio_zero_user_kunit.c	folios: their content afterwards
 *   folio_zero_order_kunit.c	folios: the order of pages
 *   folio_zero_fault_kunit.c	page faults
 */
#ifndef _MM_TESTS_CLEAR_EXTENT_H
#define _MM_TESTS_CLEAR_EXTENT_H

#include "pgtable_kunit.h"

/* Content of pages before they are cleared. */
enum clear_fill {
	CLEAR_ONES,		/* all bits set */
	CLEAR_WORDS,		/* no two words alike, no byte zero */
	CLEAR_LAST_BYTE,	/* zero except for the last byte of each page */
	CLEAR_MARKS,		/* three words of each page, to write and check
				 * large memory often
				 */
};

/**
 * struct clear_extent - consecutive pages in the middle of known memory
 * @test: the test that owns it
 * @page: the first page; aligned to the size of the extent
 * @nr: number of pages
 * @guard: number of pages before the extent, and after it, that also belong to
 *	the test
 *
 * No two words of the guards are alike. All guards are checked when the test
 * ends. The guards next to the extent are also checked each time.
 */
struct clear_extent {
	struct kunit *test;
	struct page *page;
	unsigned int nr;
	unsigned int guard;
	/* private: */
	enum clear_fill fill;
	struct page **block;
	unsigned int blocks;
	void *struct_pages;
};

struct clear_extent *clear_extent_alloc(struct kunit *test, unsigned int order);
bool clear_extent_fits(unsigned int order);
struct folio *clear_extent_folio(struct clear_extent *extent);
void clear_extent_fill(struct clear_extent *extent, enum clear_fill fill);
__printf(4, 5)
bool clear_extent_check(struct clear_extent *extent, unsigned int first,
			unsigned int nr, const char *fmt, ...);
__printf(3, 4)
bool clear_extent_check_copy(struct clear_extent *extent,
			     struct clear_extent *from, const char *fmt, ...);

enum clear_event_kind {
	CLEAR_EVENT_CLEAR = BIT(0),
	CLEAR_EVENT_COPY = BIT(1),
	CLEAR_EVENT_RESCHED = BIT(2),	/* a chance to reschedule */
	CLEAR_EVENT_SLEEP = BIT(3),	/* a check that sleeping is allowed */
};

/**
 * struct clear_event - an action of the code under test
 * @kind: the kind of action
 * @pfn: the first page that is cleared, or the target of the copy
 * @nr: number of pages that are cleared with one call
 * @from: the page that is copied; or the first word of the page that is cleared
 */
struct clear_event {
	enum clear_event_kind kind;
	unsigned long pfn;
	unsigned int nr;
	unsigned long from;
};

/**
 * struct clear_record - the actions of the test's own thread
 * @nr: number of events
 * @kinds: the kinds of events that this machine can record
 * @max: how many events are kept; further events are only counted
 * @event: the first @max of them
 */
struct clear_record {
	unsigned int nr;
	unsigned int kinds;
	unsigned int max;
	struct clear_event *event;
};

struct clear_record *clear_record_alloc(struct kunit *test, unsigned int kinds,
					unsigned int max);
void clear_record_fail_copy(unsigned long pfn);

/* The expected order in which the pages of a folio are cleared, or copied. */
void clear_order_zero(unsigned int *order, unsigned int nr, unsigned int hint);
void clear_order_copy(unsigned int *order, unsigned int nr, unsigned int hint);

#endif /* _MM_TESTS_CLEAR_EXTENT_H */
