/* SPDX-License-Identifier: GPL-2.0 */
/* folio_walk: the parts of the kernel's headers that older systems lack. */
#ifndef FOLIO_WALK_ABI_H
#define FOLIO_WALK_ABI_H

#include <linux/types.h>
#include <sys/ioctl.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED 8192
#endif
#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC 32768
#endif
#ifndef UFFDIO_MOVE
#define UFFD_FEATURE_MOVE 65536
struct uffdio_move {
	__u64 dst, src, len, mode;
	__s64 move;
};

#define UFFDIO_MOVE _IOWR(0xAA, 0x05, struct uffdio_move)
#endif
#ifndef PAGEMAP_SCAN
#define PAGE_IS_WPALLOWED 1
#define PAGE_IS_WRITTEN 2
#define PAGE_IS_FILE 4
#define PAGE_IS_PRESENT 8
#define PAGE_IS_SWAPPED 16
#define PAGE_IS_PFNZERO 32
struct page_region {
	__u64 start, end, categories;
};

#define PM_SCAN_WP_MATCHING 1
#define PM_SCAN_CHECK_WPASYNC 2
struct pm_scan_arg {
	__u64 size, flags, start, end, walk_end, vec, vec_len, max_pages;
	__u64 category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define PAGEMAP_SCAN _IOWR('f', 16, struct pm_scan_arg)
#endif

#endif /* FOLIO_WALK_ABI_H */
