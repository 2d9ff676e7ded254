// SPDX-License-Identifier: GPL-2.0
/*
 * Recorder of the pages that are cleared and copied, and of points in between
 * where the kernel may reschedule.
 *
 * Kprobes notice only functions: clear_page() and copy_page() of arm64, and the
 * functions that x86_64 calls. Newer x86_64 kernels clear pages with an inline
 * instruction, which no probe notices. The command line can hide the CPU's fast
 * instructions, and then the kernel calls a function.
 */

#include <linux/kprobes.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "clear_extent.h"

#if defined(CONFIG_KPROBES) && defined(CONFIG_HAVE_FUNCTION_ARG_ACCESS_API)

struct clear_probe {
	const char *symbol;
	enum clear_event_kind kind;
	struct kprobe kprobe;
	bool registered;
};

static struct clear_probe clear_probes[] = {
	{ "clear_page", CLEAR_EVENT_CLEAR },
	{ "clear_page_orig", CLEAR_EVENT_CLEAR },
	{ "clear_page_rep", CLEAR_EVENT_CLEAR },
	{ "clear_page_erms", CLEAR_EVENT_CLEAR },
	{ "__clear_pages_unrolled", CLEAR_EVENT_CLEAR },
	{ "copy_page", CLEAR_EVENT_COPY },
	{ "copy_mc_to_kernel", CLEAR_EVENT_COPY },
	{ "__cond_resched", CLEAR_EVENT_RESCHED },
	{ "__might_sleep", CLEAR_EVENT_SLEEP },
};

/* KUnit runs one case at a time. */
static struct clear_record *clear_recording;
static struct task_struct *clear_task;
static unsigned long clear_fail_pfn;

static int clear_seen(struct kprobe *kprobe, struct pt_regs *regs)
{
	struct clear_probe *probe = container_of(kprobe, struct clear_probe,
						 kprobe);
	struct clear_record *record = clear_recording;
	unsigned long addr = regs_get_kernel_argument(regs, 0);
	struct clear_event event = { .kind = probe->kind };

	if (current != clear_task)
		return 0;
	switch (probe->kind) {
	case CLEAR_EVENT_CLEAR:
		event.pfn = PHYS_PFN(__pa(addr));
		event.nr = pgtable_kunit_clear_nr(probe->symbol, regs);
		event.from = *(unsigned long *)addr;
		break;
	case CLEAR_EVENT_COPY:
		event.pfn = PHYS_PFN(__pa(addr));
		event.nr = 1;
		event.from = PHYS_PFN(__pa(regs_get_kernel_argument(regs, 1)));
		break;
	default:
		break;
	}
	if (record->nr < record->max)
		record->event[record->nr] = event;
	record->nr++;
	if (probe->kind == CLEAR_EVENT_COPY && event.pfn == clear_fail_pfn)
		return pgtable_kunit_return_error(regs);
	return 0;
}

NOKPROBE_SYMBOL(clear_seen);

/*
 * With a post handler, kprobes does not replace the probe by a jump. After a
 * jump, the handler could not make the probed function return an error.
 */
static void clear_seen_post(struct kprobe *kprobe, struct pt_regs *regs,
			    unsigned long flags)
{
}

NOKPROBE_SYMBOL(clear_seen_post);

static void clear_record_stop(void *data)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(clear_probes); i++) {
		if (clear_probes[i].registered)
			unregister_kprobe(&clear_probes[i].kprobe);
		clear_probes[i].registered = false;
	}
	clear_fail_pfn = 0;
}

static void clear_record_start(struct kunit *test, struct clear_record *record,
			       unsigned int kinds)
{
	unsigned int i;

	clear_recording = record;
	clear_task = current;
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, clear_record_stop, NULL));
	for (i = 0; i < ARRAY_SIZE(clear_probes); i++) {
		struct clear_probe *probe = &clear_probes[i];

		if (!(probe->kind & kinds))
			continue;
		probe->kprobe = (struct kprobe){
			.symbol_name = probe->symbol,
			.pre_handler = clear_seen,
			.post_handler = probe->kind == CLEAR_EVENT_COPY ?
					clear_seen_post : NULL,
		};
		probe->registered = !register_kprobe(&probe->kprobe);
		if (probe->registered)
			record->kinds |= probe->kind;
	}
}

