/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for tests in which the kernel allocates page tables of hugetlb in
 * pages that had another use before.
 *
 * Pages of ramfs files and page tables come from the same lists of free pages.
 * A test frees pages of ramfs just before the kernel needs page tables. The
 * page->index of a freed page is still the position of the page in its file.
 * The ptdesc of a page table has pt_share_count where the page had page->index.
 *
 *	page  |  flags  |  lru, ...  |  mapping  |  index: 0, 1, 2, ...  |  private
 *	table |         |            |           |  pt_share_count       |  ptl
 */
#ifndef HUGETLB_TABLES_H
#define HUGETLB_TABLES_H

#include <sys/mount.h>

#include "folio_state.h"
#include "hugetlb_pool.h"

/* The number of pages to free. A small process has fewer page tables. */
#define USED 512

/*
 * The page->index of the freed pages. With USED_NUMBER, all pages are in one
 * file, and the values are 0, 1, 2 and so on. With USED_ZERO, each page is in
 * its own file, and all values are 0.
 */
enum used_index { USED_NUMBER, USED_ZERO };

/* Files of ramfs that no other process can open. */
struct used_pages {
	int fd[USED];
	int files;
};

static inline void used_close(struct used_pages *used)
{
	while (used->files)
		close(used->fd[--used->files]);
}

/*
 * Open the files. Returns false if there is no ramfs. The files stay open while
 * a test frees their pages. If a file were closed, the kernel would also free
 * the page that holds its inode. The kernel would free this page last, so the
 * next page table would use this page.
 */
static inline bool used_open(struct used_pages *used)
{
	char folder[] = "/tmp/hugetlb_tables.XXXXXX";
	int dir = -1;

	used->files = 0;
	if (!mkdtemp(folder))
		return false;
	if (!mount("none", folder, "ramfs", 0, NULL)) {
		dir = open(folder, O_RDONLY | O_DIRECTORY);
		umount2(folder, MNT_DETACH);
	}
	rmdir(folder);
	for (; dir >= 0 && used->files < USED; used->files++) {
		used->fd[used->files] = openat(dir, ".", O_TMPFILE | O_RDWR, 0600);
		if (used->fd[used->files] < 0)
			break;
	}
	if (dir >= 0)
		close(dir);
	if (used->files == USED)
		return true;
	used_close(used);
	return false;
}

/*
 * An interrupt may allocate a freed page before the kernel needs it for a page
 * table, or may free another page. So a test makes this many tries, and expects
 * that one try succeeds.
 */
#define USED_TRIES 4

/*
 * Write pages to the files and free them. The kernel uses these pages next for
 * its own data. Returns true on success.
 */
static inline bool used_free(struct used_pages *used, enum used_index index)
{
	int files = index == USED_ZERO ? USED : 1;
	bool right = true;

	for (int page = 0; page < USED; page++)
		right &= pwrite(used->fd[page % files], "", 1,
				index == USED_ZERO ? 0 : bytes(page)) == 1;
	for (int i = 0; i < files; i++)
		right &= !ftruncate(used->fd[i], 0);
	return right;
}

/*
 * Call this just before fork(): the page tables of the child then use pages whose page->index was
 * 0, which avoids known issue 10. The process stays on one CPU, and the files stay open until it
 * ends. Without ramfs, the function does nothing.
 */
static inline void avoid_issue_10(void)
{
	static struct used_pages used;

	if (stay_on_cpu() && (used.files || used_open(&used)))
		used_free(&used, USED_ZERO);
}

/*
 * Whether known issue 10 affects pages of this size. If the kernel can share
 * PMD tables, the issue affects pages whose entries are in PTE tables or PUD
 * tables.
 */
static inline bool may_look_shared(size_t size)
{
	size_t entries = psize() / sizeof(long), pmd = entries * psize();

	return psize() != 65536 && (size < pmd || size / pmd >= entries);
}

/* The smallest size of hugetlb pages that known issue 10 does not affect, or 0. */
static inline size_t hugetlb_size_always_forked(void)
{
	size_t size = hugetlb_size(0);

	for (int rank = 1; size && may_look_shared(size); rank++)
		size = hugetlb_size(rank);
	return size;
}

#endif /* HUGETLB_TABLES_H */
