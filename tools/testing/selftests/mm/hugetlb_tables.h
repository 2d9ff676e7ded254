/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Page tables of hugetlb that are pages which were used before.
 *
 * The pages of files of ramfs come from where page tables come from. They are
 * freed just before tables are needed. Each has its place in its file left in
 * page->index, over which lies ptdesc->pt_share_count.
 *
 *	page  |  flags  |  lru, ...  |  mapping  |  index: 0, 1, 2, ...  |  private
 *	table |         |            |           |  pt_share_count       |  ptl
 */
#ifndef HUGETLB_TABLES_H
#define HUGETLB_TABLES_H

#include <sched.h>
#include <sys/mount.h>

#include "hugetlb_pool.h"

/* Pages that are freed: more than the tables of a small process. */
#define USED 512

/* What the index of the pages is: their number in one file, or 0, each in a file of its own. */
enum used_index { USED_NUMBER, USED_ZERO };

/* Files of ramfs that nothing else can open. */
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
 * Open the files; false if there is no ramfs. They stay open for as long as a test
 * frees their pages: the kernel frees an inode later, and its page would be the
 * next one that it takes.
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

/* Pages that were freed are kept for each CPU: stay on this one. */
static inline int used_here(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	return sched_setaffinity(0, sizeof(cpus), &cpus);
}

/*
 * An interrupt may take a freed page before the tables do, or may free one of its
 * own. So what a test expects of the tables must come once in this many tries.
 */
#define USED_TRIES 4

/* The next pages that the kernel takes for itself were pages of a file. */
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
 * Whether known issue 10 is about pages of this size: those with entries in
 * tables of PTEs or PUDs, where tables of PMDs can be shared.
 */
static inline bool may_look_shared(size_t size)
{
	size_t entries = psize() / sizeof(long), pmd = entries * psize();

	return psize() != 65536 && (size < pmd || size / pmd >= entries);
}

#endif /* HUGETLB_TABLES_H */