/**
 * clear_record_fail_copy() - make the copy of a page fail
 * @pfn: the page that is copied to
 */
void clear_record_fail_copy(unsigned long pfn)
{
	clear_fail_pfn = pfn;
}

#else /* no kprobes, or kprobes that do not know the arguments */

static void clear_record_start(struct kunit *test, struct clear_record *record,
			       unsigned int kinds)
{
}

void clear_record_fail_copy(unsigned long pfn)
{
}

#endif

/* Does the kernel clear pages with a function? Then probes notice it. */
static void clear_record_try(struct kunit *test, struct clear_record *record)
{
	struct page *page = alloc_page(GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, page);
	record->nr = 0;
	clear_highpage(page);
	if (!record->nr)
		record->kinds &= ~CLEAR_EVENT_CLEAR;
	__free_page(page);
}

/**
 * clear_record_alloc() - record the actions of the test's thread from now on
 * @test: the test that owns the recorder
 * @kinds: the kinds to record
 * @max: how many events to keep
 *
 * The test is skipped if it wants to record pages and this machine cannot show
 * them. To start over, set the count of the record to 0.
 */
struct clear_record *clear_record_alloc(struct kunit *test, unsigned int kinds,
					unsigned int max)
{
	struct clear_record *record;

	record = kunit_kzalloc(test, sizeof(*record), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, record);
	record->event = kunit_kcalloc(test, max, sizeof(*record->event),
				      GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, record->event);
	record->max = max;

	clear_record_start(test, record, kinds);
	if (!record->kinds)
		kunit_skip(test, "needs CONFIG_KPROBES, and a function to probe");
	if (record->kinds & CLEAR_EVENT_CLEAR)
		clear_record_try(test, record);
	if (kinds & CLEAR_EVENT_CLEAR & ~record->kinds)
		kunit_skip(test, "pages are cleared without a call%s",
			   IS_ENABLED(CONFIG_X86_64) ?
			   ": boot with clearcpuid=erms,rep_good" : "");
	if (kinds & CLEAR_EVENT_COPY & ~record->kinds)
		kunit_skip(test, "pages are copied without a call");
	record->nr = 0;
	return record;
}

/**
 * clear_order_copy() - the order in which the pages of a folio are copied
 * @order: gets the indexes of the pages
 * @nr: number of pages
 * @hint: the page that will be used next
 *
 * The page farthest from @hint comes first. Of two pages at the same distance,
 * the right page comes first. If the page allocator cannot make such a large
 * folio, its pages are copied from the start to the end.
 */
void clear_order_copy(unsigned int *order, unsigned int nr, unsigned int hint)
{
	unsigned int left = 0, right = nr - 1, i;

	for (i = 0; i < nr; i++) {
		if (nr > MAX_ORDER_NR_PAGES)
			order[i] = i;
		else if (right - hint >= hint - left)
			order[i] = right--;
		else
			order[i] = left++;
	}
}

/**
 * clear_order_zero() - the order in which the pages of a folio are cleared
 * @order: gets the indexes of the pages
 * @nr: number of pages
 * @hint: the page that will be used next
 *
 * The order is the same as for copies. On newer kernels there are three groups,
 * each from its start to its end: on the right, on the left, and within two
 * pages of @hint.
 */
void clear_order_zero(unsigned int *order, unsigned int nr, unsigned int hint)
{
	unsigned int group, page, n = 0;

	if (!PGTABLE_KUNIT_ZERO_EXTENTS) {
		clear_order_copy(order, nr, hint);
		return;
	}
	for (group = 0; group < 3; group++) {
		for (page = 0; page < nr; page++) {
			if ((page > hint + 2 ? 0 : page + 2 < hint ? 1 : 2) == group)
				order[n++] = page;
		}
	}
}
