// SPDX-License-Identifier: GPL-2.0
/*
 * Swap devices: the count of each slot, compared with the entries of page
 * tables and of files of shmem that refer to it.
 */

#include <linux/fs.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <linux/vmalloc.h>
#include <linux/xarray.h>

#include "audit.h"
#include "../../mm/swap.h"
#if __has_include("../../mm/swap_table.h")
#include "../../mm/swap_table.h"
#define AUDIT_SWAP_TABLE	1
#endif

/* The type of shmem file systems. */
static struct file_system_type *shmem_type;

/* The count of a slot that cannot be used. */
#define SLOT_BAD		-1

static struct swap_info_struct *swap_device(unsigned int type)
{
#ifdef AUDIT_SWAP_TABLE
	struct swap_info_struct *si = READ_ONCE(swap_info[type]);
#else
	struct swap_info_struct *si = swp_swap_info(swp_entry(type, 0));
#endif

	return si && (si->flags & SWP_USED) && si->max ? si : NULL;
}

/* The count of a slot. Sets @shmem if a file of shmem has the slot. */
static int swap_slot(struct swap_info_struct *si, unsigned int type,
		     unsigned long offset, bool *shmem)
{
#ifdef AUDIT_SWAP_TABLE
	struct swap_cluster_info *ci = __swap_offset_to_cluster(si, offset);
	unsigned long entry = swap_table_get(ci, offset % SWAPFILE_CLUSTER);
	int count;

	if (swp_tb_is_bad(entry))
		return SLOT_BAD;
	count = swp_tb_get_count(entry);
	if (count == SWP_TB_COUNT_MAX && ci->extend_table)
		count = ci->extend_table[offset % SWAPFILE_CLUSTER];
	return count;
#else
	unsigned char count = si->swap_map[offset] & ~SWAP_HAS_CACHE;

	*shmem = count == SWAP_MAP_SHMEM;
	if (*shmem)
		return 1;
	if (count == SWAP_MAP_BAD)
		return SLOT_BAD;
	return count > SWAP_MAP_MAX ? swp_swapcount(swp_entry(type, offset)) :
				      count;
#endif
}

static void swap_room_free(struct audit_swap *swap)
{
	vfree(swap->ptes);
	vfree(swap->shmem);
	vfree(swap->exclusive);
	*swap = (struct audit_swap){};
}

/**
 * audit_swap_prepare() - make room for the slots of all swap devices
 * @a: the audit
 *
 * Return: 0 or -ENOMEM.
 */
int audit_swap_prepare(struct audit *a)
{
	unsigned int type;

	if (IS_ENABLED(CONFIG_SHMEM) && !shmem_type)
		shmem_type = get_fs_type("tmpfs");
	for (type = 0; type < AUDIT_SWAPS; type++) {
		struct audit_swap *swap = &a->swap[type];

		swap->si = swap_device(type);
		swap->max = swap->si ? swap->si->max : 0;
		if (swap->max <= swap->room)
			continue;
		swap_room_free(swap);
		swap->si = swap_device(type);
		swap->max = swap->si->max;
		swap->ptes = vmalloc_array(swap->max, sizeof(*swap->ptes));
		swap->shmem = vmalloc(swap->max);
		swap->exclusive = vmalloc(swap->max);
		if (!swap->ptes || !swap->shmem || !swap->exclusive) {
			swap_room_free(swap);
			return -ENOMEM;
		}
		swap->room = swap->max;
	}
	return 0;
}

/**
 * audit_swap_clear() - clear the results of an earlier round
 * @a: the audit
 */
void audit_swap_clear(struct audit *a)
{
	unsigned int type;

	for (type = 0; type < AUDIT_SWAPS; type++) {
		struct audit_swap *swap = &a->swap[type];

		if (!swap->max)
			continue;
		memset(swap->ptes, 0, swap->max * sizeof(*swap->ptes));
		memset(swap->shmem, 0, swap->max);
		memset(swap->exclusive, 0, swap->max);
	}
}

/**
 * audit_swap_entry() - an entry of a page table refers to a slot
 * @a: the audit
 * @addr: the address
 * @entry: the slot
 * @exclusive: the entry says that no other entry refers to the slot
 */
void audit_swap_entry(struct audit *a, unsigned long addr, swp_entry_t entry,
		      bool exclusive)
{
	unsigned int type = swp_type(entry);
	unsigned long offset = swp_offset(entry);
	struct audit_swap *swap = &a->swap[type];

	if (type >= AUDIT_SWAPS)
		return;
	if (!audit_equal(a, MM_AUDIT_swap_count,
			 "swap entries without a swap device", addr, 0,
			 !swap->si || offset >= swap->max, 0))
		return;
	swap->ptes[offset]++;
	swap->exclusive[offset] |= exclusive;
}

#ifdef CONFIG_SHMEM
static void swap_shmem_file(struct audit *a, struct address_space *mapping)
{
	XA_STATE(xas, &mapping->i_pages, 0);
	void *found;

	xas_for_each(&xas, found, ULONG_MAX) {
		swp_entry_t entry;
		unsigned long i;

		if (!xa_is_value(found))
			continue;
		entry = radix_to_swp_entry(found);
		if (swp_type(entry) >= AUDIT_SWAPS)
			continue;
		for (i = 0; i < BIT(xas_get_order(&xas)); i++)
			if (swp_offset(entry) + i < a->swap[swp_type(entry)].max)
				a->swap[swp_type(entry)].shmem[swp_offset(entry) + i]++;
	}
}

/* All shmem file systems have the same type. */
static void swap_shmem(struct audit *a)
{
	struct super_block *sb;
	struct inode *inode;

	if (!shmem_type)
		return;
	hlist_for_each_entry(sb, &shmem_type->fs_supers, s_instances)
		list_for_each_entry(inode, &sb->s_inodes, i_sb_list)
			if (SHMEM_I(inode)->swapped)
				swap_shmem_file(a, inode->i_mapping);
}
#else
static void swap_shmem(struct audit *a)
{
}
#endif

static void swap_check(struct audit *a, unsigned int type)
{
	struct audit_swap *swap = &a->swap[type];
	unsigned long offset;

	for (offset = 1; offset < swap->max; offset++) {
		bool shmem = swap->shmem[offset];
		int count = swap_slot(swap->si, type, offset, &shmem);

		if (count == SLOT_BAD)
			continue;
		if (count || swap->ptes[offset] || swap->shmem[offset])
			audit_equal(a, MM_AUDIT_swap_count,
				    "references to a swap slot", 0, offset,
				    count,
				    swap->ptes[offset] + swap->shmem[offset]);
		if (swap->exclusive[offset])
			audit_equal(a, MM_AUDIT_swap_exclusive,
				    "more than one reference to an exclusive slot",
				    0, offset, count > 1, 0);
	}
}

/**
 * audit_swaps() - compare the counts of all slots
 * @a: the audit, which has walked all page tables
 */
void audit_swaps(struct audit *a)
{
	unsigned int type;

	swap_shmem(a);
	for (type = 0; type < AUDIT_SWAPS; type++)
		if (a->swap[type].max && a->swap[type].si)
			swap_check(a, type);
}
