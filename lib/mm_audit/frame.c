// SPDX-License-Identifier: GPL-2.0
/*
 * The entries that refer to each page: an array over all page frames.
 *
 * The array is allocated once. An audit marks the chunks that it uses in a
 * bitmap, and clears only these chunks.
 */

#include <linux/bitmap.h>
#include <linux/nodemask.h>
#include <linux/vmalloc.h>

#include "audit.h"

#define FRAME_CHUNK	256UL

static struct {
	struct audit_frame *frame;
	unsigned long *used;
	unsigned long start;
	unsigned long end;
} frames;

static const struct audit_frame frame_none;

/**
 * audit_frames_prepare() - make room for all page frames
 * @a: the audit
 *
 * Return: 0 or -ENOMEM.
 */
int audit_frames_prepare(struct audit *a)
{
	unsigned long start = ULONG_MAX, end = 0, nr;
	int nid;

	for_each_online_node(nid) {
		if (!NODE_DATA(nid)->node_spanned_pages)
			continue;
		start = min(start, NODE_DATA(nid)->node_start_pfn);
		end = max(end, pgdat_end_pfn(NODE_DATA(nid)));
	}
	a->start_pfn = start;
	a->end_pfn = end;
	if (frames.frame && frames.start == start && frames.end == end)
		return 0;
	vfree(frames.frame);
	vfree(frames.used);
	nr = DIV_ROUND_UP(end - start, FRAME_CHUNK);
	frames.frame = vmalloc(array_size(nr * FRAME_CHUNK,
					  sizeof(*frames.frame)));
	frames.used = vzalloc(BITS_TO_LONGS(nr) * sizeof(long));
	frames.start = start;
	frames.end = end;
	if (frames.frame && frames.used)
		return 0;
	vfree(frames.frame);
	vfree(frames.used);
	frames.frame = NULL;
	frames.used = NULL;
	return -ENOMEM;
}

/**
 * audit_frames_clear() - clear the results of an earlier round
 */
void audit_frames_clear(void)
{
	bitmap_zero(frames.used,
		    DIV_ROUND_UP(frames.end - frames.start, FRAME_CHUNK));
}

/**
 * audit_frame() - get the record of a page frame, to change it
 * @a: the audit
 * @pfn: the page frame
 *
 * Return: the record, or NULL if the page frame belongs to no node.
 */
struct audit_frame *audit_frame(struct audit *a, unsigned long pfn)
{
	unsigned long nr = pfn - a->start_pfn;

	if (pfn < a->start_pfn || pfn >= a->end_pfn)
		return NULL;
	if (!__test_and_set_bit(nr / FRAME_CHUNK, frames.used))
		memset(frames.frame + nr / FRAME_CHUNK * FRAME_CHUNK, 0,
		       FRAME_CHUNK * sizeof(*frames.frame));
	return frames.frame + nr;
}

/**
 * audit_frame_read() - get the record of a page frame
 * @a: the audit
 * @pfn: the page frame, which belongs to a node
 */
const struct audit_frame *audit_frame_read(struct audit *a, unsigned long pfn)
{
	unsigned long nr = pfn - a->start_pfn;

	return test_bit(nr / FRAME_CHUNK, frames.used) ? frames.frame + nr :
							 &frame_none;
}
